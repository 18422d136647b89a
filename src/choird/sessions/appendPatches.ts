/** One heartbeat's patches, from the lock of the session's row to the answer (D4, D6). */
import { Context, Effect, Result } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import type { Caller, Heartbeat } from "#schema/AgentApi.ts"
import { type ChoirEvent, isKnownEvent } from "#schema/Event.ts"
import type { AgentId, ResourceName, SessionId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { isLasting, refusesContent, sqlProblem } from "#src/choird/database/sqlState.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { genesis } from "#src/shared/events/hashChain.ts"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { applyProjections, tellingsOf } from "./projections.ts"
import { carryOver } from "./carryOver.ts"
import { admit, decide, type Decision, prepare, type Prepared } from "./decideAppend.ts"
import { hasRoom } from "./logLimit.ts"
import { headHash } from "./readLog.ts"
import { freezeSession } from "./SessionStore.ts"
import { applyRuns } from "./runRows.ts"
import { SessionStates } from "./SessionStates.ts"
import { bytesOf, insertEvents, lockSession, readDigests } from "./storedEvents.ts"
import { AppendRules } from "./AppendRules.ts"
import { labelWorkspace, workspacePath } from "./WorkspaceLabels.ts"

/** The stored and folded events, with the digest of the session's last event and the DMs that have something new. */
interface Committed {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
  readonly hash: Buffer
  /** Whether the session holds events that are not known here; the state is the one before them. */
  readonly isNewer: boolean
  readonly dms: ReadonlyArray<ResourceName>
  /** Canonical bytes of the events. */
  readonly bytes: number
}

/** Agents whose events the database does not take that are known. */
const UNSTORED_AGENTS_MAX = 100

/** An agent whose newest events the database did not take, for a reason that is not theirs and does not pass. */
export interface Unstored {
  readonly agent_id: AgentId
  /** In the words of the server. */
  readonly problem: string
}

type Announce = (committed: Committed) => Effect.Effect<void>

/** Stores a heartbeat's events, or decides why not, under the lock of the session's row. */
const commit = Effect.fnUntraced(function* (
  caller: Caller,
  heartbeat: Heartbeat,
  prepared: Prepared,
  announce: Announce
) {
  const sql = yield* SqlClient.SqlClient
  const rules = yield* AppendRules
  const states = yield* SessionStates
  const { agent_id, session_id } = caller
  const session = yield* lockSession(session_id)
  const early = admit(session, caller.epoch, heartbeat, prepared)
  if (session === undefined || prepared.type !== "chain" || early !== undefined)
    return { decision: early ?? FENCED, last_rev: session?.last_rev ?? 0 }
  const { dms: bound, head_hash, last_rev, log_bytes, workspace } = session
  const hash_before = headHash(session_id, head_hash)
  const stored = yield* states.at(session_id, last_rev, hash_before)
  const held = { ...stored, head: { rev: last_rev, hash: hash_before } }
  const digests = yield* earlierDigests(session_id, heartbeat, last_rev)
  const decision = decide(heartbeat, prepared.links, held, (rev) =>
    rev === 0 ? genesis(session_id) : digests.get(rev)
  )
  if (decision.type !== "store") return { decision, last_rev }
  const { folded, hash, links, newer, state } = decision
  const events = links.flatMap(({ event }) => (isKnownEvent(event) ? [event] : []))
  const judged = yield* rules.judge(session_id, stored.at.state, events)
  if (Result.isFailure(judged)) return { decision: { type: "conflict", reason: judged.failure } as const, last_rev }
  const { config } = yield* (yield* ConfigStore).current
  // The agent is asked to end long before, and nothing is wrong with the session.
  const bytes = bytesOf(links)
  if (!hasRoom(log_bytes, bytes, config.retention)) return { decision: { type: "frozen" } as const, last_rev }
  const labelled = newer !== undefined || [stored.at.state, state].some(isLabelled) || events.some(endsLabels)
  const origin = { session_id, agent_id, dms: bound, workspace, labelled }
  const tellings = yield* tellingsOf(config, origin, events)
  // Before anything is written, since the agent repeats the request until somebody reads.
  if (tellings === undefined) return { ...BACKOFF, last_rev }
  yield* insertEvents(session_id, links, hash)
  const dms = yield* applyProjections(config, origin, events, tellings)
  yield* carryOver(origin, events, state)
  yield* labelWorkspace(workspacePath(config, workspace), session_id, state, newer !== undefined)
  yield* applyRuns({ session_id, agent_id }, stored.at.state, folded)
  yield* judged.success
  yield* sql.afterCommit(
    announce({ session_id, agent_id, events: folded, state, hash, isNewer: newer !== undefined, dms, bytes })
  )
  return { decision, last_rev }
})

const settle = Effect.fnUntraced(function* (caller: Caller, heartbeat: Heartbeat, announce: Announce) {
  const settled = yield* commit(caller, heartbeat, prepare(heartbeat), announce)
  if (settled.decision.type === "conflict") {
    yield* freezeSession(caller.session_id, settled.decision.reason)
    yield* Effect.logError(`session ${caller.session_id} is frozen: ${settled.decision.reason}`)
  }
  return settled
})

/** Events that the database refuses for what they hold would be sent again for ever, and hold up all that follow. */
const refused = Effect.fnUntraced(function* (caller: Caller, { base_rev, new_rev }: Heartbeat, problem: string) {
  const reason = `the database refuses the events ${base_rev + 1} to ${new_rev}: ${problem}`
  yield* freezeSession(caller.session_id, reason)
  yield* Effect.logError(`session ${caller.session_id} is frozen: ${reason}`)
  return { decision: { type: "conflict", reason } as const, last_rev: base_rev }
})

/** `announce` runs after the commit, and only then. */
export const makeAppendPatches = Effect.fnUntraced(function* (announce: Announce) {
  const onDatabase = yield* useDatabase
  const context = Context.pick(
    AppendRules,
    ConfigStore,
    SessionStates
  )(yield* Effect.context<AppendRules | ConfigStore | SessionStates>())
  // By agent, since an agent has one active session at a time (invariant 11).
  const lock = yield* makeKeyedLock
  const unstored = new BoundedMap<AgentId, Unstored>(UNSTORED_AGENTS_MAX)

  const append = (caller: Caller, heartbeat: Heartbeat): Effect.Effect<Settled> =>
    caller.standing === "superseded"
      ? Effect.succeed({ decision: FENCED, last_rev: 0 })
      : Effect.suspend(() => inTransaction(settle(caller, heartbeat, announce))).pipe(
          Effect.catchIf(
            (error): error is SqlError.SqlError => SqlError.isSqlError(error) && refusesContent(error),
            (error) => refused(caller, heartbeat, sqlProblem(error))
          ),
          Effect.tapError((error) =>
            Effect.sync(() => {
              const { agent_id } = caller
              if (SqlError.isSqlError(error) && isLasting(error))
                unstored.set(agent_id, { agent_id, problem: sqlProblem(error) })
            })
          ),
          Effect.tap(() => Effect.sync(() => void unstored.delete(caller.agent_id))),
          lock(caller.agent_id),
          onDatabase,
          Effect.provideContext(context),
          Effect.catchTag("DatabaseAway", () => Effect.succeed(BACKOFF))
        )
  return { append, unstored: Effect.sync((): ReadonlyArray<Unstored> => [...unstored.values()]) }
})

/** Whether any lane has text from outside. */
const isLabelled = ({ cores, edge }: SessionState): boolean =>
  edge.tainted || [...cores.values()].some(({ tainted }) => tainted)

/** Whether an event is the end of a label, which may have begun among the same events. */
const endsLabels = (event: ChoirEvent): boolean =>
  event.event_type === "CompactionCommitted" && event.payload.split?.ended === true

/** The decision about a request, and the session's newest revision before it. */
export interface Settled {
  readonly decision: Decision | typeof BACKOFF.decision
  readonly last_rev: number
}
const FENCED: Decision = { type: "fenced" }
const BACKOFF = { decision: { type: "backoff" }, last_rev: 0 } as const

/** The digests that a request with stored revisions is compared by; none for the usual one, which starts at the head. */
const earlierDigests = (session_id: SessionId, { base_rev, new_rev }: Heartbeat, last_rev: number) => {
  const revs = [base_rev, new_rev].filter((rev) => rev > 0 && rev < last_rev)
  return revs.length === 0 ? Effect.succeed(new Map<number, Buffer>()) : readDigests(session_id, revs)
}
