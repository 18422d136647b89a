/**
 * The life of each agent: build, start, crash, restart, stop. One scope per running agent holds its lease, its socket, its
 * container and its push stream; stopping the agent is closing that scope.
 */
import { Context, Deferred, Effect, FiberSet, Layer, Option, type Stream } from "effect"
import type { CallsApart } from "#schema/AgentApi.ts"
import type { ResourceBindings, RunBindings } from "#schema/ResourceBindings.ts"
import { AgentId, type ResourceName, type SessionId } from "#schema/Ids.ts"
import type { RestartAgent, StartAgent } from "#schema/AgentsApi.ts"
import { logDeath } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { AgentPrograms, ProgramMissing } from "#src/choird/runtime/AgentCommand.ts"
import { flagsOf, type Rebound } from "./bindings.ts"
import { makeHeartbeats, type LastHeartbeat, LiveEpochs } from "./LiveEpochs.ts"
import { makeKnown, notRunning } from "./knownAgent.ts"
import { makeStartBindings } from "./startBindings.ts"
import { recoverRuns } from "./recovery.ts"
import { run } from "./Run.ts"
import { InstalledPrograms } from "./InstalledPrograms.ts"
import { type RunHandle, type RunRequest, runServices } from "./RunContext.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { AgentRefused } from "./AgentRefused.ts"
import { type AgentView, AgentViews } from "./AgentViews.ts"
import { CrashTimes } from "./CrashTimes.ts"

