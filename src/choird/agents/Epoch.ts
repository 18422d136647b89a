/**
 * One epoch of a session: a token, a socket, a container, an agent that says hello, and the watch over it. All of it belongs to
 * one scope, so that nothing of an epoch outlives it (R8).
 */
import { Deferred, Effect, Exit, Fiber, Option, type Redacted, type Scope } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { SessionId } from "#schema/Ids.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import {
  AGENT_INSPECT_MS_MAX,
  type Condition,
  type Container,
  type ContainerError,
  type ContainerExit,
  ContainerRuntime
} from "#src/choird/runtime/ContainerRuntime.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { SocketRefused } from "#src/shared/wire/sockets.ts"
import type { EpochEnd } from "./decideRestart.ts"
import type { AgentPrograms } from "#src/choird/runtime/AgentCommand.ts"
import { awaitSilence, type LiveEpochs, type Liveness, openLiveness } from "./LiveEpochs.ts"
import type { Image } from "#src/choird/images/Images.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"

/** The time that a container may take to go before the agent's status says so, in ms. */
const CONTAINER_LINGERS_MS = 1000
/** The time from the start of an agent's container to its hello. */
const AGENT_START_MS_MAX = 30_000
/** A graceful stop, from the signal to the goodbye, beside `memory.summary_timeout_ms` for the session's summary (D18). */
const AGENT_STOP_MS_MAX = 30_000
/** The time from an agent's accepted goodbye to its exit; then it is killed. */
const AGENT_EXIT_MS_MAX = 5000
/** The longest wait for the last lines of an ended agent to reach its log. */
const AGENT_OUTPUT_MS_MAX = 500
/** The interval between checks for a frozen session while its agent runs. */
const FROZEN_LOOK_MS = 5000

export interface EpochPlan {
  readonly row: SessionRow
  readonly bindings: ResourceBindings
  readonly config: Config
  readonly agent_number: number
  /** The silence that the agent is currently allowed. */
  readonly silence_ms_max: Effect.Effect<number>
  /** The reason to end a session with this many bytes of events; undefined for one that may continue. */
  readonly fullAt: (log_bytes: number) => Effect.Effect<string | undefined>
  /** The time that its model may take to summarize the session, at this moment. */
  readonly summary_ms_max: Effect.Effect<number>
  readonly image: Image
  readonly programs: AgentPrograms
  readonly token: Redacted.Redacted
  /** Done once the operator wants the agent to stop. */
  readonly stop: Deferred.Deferred<void>
  /** Runs when the agent has said hello. */
  readonly onReady: Effect.Effect<void>
  /** Runs when the start has to wait for something unavailable. */
  readonly onWait: (why: string) => Effect.Effect<void>
  /** Runs when the agent is about to be stopped. */
  readonly onStopping: Effect.Effect<void>
  /** Runs when the container of an ended epoch is not gone after CONTAINER_LINGERS_MS; `crash` is the reason of a crash. */
  readonly onLingering: (crash: string | undefined) => Effect.Effect<void>
}

const exitText = ({ code, reason, signal }: ContainerExit): string => {
  switch (reason) {
    case "exited":
      return `it exited with code ${code}`
    case "out_of_memory":
      return "it ran out of memory"
    case "setup_failed":
      return `its container could not be set up (code ${code})`
    case "killed":
    case "signalled":
      return `it was ended by ${signal}`
  }
}

const openContainer = Effect.fnUntraced(function* (plan: EpochPlan) {
  const runtime = yield* ContainerRuntime
  const sessions = yield* SessionStore
  const sockets = yield* AgentSockets
  const { agent_number, bindings, config, image, onWait, programs, row, token } = plan
  const { cpus, memory_mb, pids } = config.runtime
  const { agent_id, epoch, session_id } = row
  const socket = yield* sockets.open(session_id)
  const container = yield* runtime.start({
    agent_id,
    agent_number,
    session_id,
    epoch,
    image_version: image.image_version,
    image: image.path,
    ...programs,
    socket_dir: socket.dir,
    ...(socket.endpoint === undefined ? {} : { endpoint: socket.endpoint }),
    workspace: config.workspaces[bindings.workspace]?.path ?? "",
    bootstrap_token: token,
    limits: { cpus, memory_mb, pids },
    onWait
  })
  yield* retryDatabase(sessions.recordContainer(session_id, epoch, container.id))
  return container
})

