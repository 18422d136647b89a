/**
 * Takes the events of a container that outlived an earlier choird, before the container is removed (D15): its socket is opened where
 * the container has it mounted, its stored lease is valid, and choird waits while it sends what choird lacks.
 */
import { Effect, Option, Schema } from "effect"
import { ContainerId, ContainerRuntime, type DockerContainerId } from "#src/choird/runtime/ContainerRuntime.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { type Liveness, openLiveness } from "./LiveEpochs.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { AgentSockets } from "#src/choird/listeners/AgentSockets.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentViews } from "./AgentViews.ts"

/** The longest silence of a container that outlived choird before choird gives it up; an agent on a slow machine is not silent (D15). */
const ADOPTED_SILENCE_MS_MAX = 10_000
/** The longest wait for such a container to send the events that choird lacks, however busy it is. */
const ADOPTED_FLUSH_MS_MAX = 60_000
/** The interval between checks of what it sent. */
const ADOPTED_LOOK_MS = 100
/** Checks without news after which it has sent everything. */
const ADOPTED_QUIET_LOOKS = 3

const decodeContainer = Schema.decodeUnknownOption(ContainerId)

/** The revision up to which choird has every event that the agent reported, unchanged for several checks; none once the agent is silent. */
const flushed = Effect.fnUntraced(function* ({ session_id }: SessionRow, liveness: Liveness) {
  const sessions = yield* SessionStore
  const began_ms = yield* monotonicMs
  let quiet = 0
  let seen: number | null = null
  while (quiet < ADOPTED_QUIET_LOOKS) {
    yield* Effect.sleep(ADOPTED_LOOK_MS)
    const { head_rev, last_heartbeat_ms } = liveness
    const row = Option.getOrUndefined(yield* retryDatabase(sessions.get(session_id)))
    quiet = head_rev !== null && head_rev === seen && (row?.last_rev ?? 0) >= head_rev ? quiet + 1 : 0
    seen = head_rev
    const silent_ms = (yield* monotonicMs) - Math.max(began_ms, last_heartbeat_ms)
    if (silent_ms > ADOPTED_SILENCE_MS_MAX) return Option.none<number>()
  }
  return Option.fromNullishOr(seen)
})

const heard = Effect.fnUntraced(function* (row: SessionRow, id: DockerContainerId) {
  const runtime = yield* ContainerRuntime
  const sockets = yield* AgentSockets
  const { session_id } = row
  const liveness = yield* openLiveness(row)
  const { dir } = yield* sockets.open(session_id)
  if (!(yield* runtime.adopt(id, dir))) return
  const rev = yield* Effect.timeoutOption(flushed(row, liveness), ADOPTED_FLUSH_MS_MAX)
  yield* Effect.logInfo(
    Option.match(Option.flatten(rev), {
      onNone: () => "its earlier container did not flush in time",
      onSome: (rev) => `its earlier container flushed up to revision ${rev}`
    })
  )
}, Effect.scoped)

/** The agent of an active session, as an earlier choird left it. A failure here costs only what was not acknowledged. */
export const adoptContainer = Effect.fn("Run.adoptContainer")(function* (row: SessionRow) {
  const store = yield* ConfigStore
  const views = yield* AgentViews
  const id = Option.getOrUndefined(decodeContainer(row.container))
  if (id?.type !== "docker") return
  const { agent_id, epoch, image_version, session_id } = row
  const { version } = yield* store.current
  // Set before the agent is heard: the view says who the caller is.
  yield* views.change(agent_id, {
    session_id,
    epoch,
    image_version,
    config_version: version,
    reason: "choird is receiving what it did while choird was not running"
  })
  const reason = yield* heard(row, id).pipe(
    Effect.as(null),
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning(`its earlier container cannot flush: ${error.message}`),
        error._tag === "ContainerError" && error.reason === "unavailable" ? `it waits: ${error.message}` : null
      )
    )
  )
  yield* views.change(agent_id, { reason })
})
