/**
 * One run of an agent, from its start to its stop or to the breaker: the epochs of its sessions, one after the other, each begun
 * only when nothing of the one before is left (R8). It is one fiber, so that nothing about an agent ever happens twice at a time.
 */
import { Clock, Deferred, Effect, Option, type Redacted, Result } from "effect"
import type { Inbox } from "#src/choird/gateway/Inbox.ts"
import type { Outbox } from "#src/choird/gateway/Outbox.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { Audit } from "#src/choird/logs/Audit.ts"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { BREAKER_HOURLY_CRASHES_MAX, SUCCESSOR_LOOK_MS } from "#src/shared/limits.ts"
import { afterEpoch, type EpochEnd, type EpochFacts, type Next } from "./afterEpoch.ts"
import type { AgentPrograms, ProgramMissing } from "./AgentPrograms.ts"
import { BREAKER, type Breaker } from "./Breaker.ts"
import { type EpochServices, runEpoch } from "./Epoch.ts"
import type { AgentView } from "./Lifecycle.ts"
import { patiently } from "./patience.ts"
import { prepare, type Prepared, type PrepareServices, type Refusal, type StartRequest } from "./prepare.ts"

export interface RunServices extends EpochServices, PrepareServices {
  readonly audit: Audit["Service"]
  /** When each agent crashed since its start, as far as the breaker looks back. */
  readonly crashes: Map<AgentId, ReadonlyArray<number>>
  readonly inbox: Inbox["Service"]
  readonly outbox: Outbox["Service"]
  readonly programs: Effect.Effect<AgentPrograms, ProgramMissing>
}

export interface RunRequest extends StartRequest {
  /** Nobody waits for the outcome, so the DM is told when it is bad. */
  readonly unattended: boolean
}

/** How the rest of choird speaks with a run. */
export interface RunHandle {
  /** Completed by whoever wants the run to end. */
  readonly stop: Deferred.Deferred<void>
  /** The view once the agent runs, or why it does not. */
  readonly started: Deferred.Deferred<AgentView, Refusal>
}

/** Why a run ends. */
type Ending = Extract<Next, { readonly type: "end" }>

interface Context extends RunRequest, RunHandle {
  readonly services: RunServices
  readonly prepared: Prepared
  readonly programs: AgentPrograms
}

const stoppedWhileStarting: Refusal = {
  kind: "START_FAILED",
  reason: "the agent was stopped while it started",
  hint: "start it again"
}

/** Tells the person at the agent's DM, in words for somebody who has no shell. */
const tell = ({ agent_id, bindings, services }: Context, source_id: string, text: string) =>
  Effect.gen(function* () {
    const { config } = yield* services.config.current
    const gateway = config.dms[bindings.dm]?.gateway
    if (gateway === undefined) return
    const message = { source_id, gateway, dm: bindings.dm, agent_id, text, in_reply_to: null }
    yield* patiently(services.outbox.tell({ ...message, kind: "notice" }))
  })

const started = ({ agent_id, services, started }: Context) =>
  Effect.gen(function* () {
    const since_ms = yield* Clock.currentTimeMillis
    const view = yield* services.views.change(agent_id, { status: "running", since_ms, reason: null })
    yield* Deferred.succeed(started, view)
    yield* Effect.logInfo("the agent runs")
  })

/**
 * How long the agent may be silent: what the running configuration says, or what it said before while the agent still beats as it
 * was told then. A shorter time counts once the agent has taken it over.
 */
const patienceOf = ({ agent_id, prepared, services }: Context) => {
  let agreed_ms = prepared.config.crash_detection_threshold_ms
  return Effect.map(services.config.current, ({ config, version }) => {
    const { crash_detection_threshold_ms: wanted_ms } = config
    agreed_ms = services.views.of(agent_id).config_version === version ? wanted_ms : Math.max(agreed_ms, wanted_ms)
    return agreed_ms
  })
}