/** Starts, watches and stops agents. At most one instance of each (invariant 11). */
export class Lifecycle extends Context.Service<
  Lifecycle,
  {
    readonly list: Effect.Effect<ReadonlyArray<AgentView>>
    view(agent_id: AgentId): Effect.Effect<AgentView, AgentRefused>
    /**
     * Leases, builds nothing, starts the container and waits for INIT_HELLO, at most AGENT_START_MS_MAX. Resumes unless `fresh`. What
     * `named` leaves out comes from the agent's defaults: only for who names everything, such as the operator.
     */
    start(agent_id: AgentId, named: StartAgent): Effect.Effect<AgentView, AgentRefused>
    /** Starts it with the resources of an earlier run, all DMs included; those of `rebound` come from the current defaults. */
    startAsBefore(agent_id: AgentId, before: RunBindings, rebound?: Rebound): Effect.Effect<AgentView, AgentRefused>
    /** Starts it for a person in a chat: as it last ran, in all its DMs, and in this one as well where no other agent holds it. */
    startInChat(agent_id: AgentId, dm: ResourceName, named: RestartAgent): Effect.Effect<AgentView, AgentRefused>
    /**
     * Graceful: safe point, summary, flush, TERMINATE_SELF. An agent that says no goodbye within AGENT_STOP_MS_MAX and the
     * time for the summary is killed, and the log names the revision after which everything is lost.
     */
    stop(agent_id: AgentId): Effect.Effect<AgentView, AgentRefused>
    /** Binds a running agent to other models or another voice until it is started again; crashes keep them. */
    rebind(
      agent_id: AgentId,
      models: Pick<ResourceBindings, "llm" | "core_llm" | "voice_profile">
    ): Effect.Effect<AgentView, AgentRefused>
    /**
     * Stops and starts the agent, to the end even if nobody waits for it any longer. Bindings that the start named are kept, those of
     * `options` replace them, and the rest, with `rebound`, comes from the current defaults. Refused before the stop if the new bindings
     * cannot be used or another agent holds one. The session stays active between the two, so that a choird that dies there starts the
     * agent when it is back.
     */
    restart(agent_id: AgentId, options?: RestartAgent, rebound?: Rebound): Effect.Effect<AgentView, AgentRefused>
    /**
     * Stops a running agent for as long as choird cannot serve it. Its session stays active, so that a choird that dies meanwhile starts
     * it when it is back. An operator's start or stop ends the pause. Says whether it is paused.
     */
    pause(agent_id: AgentId, reason: string): Effect.Effect<boolean>
    /** Starts a paused agent as it was; false when somebody else ended its pause. */
    wake(agent_id: AgentId): Effect.Effect<boolean, AgentRefused>
    readonly paused: Effect.Effect<ReadonlyArray<AgentId>>
    /** Refuses all starts for this reason, until it is called without one. */
    hold(reason: { readonly reason: string; readonly hint: string } | undefined): Effect.Effect<void>
    /** Ends what an earlier life of choird left running, then resumes each session that was active. */
    readonly recover: Effect.Effect<void>
    /** An agent said INIT_HELLO, and how far its calls are kept apart: the start is complete. */
    hello(session_id: SessionId, epoch: number, calls_apart?: CallsApart): Effect.Effect<void>
    /** A heartbeat arrived, whatever its outcome; liveness is its arrival (D8). */
    heartbeat(session_id: SessionId, config_version: number, head_rev?: number): Effect.Effect<void>
    /** Answers a heartbeat. However long that takes, an agent that waits for choird is not silent (D8). */
    whileAnswering<A, E, R>(session_id: SessionId, answer: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
    /** The age of an agent's last heartbeat, the revision that it named, and the crashes in the breaker's window (R78). */
    lastHeartbeat(agent_id: AgentId): Effect.Effect<LastHeartbeat>
    /** A heartbeat brought events that are not known here: they are kept, and the agent must send the rest and exit (D53). */
    newer(session_id: SessionId): Effect.Effect<void>
    /** TERMINATE_SELF was accepted: the exit that follows is not a crash. `closed` is a session at its budget. */
    terminating(session_id: SessionId, reason: string): Effect.Effect<void>
    /** Views as they change. */
    readonly changes: Stream.Stream<AgentView>
    /** The view of an agent, and then each change of it. */
    follow(agent_id: AgentId): Stream.Stream<AgentView>
  }
>()("choir/choird/Lifecycle") {
  /** @param programs the programs of this installation that every container gets. */
  static readonly layer = (programs: Effect.Effect<AgentPrograms, ProgramMissing>) =>
    Layer.effect(
      Lifecycle,
      Effect.suspend(() => make)
    ).pipe(
      Layer.provide([
        AgentViews.layer,
        CrashTimes.layer,
        LiveEpochs.layer,
        Layer.succeed(InstalledPrograms, { find: programs })
      ])
    )
}

/** A run as the operator's commands see it. */
interface Running extends RunHandle {
  readonly request: RunRequest
  readonly ended: Deferred.Deferred<void>
}

const alreadyThere = (view: AgentView) => {
  const { agent_id, status } = view
  return status === "stopping"
    ? new AgentRefused({
        kind: "BUSY",
        agent_id,
        reason: `${agent_id} is being stopped`,
        hint: "try again in a moment"
      })
    : new AgentRefused({
        kind: "ALREADY_RUNNING",
        agent_id,
        reason: `${agent_id} is already ${status}`,
        hint: status === "starting" ? `choirctl agent status ${agent_id}` : `choirctl agent restart ${agent_id}`
      })
}

/** The command that restarts a running agent with the options of this start. */
const restartCommand = (agent_id: AgentId, options: StartAgent) =>
  options.fresh === true
    ? `choirctl agent stop ${agent_id} && choirctl agent start ${agent_id} --fresh${flagsOf(options)}`
    : `choirctl agent restart ${agent_id}${flagsOf(options)}`

/** The runs of all agents, at most one of each. */
const makeRuns = Effect.gen(function* () {
  const views = yield* AgentViews
  const services = yield* runServices
  const fibers = yield* FiberSet.make<void>()
  const runs = new Map<AgentId, Running>()

  /** The only place where a run begins: nothing can come between the check and the entry. */
  const launch = Effect.fnUntraced(function* (request: RunRequest) {
    const { agent_id } = request
    if (runs.has(agent_id)) return yield* alreadyThere(views.of(agent_id))
    const running: Running = {
      request,
      stop: Deferred.makeUnsafe(),
      again: Deferred.makeUnsafe(),
      started: Deferred.makeUnsafe(),
      ended: Deferred.makeUnsafe()
    }
    runs.set(agent_id, running)
    const over = (why: Effect.Effect<never, AgentRefused>) =>
      Effect.suspend(() => {
        runs.delete(agent_id)
        return Effect.andThen(Deferred.complete(running.started, why), Deferred.succeed(running.ended, undefined))
      })
    const life = Effect.provideContext(run(request, running), services).pipe(
      Effect.flatMap((why) => over(Effect.fail(why))),
      // Else the agent would run for ever, as its view has it, and nobody could start it.
      Effect.tapDefect((defect) => over(Effect.die(defect)))
    )
    yield* FiberSet.run(fibers, logDeath("the run of an agent")(life))
    return running
  }, Effect.uninterruptible)

  const start = Effect.fnUntraced(function* (request: RunRequest) {
    const { started } = yield* launch(request)
    return yield* Deferred.await(started)
  })

  /** Ends a run and waits for its end; one that is started `again` at once keeps its session active. */
  const stop = Effect.fnUntraced(function* (running: Running, again: boolean) {
    if (again) yield* Deferred.succeed(running.again, undefined)
    yield* Deferred.succeed(running.stop, undefined)
    yield* Deferred.await(running.ended)
  })

  return {
    of: (agent_id: AgentId) => runs.get(agent_id),
    launch,
    start,
    stop,
    /** Runs to its end while choird lives, even if nobody waits for it. */
    fork: (effect: Effect.Effect<void>) => FiberSet.run(fibers, logDeath("a restart")(effect))
  }
})
type Runs = Effect.Success<typeof makeRuns>

/** The agents that choird has stopped for a while, with the request that starts each as it was. */
const makePauses = Effect.fnUntraced(function* (runs: Runs) {
  const views = yield* AgentViews
  const paused = new Map<AgentId, RunRequest>()

  const pause = Effect.fn("Lifecycle.pause")(function* (agent_id: AgentId, reason: string) {
    const running = runs.of(agent_id)
    if (running === undefined || views.of(agent_id).status !== "running") return false
    const before = views.of(agent_id)
    const { bindings } = running.request
    const awaiting = before.session_id === null
    paused.set(agent_id, { agent_id, bindings, fresh: false, awaiting, unattended: true })
    yield* runs.stop(running, true)
    if (!paused.has(agent_id)) return false
    yield* views.change(agent_id, { ...before, status: "paused", reason })
    return true
  })

  const wake = Effect.fn("Lifecycle.wake")(function* (agent_id: AgentId) {
    const request = paused.get(agent_id)
    paused.delete(agent_id)
    if (request === undefined || runs.of(agent_id) !== undefined) return false
    // Other models may have been chosen meanwhile.
    yield* runs.start({ ...request, bindings: views.of(agent_id).bindings ?? request.bindings })
    return true
  })

  return {
    pause,
    wake,
    /** Ends the pause of an agent and leaves it stopped; false if it was not paused. */
    end: (agent_id: AgentId) => paused.delete(agent_id),
    paused: Effect.sync(() => [...paused.keys()].filter((agent_id) => views.of(agent_id).status === "paused"))
  }
})

/** The refusal to start an agent that runs already, with the command that restarts it as it was asked for. */
const withRestartHint = (agent_id: AgentId, options: StartAgent) => (refused: AgentRefused) =>
  refused.kind === "ALREADY_RUNNING"
    ? new AgentRefused({
        kind: refused.kind,
        agent_id,
        reason: refused.reason,
        hint: restartCommand(agent_id, options)
      })
    : refused

type Pauses = Effect.Success<ReturnType<typeof makePauses>>

/** The starts that people ask for, unless a hold is on them. */
const makeStarts = Effect.fnUntraced(function* (runs: Runs, pauses: Pauses) {
  const known = yield* makeKnown
  let held: { readonly reason: string; readonly hint: string } | undefined

  /** @param options what a person asked for, for the hint to one whose agent runs already. */
  const begin = Effect.fnUntraced(function* (
    agent_id: AgentId,
    bindings: Effect.Effect<RunBindings, AgentRefused>,
    options: StartAgent
  ) {
    yield* known(agent_id)
    if (held !== undefined && runs.of(agent_id) === undefined)
      return yield* new AgentRefused({ kind: "NOT_READY", agent_id, ...held })
    const fresh = options.fresh ?? false
    const request = { agent_id, bindings: yield* bindings, fresh, awaiting: false, unattended: false }
    pauses.end(agent_id)
    return yield* Effect.mapError(runs.start(request), withRestartHint(agent_id, options))
  })
  return {
    begin,
    hold: (reason: typeof held) => Effect.sync(() => void (held = reason))
  }
})

/** The stops that people ask for, alone or before another start. */
const makeStops = Effect.fnUntraced(function* (runs: Runs, pauses: Pauses) {
  const sessions = yield* SessionStore
  const views = yield* AgentViews
  const known = yield* makeKnown
  const starts = yield* makeStartBindings

  const stop = Effect.fnUntraced(function* (agent_id: AgentId, again = false) {
    yield* known(agent_id)
    const running = runs.of(agent_id)
    if (pauses.end(agent_id) && running === undefined) {
      // A paused agent does not run; only its session is still active.
      const latest = Option.getOrUndefined(yield* databaseDefect(sessions.latest(agent_id)))
      if (latest?.status === "active") yield* databaseDefect(sessions.end(latest.session_id, "stopped"))
      return yield* views.end(agent_id, "stopped", null)
    }
    if (running === undefined) return yield* notRunning(agent_id)
    yield* runs.stop(running, again)
    return views.of(agent_id)
  })

  // Starts the agent that it stopped even if the caller has left; only choird's own end prevents that.
  const restart = Effect.fn("Lifecycle.restart")(function* (
    agent_id: AgentId,
    options: RestartAgent = {},
    rebound?: Rebound
  ) {
    yield* known(agent_id)
    const running = runs.of(agent_id)
    if (running === undefined) return yield* notRunning(agent_id)
    const bindings = yield* starts.again(agent_id, running.request.bindings, options, rebound)
    const restarted = yield* Deferred.make<AgentView, AgentRefused>()
    const work = Effect.gen(function* () {
      yield* stop(agent_id, true)
      return yield* runs.start({ agent_id, bindings, fresh: false, awaiting: false, unattended: false })
    })
    yield* runs.fork(Effect.asVoid(Deferred.into(work, restarted)))
    return yield* Deferred.await(restarted)
  })
  return { stop, restart }
})

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const views = yield* AgentViews
  const heartbeats = yield* makeHeartbeats
  const known = yield* makeKnown
  const services = yield* runServices
  const starts = yield* makeStartBindings
  const runs = yield* makeRuns
  const pauses = yield* makePauses(runs)
  const { begin, hold } = yield* makeStarts(runs, pauses)
  const { restart, stop } = yield* makeStops(runs, pauses)

  return Lifecycle.of({
    list: Effect.map(config.current, ({ config }) => {
      const agents = Object.keys(config.agents).map((id) => AgentId.make(id))
      // One that was deleted is listed until its run is over.
      const running = views.known().filter((agent_id) => views.of(agent_id).bindings !== null)
      return [...new Set([...agents, ...running])].map(views.of)
    }),
    view: (agent_id) => Effect.map(known(agent_id), () => views.of(agent_id)),
    start: Effect.fn("Lifecycle.start")((agent_id, named) => begin(agent_id, starts.named(agent_id, named), named)),
    startAsBefore: Effect.fn("Lifecycle.startAsBefore")((agent_id, before, rebound) =>
      begin(agent_id, starts.asBefore(agent_id, before, rebound), {})
    ),
    startInChat: Effect.fn("Lifecycle.startInChat")((agent_id, dm, named) =>
      begin(agent_id, starts.inChat(agent_id, dm, named), named)
    ),
    stop: Effect.fn("Lifecycle.stop")((agent_id) => stop(agent_id)),
    rebind: Effect.fn("Lifecycle.rebind")(function* (agent_id, models) {
      const { bindings } = views.of(agent_id)
      return bindings === null
        ? yield* notRunning(agent_id)
        : yield* views.change(agent_id, { bindings: { ...bindings, ...models } })
    }),
    restart,
    pause: pauses.pause,
    wake: pauses.wake,
    paused: pauses.paused,
    hold,
    recover: databaseDefect(recoverRuns((request) => Effect.asVoid(Effect.orDie(runs.launch(request))))).pipe(
      Effect.provideContext(services)
    ),
    ...heartbeats,
    changes: views.changes,
    follow: views.follow
  })
})