/** The reason in the session's row to end the agent. This catches one that ignores the news of its frozen session. */
const awaitRow = Effect.fnUntraced(function* ({
  fullAt,
  row: { session_id }
}: EpochPlan): Effect.fn.Return<Cause, never, SessionStore> {
  const sessions = yield* SessionStore
  for (;;) {
    yield* Effect.sleep(FROZEN_LOOK_MS)
    // A database that does not answer says nothing about the agent.
    const row = yield* Effect.option(sessions.get(session_id))
    const known = Option.getOrUndefined(Option.flatten(row))
    if (known === undefined) continue
    if (known.frozen_reason !== null) return { type: "frozen", reason: known.frozen_reason }
    const full = yield* fullAt(known.log_bytes)
    if (full !== undefined) return { type: "full", reason: full }
  }
})

/** The reason why the agent has to go, while its container may still live. */
type Cause =
  | { readonly type: "goodbye"; readonly reason: string }
  | { readonly type: "stop" }
  /** The agent sent events that are not known here; it must send the rest and exit (D53). */
  | { readonly type: "newer" }
  | { readonly type: "frozen"; readonly reason: string }
  /** The session's log is at its limit; the agent must send the rest and exit. */
  | { readonly type: "full"; readonly reason: string }
  | { readonly type: "crash"; readonly reason: string }

/** The causes that the agent hears of, with time to say goodbye. */
const ENDED_GRACEFULLY: ReadonlySet<Cause["type"]> = new Set(["stop", "newer", "full"])

const crash = (reason: string): Cause => ({ type: "crash", reason })

/**
 * The crash of a silent agent, by the state of its container: if it is gone, its exit says what the agent died of; if it runs, the
 * agent hangs (E8).
 */
const silentCrash = Effect.fnUntraced(function* ({ exit }: Container, condition: Condition, silence: string) {
  switch (condition) {
    case "gone": {
      const told = yield* Effect.timeoutOption(exit, AGENT_INSPECT_MS_MAX)
      return crash(Option.match(told, { onNone: () => "its container is gone", onSome: exitText }))
    }
    case "paused":
      return crash(`${silence}; its container is paused`)
    case "running":
      return crash(`${silence}; its container is still running, so the agent hangs`)
    case "unknown":
      return crash(`${silence}; it is unknown whether its container is running`)
  }
})

/** An agent that misses a heartbeat may be dead although its container's exit was never reported; this does not wait for the report (E8). */
const awaitGone = Effect.fnUntraced(function* (
  container: Container,
  last_heartbeat_ms: (now_ms: number) => number,
  silence_ms_max: Effect.Effect<number>
) {
  const missed_ms = Effect.map(silence_ms_max, (ms) => ms / 2)
  for (;;) {
    const ms = yield* awaitSilence(last_heartbeat_ms, missed_ms)
    const condition = yield* container.condition
    if (condition === "gone") return yield* silentCrash(container, condition, `it was silent for ${ms} ms`)
  }
})

/** An agent that is heard while its container is inspected does not hang. */
const awaitHung = Effect.fnUntraced(function* (
  container: Container,
  last_heartbeat_ms: (now_ms: number) => number,
  silence_ms_max: Effect.Effect<number>
) {
  for (;;) {
    const ms = yield* awaitSilence(last_heartbeat_ms, silence_ms_max)
    const asked_ms = yield* monotonicMs
    const condition = yield* container.condition
    const isHeard = last_heartbeat_ms(yield* monotonicMs) >= asked_ms
    if (condition === "gone" || !isHeard) {
      return yield* silentCrash(container, condition, `it was silent for ${ms} ms`)
    }
  }
})