/** One epoch from its token to its end; whatever keeps a container from starting is a crash of the agent. */
const epoch = Effect.fnUntraced(function* (context: Context, row: SessionRow, token: Redacted.Redacted | undefined) {
  const { agent_id, bindings, prepared, programs, services, stop } = context
  const { epoch, session_id } = row
  const { version } = yield* services.config.current
  // The view's bindings stay: the models in them may have been switched since the start (spec 17.1).
  yield* services.views.change(agent_id, {
    status: "starting",
    session_id,
    epoch,
    image_version: prepared.image.image_version,
    since_ms: yield* Clock.currentTimeMillis,
    config_version: version,
    started_with: prepared.config
  })
  let ready = false
  const plan = {
    row,
    bindings,
    config: prepared.config,
    silence_ms_max: patienceOf(context),
    summary_ms_max: Effect.map(services.config.current, ({ config }) => config.memory.summary_timeout_ms),
    image: prepared.image,
    programs,
    token: token ?? (yield* patiently(services.tokens.bootstrap(session_id, agent_id, epoch))),
    stop,
    onReady: Effect.andThen(
      Effect.sync(() => void (ready = true)),
      started(context)
    ),
    onStopping: Effect.asVoid(services.views.change(agent_id, { status: "stopping" }))
  }
  yield* Effect.logInfo(`epoch ${epoch} begins`)
  const ended = yield* Effect.result(Effect.scoped(runEpoch(services, plan)))
  if (Result.isSuccess(ended)) return { type: "ended", end: ended.success, ready } as const
  const { failure } = ended
  // What cannot be ended still holds the agent's resources, and nothing new may begin beside it.
  if (failure instanceof ContainerError && failure.reason === "stuck")
    return { type: "stuck", row, reason: failure.message } as const
  const end: EpochEnd = { type: "crashed", reason: failure.message, ready }
  return { type: "ended", end, ready } as const
})

/** A start that nobody waits for and that does not happen (R77); one that an operator asked for is refused by the API. */
const notStarted = ({ audit }: Pick<RunServices, "audit">, agent_id: AgentId, kind: string, reason: string) =>
  audit.record({ who: "choird", action: "agent.restart", agent_id, detail: { refused: kind, reason } })

/** Waits for a message without a session; `undefined` when the operator stops the agent first. */
const successor = Effect.fnUntraced(function* ({ agent_id, bindings, prepared, services, stop }: Context) {
  const { inbox, leases, sessions } = services
  const pending = Effect.catchDefect(inbox.pending(agent_id), () => Effect.succeed(0))
  const message = Effect.gen(function* () {
    while ((yield* pending) === 0) yield* Effect.sleep(SUCCESSOR_LOOK_MS)
    return true
  })
  const comes = yield* Effect.raceFirst(message, Effect.as(Deferred.await(stop), false))
  if (!comes) return undefined
  const row = yield* patiently(sessions.create(agent_id, bindings, prepared.image.image_version))
  yield* patiently(leases.transfer(agent_id, row.session_id))
  yield* Effect.logInfo(`a message starts the session ${row.session_id}`)
  return row
})

const factsOf = Effect.fnUntraced(function* (
  { services }: Context,
  row: SessionRow,
  breaker: Breaker,
  proven: boolean
) {
  const known = Option.getOrElse(yield* patiently(services.sessions.get(row.session_id)), () => row)
  const { frozen_reason, last_rev } = known
  return { now_ms: yield* Clock.currentTimeMillis, breaker, frozen_reason, last_rev, proven } satisfies EpochFacts
})

/** To whoever writes to it, an agent whose session is closed is there: the message brings it up. */
const awaitingView = ({ agent_id, services }: Context) =>
  services.views.change(agent_id, {
    status: "running",
    session_id: null,
    reason: "its session has reached its budget; the next message starts a fresh one"
  })

/** Closes the session and keeps the resources, so that the next message finds the agent as it was (D19). */
const close = Effect.fnUntraced(function* (context: Context, row: SessionRow) {
  const { services } = context
  yield* patiently(services.sessions.end(row.session_id, "closed"))
  yield* Effect.logInfo("the session has reached its budget and is closed")
  yield* services.logs.archive(context.agent_id)
  yield* awaitingView(context)
})

/** The epochs of a run until there is a reason to end it, or a container that cannot be ended. */
const epochs = Effect.fnUntraced(function* (context: Context) {
  const { bindings, prepared, services, stop } = context
  let { row } = prepared
  let token: Redacted.Redacted | undefined
  let breaker = BREAKER
  services.crashes.delete(context.agent_id)
  let proven = context.awaiting
  for (;;) {
    row ??= yield* successor(context)
    if (row === undefined) return { type: "end", status: "stopped" } satisfies Ending
    const annotations = { session_id: row.session_id }
    const ended = yield* Effect.annotateLogs(epoch(context, row, token), annotations)
    if (ended.type === "stuck") return ended
    const { end, ready } = ended
    proven ||= ready
    if (end.type === "crashed") {
      const earlier = services.crashes.get(context.agent_id) ?? []
      const crashes = [...earlier, yield* Clock.currentTimeMillis].slice(-BREAKER_HOURLY_CRASHES_MAX)
      services.crashes.set(context.agent_id, crashes)
    }
    const next = afterEpoch(end, yield* factsOf(context, row, breaker, proven))
    if (next.type === "end") {
      yield* patiently(services.sessions.end(row.session_id, next.status))
      return next
    }
    if (next.type === "await message") {
      yield* close(context, row)
      token = undefined
      row = undefined
      continue
    }
    yield* Effect.logWarning(`the agent crashed: ${next.reason}`, annotations)
    breaker = next.breaker
    if (Deferred.isDoneUnsafe(stop)) {
      yield* patiently(services.sessions.end(row.session_id, "stopped"))
      return { type: "end", status: "stopped" } satisfies Ending
    }
    token = end.type === "crashed" ? end.token : undefined
    row = yield* patiently(services.sessions.resume(row.session_id, bindings, prepared.image.image_version))
  }
})

