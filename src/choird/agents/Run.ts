/**
 * One run of an agent, from its start to its stop or to the breaker: the epochs of its sessions, one after the other, each begun
 * only when nothing of the one before is left (R8). It is one fiber, so that nothing about an agent ever happens twice at a time.
 */
import { Deferred, Effect, Option, type Redacted, Result, Stream } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { logFull } from "#src/choird/sessions/logLimit.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { AgentRefused, notReady } from "./AgentRefused.ts"
import { AgentViews } from "./AgentViews.ts"
import { Leases } from "./Leases.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { adoptContainer } from "./adoptContainer.ts"
import { decideRestart, type Ending, type EpochFacts } from "./decideRestart.ts"
import { BREAKER, type Breaker, BREAKER_HOURLY_CRASHES_MAX } from "./Breaker.ts"
import { CrashTimes } from "./CrashTimes.ts"
import { fallBack, requireInRuntime } from "./startImage.ts"
import { epochOfRun } from "./epochOfRun.ts"
import { databaseDefect, retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { prepareStart } from "./prepareStart.ts"
import { InstalledPrograms } from "./InstalledPrograms.ts"
import type { RunContext, RunHandle, RunRequest } from "./RunContext.ts"
import { afterOutage, tellStopped } from "./runNotices.ts"

const STOPPED: Ending = { type: "end", status: "stopped" }

const startFailed = (agent_id: AgentId, reason: string, hint: string) =>
  new AgentRefused({ kind: "START_FAILED", agent_id, reason, hint })

/** A start that nobody waits for and that does not happen (R77); one that an operator asked for is refused by the API. */
const notStarted = (agent_id: AgentId, kind: string, reason: string) =>
  Effect.flatMap(Audit, (audit) =>
    audit.record({ who: "choird", action: "agent.restart", agent_id, detail: { refused: kind, reason } })
  )

const factsOf = Effect.fnUntraced(function* (row: SessionRow, breaker: Breaker, proven: boolean) {
  const sessions = yield* SessionStore
  const store = yield* ConfigStore
  const known = Option.getOrElse(yield* retryDatabase(sessions.get(row.session_id)), () => row)
  const { frozen_reason, last_rev, log_bytes } = known
  const found = Option.getOrUndefined(yield* retryDatabase(sessions.newer(row.session_id)))
  const newer = found === undefined ? undefined : `${found.message}; ${found.hint}`
  const full = logFull(log_bytes, (yield* store.current).config.retention)
  return { now_ms: yield* monotonicMs, breaker, frozen_reason, newer, full, last_rev, proven } satisfies EpochFacts
})

/** Waits for a message to an agent without a session; false when the operator stops the agent first. */
export const messageComes = Effect.fnUntraced(function* ({ agent_id, stop }: Pick<RunContext, "agent_id" | "stop">) {
  const inbox = yield* Inbox
  const message = inbox.wakes(agent_id).pipe(
    Stream.mapEffect(() => retryDatabase(inbox.pending(agent_id))),
    Stream.filter((pending) => pending > 0),
    Stream.runHead
  )
  return yield* Effect.raceFirst(Effect.as(message, true), Effect.as(Deferred.await(stop), false))
})

/** The session that follows a closed one, with the same resources. It continues the one before where that reached a limit. */
const nextSession = Effect.fnUntraced(function* ({ agent_id, bindings, prepared }: RunContext) {
  const leases = yield* Leases
  const sessions = yield* SessionStore
  const row = yield* retryDatabase(sessions.create(agent_id, bindings, prepared.image.image_version, true))
  yield* retryDatabase(leases.transfer(agent_id, row.session_id))
  yield* Effect.logInfo(`the session ${row.session_id} follows`)
  return row
})

/** The session that a message starts; `undefined` when the operator stops the agent first. */
const successor = Effect.fnUntraced(function* (context: RunContext) {
  if (!(yield* messageComes(context))) return undefined
  // Otherwise the view would say of the session that starts why the one before has ended.
  yield* Effect.flatMap(AgentViews, (views) => views.change(context.agent_id, { reason: null }))
  return yield* nextSession(context)
})

/** Shows an agent whose session is closed as running, since the next message starts it. */
const awaitingView = ({ agent_id }: RunContext) =>
  Effect.flatMap(AgentViews, (views) =>
    views.change(agent_id, {
      status: "running",
      session_id: null,
      reason: "its session has ended; the next message starts another one"
    })
  )

/** Closes the session and keeps the resources, so that the next message finds the agent as it was (D19). */
const close = Effect.fnUntraced(function* (context: RunContext, row: SessionRow) {
  const logs = yield* LogFiles
  const sessions = yield* SessionStore
  yield* retryDatabase(sessions.end(row.session_id, "closed"))
  yield* Effect.logInfo("the session has ended and is closed")
  yield* logs.archive(context.agent_id)
  yield* awaitingView(context)
})

/** The session ends with its run, unless the agent is started again at once. */
const leave = Effect.fnUntraced(function* ({ again }: RunContext, row: SessionRow, ending: Ending) {
  const sessions = yield* SessionStore
  const signals = yield* Signals
  const tokens = yield* Tokens
  if (ending.status === "stopped" && Deferred.isDoneUnsafe(again)) {
    yield* retryDatabase(tokens.revoke(row.session_id))
    yield* signals.forget(row.session_id)
  } else yield* retryDatabase(sessions.end(row.session_id, ending.status))
  return ending
})

/** An image that the engine lost is built again before the next epoch; one that cannot be ends the run with a hint. */
const withImage = ({ agent_id, prepared, stop }: RunContext) =>
  Effect.raceFirst(
    Effect.match(requireInRuntime(agent_id, prepared.image), {
      onSuccess: (): Ending | undefined => undefined,
      onFailure: ({ hint, reason }): Ending => ({
        type: "end",
        status: "crashed",
        kind: "START_FAILED",
        reason: `${reason}. Run ${hint}`
      })
    }),
    Effect.as(Deferred.await(stop), STOPPED)
  )

/** The run as it continues on an earlier image; undefined if it ends. */
const onEarlierImage = Effect.fnUntraced(function* (context: RunContext, ending: Ending) {
  const { prepared } = context
  const back = yield* fallBack(context, prepared.image, ending)
  return back && { ...context, remark: back.remark, prepared: { ...prepared, image: back.image } }
})

/** The epochs of a run until there is a reason to end it, or a container that cannot be ended. */
const epochs = Effect.fnUntraced(function* (begun: RunContext) {
  const crashTimes = yield* CrashTimes
  const sessions = yield* SessionStore
  const { agent_id, bindings, stop } = begun
  let context = begun
  let { row } = context.prepared
  let token: Redacted.Redacted | undefined
  let breaker = BREAKER
  crashTimes.delete(agent_id)
  let proven = context.awaiting
  for (;;) {
    row ??= yield* successor(context)
    if (row === undefined) return STOPPED
    const annotations = { session_id: row.session_id }
    const ended = yield* Effect.annotateLogs(epochOfRun(context, row, token), annotations)
    if (ended.type === "stuck") return ended
    const { end, ready } = ended
    proven ||= ready
    if (end.type === "crashed") {
      const earlier = crashTimes.get(agent_id) ?? []
      const crashes = [...earlier, yield* monotonicMs].slice(-BREAKER_HOURLY_CRASHES_MAX)
      crashTimes.set(agent_id, crashes)
    }
    const next = decideRestart(end, yield* afterOutage(context, factsOf(row, breaker, proven)))
    if (next.type === "await message" || next.type === "next session") {
      yield* close(context, row)
      token = undefined
      const isAwaited = next.type === "next session" && !Deferred.isDoneUnsafe(stop)
      row = isAwaited ? yield* nextSession(context) : undefined
      continue
    }
    if (next.type === "end") {
      const back = ended.tried && !Deferred.isDoneUnsafe(stop) ? yield* onEarlierImage(context, next) : undefined
      if (back === undefined) return yield* leave(context, row, next)
      context = back
    } else {
      yield* Effect.logWarning(`the agent crashed: ${next.reason}`, annotations)
      breaker = next.breaker
      const ending = Deferred.isDoneUnsafe(stop) ? STOPPED : yield* withImage(context)
      if (ending !== undefined) return yield* leave(context, row, ending)
    }
    token = end.type === "crashed" ? end.token : undefined
    row = yield* retryDatabase(sessions.resume(row.session_id, bindings, context.prepared.image.image_version))
  }
})

const settle = Effect.fnUntraced(function* (context: RunContext, ending: Effect.Success<ReturnType<typeof epochs>>) {
  const leases = yield* Leases
  const logs = yield* LogFiles
  const sessions = yield* SessionStore
  const views = yield* AgentViews
  const { agent_id, unattended } = context
  if (ending.type === "stuck") {
    yield* retryDatabase(sessions.end(ending.row.session_id, "crashed"))
    yield* Effect.logError(ending.reason)
    yield* views.end(agent_id, "crashed", ending.reason)
    return startFailed(agent_id, ending.reason, "look for a hung file system or device")
  }
  yield* retryDatabase(leases.release(agent_id))
  yield* Effect.logInfo("released its workspace, DMs and other leases")
  if (ending.status === "stopped") {
    yield* views.end(agent_id, "stopped", null)
    yield* Effect.logInfo("the agent is stopped")
    yield* logs.archive(agent_id)
    return startFailed(agent_id, "the agent was stopped while it started", "start it again")
  }
  yield* Effect.logError(`the agent will not be started again: ${ending.reason}`)
  yield* views.end(agent_id, "crashed", ending.reason)
  const attended = !unattended && !Deferred.isDoneUnsafe(context.started)
  if (!attended) {
    yield* notStarted(agent_id, ending.kind, ending.reason)
    yield* tellStopped(context, `I have stopped working: ${ending.reason}.`)
  }
  return startFailed(agent_id, `${agent_id} did not start: ${ending.reason}`, `choirctl logs ${agent_id}`)
})

const preparedFor = Effect.fnUntraced(function* (request: RunRequest) {
  const { find } = yield* InstalledPrograms
  const programs = yield* Effect.mapError(find, ({ hint, message }) => notReady(request.agent_id, message, hint))
  // An operator who waits learns of the outage; otherwise nobody would start the agent again.
  const preparing = prepareStart(request)
  return { programs, prepared: yield* request.unattended ? retryDatabase(preparing) : databaseDefect(preparing) }
})

/** A session that cannot be resumed by itself is broken off. Resources stay with a container that cannot be ended. */
const giveUp = Effect.fnUntraced(function* (request: RunRequest, why: AgentRefused) {
  const leases = yield* Leases
  const sessions = yield* SessionStore
  const views = yield* AgentViews
  const { agent_id, bindings, unattended } = request
  const latest = Option.getOrUndefined(yield* retryDatabase(sessions.latest(agent_id)))
  if (latest?.status === "active")
    yield* retryDatabase(sessions.end(latest.session_id, unattended && why.unbuilt !== true ? "crashed" : "stopped"))
  if (!unattended) {
    yield* views.end(agent_id, "stopped", null)
    return
  }
  if (why.unbuilt === true) {
    // The operator of a restored home is about to build it; do not alarm the people in its chats.
    yield* Effect.logWarning(`the agent was not started again: ${why.reason}`)
    yield* retryDatabase(leases.release(agent_id))
    yield* views.end(agent_id, "stopped", why.reason)
    return
  }
  yield* Effect.logError(`the agent could not be started: ${why.reason}`)
  yield* notStarted(agent_id, why.kind, why.reason)
  yield* tellStopped({ agent_id, bindings }, `I could not be started again: ${why.reason}.`)
  if (why.kind !== "START_FAILED") yield* retryDatabase(leases.release(agent_id))
  yield* views.end(agent_id, "crashed", why.reason)
})

/** Reports a defect of a run; the next start clears what the run held. */
const broken = Effect.fnUntraced(function* ({ agent_id }: RunRequest, defect: unknown) {
  const views = yield* AgentViews
  const ref = yield* logDefect("the run failed", defect)
  const reason = defectWords("choird could not continue it", ref)
  yield* views.end(agent_id, "crashed", reason)
  return startFailed(agent_id, reason, "choirctl logs choird")
})

/**
 * Runs the agent until it ends for good. Returns why, for the start that still waits. Interruption ends the container and leaves the
 * session active, so that the next choird resumes it.
 */
export const run = Effect.fn("Run.run")(
  function* (request: RunRequest, handle: RunHandle) {
    const views = yield* AgentViews
    const { agent_id, awaiting, bindings } = request
    yield* views.change(agent_id, { status: "starting", bindings, reason: null })
    if (request.adopted !== undefined) yield* adoptContainer(request.adopted)
    const ready = yield* Effect.result(preparedFor(request))
    if (Result.isFailure(ready)) {
      yield* giveUp(request, ready.failure)
      return ready.failure
    }
    const context: RunContext = { ...request, ...handle, ...ready.success, remark: null }
    if (awaiting) yield* awaitingView(context)
    return yield* settle(context, yield* epochs(context))
  },
  (effect, request) =>
    effect.pipe(
      Effect.catchDefect((defect) => broken(request, defect)),
      Effect.annotateLogs({ agent_id: request.agent_id })
    )
)