const watch = Effect.fnUntraced(function* (plan: EpochPlan, liveness: Liveness, container: Container) {
  const sessions = yield* SessionStore
  const signals = yield* Signals
  const { onReady, onStopping, row, silence_ms_max, stop, summary_ms_max } = plan
  const { session_id } = row
  const goodbye = Effect.map(Deferred.await(liveness.goodbye), (reason): Cause => ({ type: "goodbye", reason }))
  // The handler reports the goodbye before the agent can know that it was accepted.
  const exited = Effect.flatMap(container.exit, (exit) =>
    Deferred.isDoneUnsafe(liveness.goodbye) ? goodbye : Effect.succeed(crash(exitText(exit)))
  )
  const stopped = Effect.as(Deferred.await(stop), { type: "stop" } satisfies Cause)
  const late = Effect.delay(
    Effect.flatMap(container.condition, (condition) =>
      silentCrash(container, condition, `it did not say hello within ${AGENT_START_MS_MAX / 1000} s`)
    ),
    AGENT_START_MS_MAX
  )
  const early = yield* Effect.raceAllFirst([Deferred.await(liveness.hello), exited, stopped, late])
  if (early !== undefined) return { cause: early, ready: false }

  liveness.last_heartbeat_ms = yield* monotonicMs
  yield* onReady
  const last_heartbeat_ms = (now_ms: number) => (liveness.unanswered > 0 ? now_ms : liveness.last_heartbeat_ms)
  const silent = Effect.raceFirst(
    awaitHung(container, last_heartbeat_ms, silence_ms_max),
    awaitGone(container, last_heartbeat_ms, silence_ms_max)
  )
  const newer = Effect.as(Deferred.await(liveness.newer), { type: "newer" } satisfies Cause)
  const running = yield* Effect.raceAllFirst([exited, silent, awaitRow(plan), goodbye, stopped, newer])
  if (!ENDED_GRACEFULLY.has(running.type)) return { cause: running, ready: true }

  yield* onStopping
  // The session's summary has its own time beside that of the stop itself.
  const limit_ms = AGENT_STOP_MS_MAX + (yield* summary_ms_max)
  // If the database is away, the agent does not hear of it, but is still stopped when its time is up.
  const asked = Effect.andThen(signals.stop(session_id, limit_ms), Effect.never)
  const tooLate = Effect.as(Effect.sleep(limit_ms), running)
  const last = yield* Effect.raceAllFirst<Effect.Effect<Cause>>([exited, silent, goodbye, tooLate, asked])
  if (last.type === "goodbye") return { cause: running.type === "stop" ? last : running, ready: true }
  const known = yield* Effect.option(sessions.get(session_id))
  yield* Effect.logWarning("the agent did not say goodbye; what it committed after the acknowledged revision is lost", {
    why: last.type === "crash" ? last.reason : `it took longer than ${limit_ms / 1000} s`,
    acked_rev: known._tag === "Some" && known.value._tag === "Some" ? known.value.value.last_rev : "not known"
  })
  return { cause: running, ready: true }
})

/** Revokes the agent's token: at once in memory, and in its row when the database allows it. */
const revoke = Effect.fnUntraced(function* (session_id: SessionId) {
  const tokens = yield* Tokens
  yield* Effect.catchTag(tokens.revoke(session_id), "DatabaseAway", ({ problem }) =>
    Effect.logWarning("cannot revoke the token in the database", { problem })
  )
})

/** The next epoch's token supersedes this one's: a process that still uses the old one learns that it is fenced (D8, E13). */
const fence = Effect.fnUntraced(function* ({ agent_id, epoch, session_id }: SessionRow) {
  const tokens = yield* Tokens
  return yield* Effect.catchTag(tokens.bootstrap(session_id, agent_id, epoch + 1), "DatabaseAway", () =>
    Effect.as(revoke(session_id), undefined)
  )
})

/**
 * Starts the agent and returns how the epoch ended, after its token was fenced and its container is gone, in this order (D8).
 * Fails when the container cannot be started, or with `stuck` when it cannot be ended.
 */
export const runEpoch = Effect.fn("Epoch.run")(function* (
  plan: EpochPlan
): Effect.fn.Return<
  EpochEnd,
  ContainerError | SocketRefused,
  AgentSockets | ContainerRuntime | LiveEpochs | LogFiles | Scope.Scope | SessionStore | Signals | Tokens
> {
  const logs = yield* LogFiles
  const { row } = plan
  const liveness = yield* openLiveness(row)
  const container = yield* openContainer(plan)
  const written = yield* Effect.forkScoped(logs.follow(row.agent_id, row.session_id, container.output))
  const { cause, ready } = yield* watch(plan, liveness, container)
  if (cause.type === "goodbye" || cause.type === "newer" || cause.type === "full")
    yield* Effect.timeoutOption(container.exit, AGENT_EXIT_MS_MAX)
  const token = cause.type === "crash" ? yield* fence(row) : yield* revoke(row.session_id)
  yield* Effect.logInfo("the agent's token is no longer valid")
  yield* Effect.logInfo(`epoch ${row.epoch} ends: ${cause.type}; its container is killed unless it is gone`)
  const told = Effect.delay(plan.onLingering(cause.type === "crash" ? cause.reason : undefined), CONTAINER_LINGERS_MS)
  yield* Effect.raceFirst(container.kill, Effect.andThen(told, Effect.never))
  yield* Effect.logInfo("its container is gone")
  const last_words = yield* Effect.timeoutOption(Effect.exit(Fiber.join(written)), AGENT_OUTPUT_MS_MAX)
  switch (cause.type) {
    case "crash":
      return {
        type: "crashed",
        reason: cause.reason,
        ready,
        token: token ?? undefined,
        last_words: Option.getOrUndefined(Option.flatMap(last_words, Exit.getSuccess))
      }
    case "stop":
      return { type: "stopped" }
    case "goodbye":
    case "frozen":
    case "full":
    case "newer":
      return cause
  }
})