const settle = Effect.fnUntraced(function* (context: Context, ending: Effect.Success<ReturnType<typeof epochs>>) {
  const { agent_id, services, unattended } = context
  const { leases, views } = services
  if (ending.type === "stuck") {
    yield* patiently(services.sessions.end(ending.row.session_id, "crashed"))
    yield* Effect.logError(ending.reason)
    yield* views.end(agent_id, "crashed", ending.reason)
    return { kind: "START_FAILED", reason: ending.reason, hint: "look for a hung file system or device" } as const
  }
  yield* patiently(leases.release(agent_id))
  yield* Effect.logInfo("its resources are free")
  if (ending.status === "stopped") {
    yield* views.end(agent_id, "stopped", null)
    yield* Effect.logInfo("the agent is stopped")
    yield* services.logs.archive(agent_id)
    return stoppedWhileStarting
  }
  yield* Effect.logError(`the agent is not started again: ${ending.reason}`)
  yield* views.end(agent_id, "crashed", ending.reason)
  const attended = !unattended && !Deferred.isDoneUnsafe(context.started)
  if (!attended) {
    yield* notStarted(services, agent_id, ending.kind, ending.reason)
    const source_id = `crashed:${agent_id}:${yield* Clock.currentTimeMillis}`
    yield* tell(context, source_id, `I have stopped working: ${ending.reason}. My operator has to start me again.`)
  }
  return {
    kind: "START_FAILED",
    reason: `${agent_id} did not start: ${ending.reason}`,
    hint: `choirctl logs ${agent_id}`
  } as const
})

const preparedFor = Effect.fnUntraced(function* (services: RunServices, request: RunRequest) {
  const programs = yield* Effect.mapError(services.programs, ({ hint, message }): Refusal => ({
    kind: "NOT_READY",
    reason: message,
    hint
  }))
  return { programs, prepared: yield* prepare(services, request) }
})

/** A session that cannot be resumed by itself is broken off. Resources stay with a container that cannot be ended. */
const giveUp = Effect.fnUntraced(function* (services: RunServices, { agent_id, unattended }: RunRequest, why: Refusal) {
  const { leases, sessions, views } = services
  if (!unattended) {
    yield* views.end(agent_id, "stopped", null)
    return
  }
  yield* Effect.logError(`the agent does not start: ${why.reason}`)
  yield* notStarted(services, agent_id, why.kind, why.reason)
  const latest = Option.getOrUndefined(yield* sessions.latest(agent_id))
  if (latest?.status === "active") yield* sessions.end(latest.session_id, "crashed")
  if (why.kind !== "START_FAILED") yield* leases.release(agent_id)
  yield* views.end(agent_id, "crashed", why.reason)
})

/** A broken run says so; what it held is cleared by the next start. */
const broken = Effect.fnUntraced(function* ({ views }: RunServices, { agent_id }: RunRequest, defect: unknown) {
  const ref = yield* logDefect("the run broke", defect)
  const reason = defectWords("choird could not go on with it", ref)
  yield* views.end(agent_id, "crashed", reason)
  return { kind: "START_FAILED", reason, hint: "choirctl logs choird" } satisfies Refusal
})

/**
 * Runs the agent until it ends for good. Returns why, for the start that still waits. Interruption ends the container and leaves the
 * session active, so that the next choird resumes it.
 */
export const run = Effect.fn("Run.run")(
  function* (services: RunServices, request: RunRequest, handle: RunHandle) {
    const { agent_id, awaiting, bindings } = request
    yield* services.views.change(agent_id, { status: "starting", bindings, reason: null })
    const ready = yield* Effect.result(preparedFor(services, request))
    if (Result.isFailure(ready)) {
      yield* giveUp(services, request, ready.failure)
      return ready.failure
    }
    const context: Context = { ...request, ...handle, ...ready.success, services }
    if (awaiting) yield* awaitingView(context)
    return yield* settle(context, yield* epochs(context))
  },
  (effect, services, request) =>
    effect.pipe(
      Effect.catchDefect((defect) => broken(services, request, defect)),
      Effect.annotateLogs({ agent_id: request.agent_id })
    )
)
