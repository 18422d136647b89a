/** The chunks of an agent's sessions: made of what left the window of a session, and of all of it once it is idle or ended, from a job table, and moved to long-term memory as sessions grow old. */
import { Context, Effect, Layer, Queue, type Scope, Semaphore, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, type SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type DatabaseAway, inTransaction, retryDatabase, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { askForChunks } from "#src/choird/queues/memoryJobs.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { asAgent } from "./agentTables.ts"
import { hasMemory } from "./embeddingRows.ts"
import { askForIdleSessions } from "./idleSessions.ts"
import { makeMemorySteps } from "./memorySteps.ts"
import { deleteDocuments } from "./sessionDocuments.ts"

/** The time between two looks for jobs that nobody announced. */
const MEMORY_LOOK_MS = 30_000

export class SessionMemory extends Context.Service<
  SessionMemory,
  {
    /** Looks for jobs at once: a session ended. */
    readonly wake: Effect.Effect<void>
    /** Works in the background until the scope closes. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
    /** Works until no job is due. */
    readonly drain: Effect.Effect<void>
    /**
     * Deletes a session's chunks and summaries, also the one that its agent made at its end, and asks for new chunks of what its log still
     * holds. The log of an archived session is not read.
     */
    again(agent_id: AgentId, session_id: SessionId): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/SessionMemory") {
  static readonly layer = Layer.effect(
    SessionMemory,
    Effect.suspend(() => make())
  )
}

/** `details_max` are the chunks of long-term detail of one agent, for tests alone. */
export const make = Effect.fnUntraced(function* (details_max?: number) {
  const config = yield* ConfigStore
  const sessions = yield* SessionStore
  const onDatabase = yield* useDatabase
  const { next } = yield* makeMemorySteps(details_max)
  const woken = yield* Queue.sliding<void>(1)
  const one = yield* Semaphore.make(1)
  const wake = Effect.asVoid(Queue.offer(woken, undefined))

  const agents = Effect.map(config.current, ({ config: { agents } }) =>
    Object.keys(agents).map((id) => AgentId.make(id))
  )

  /** A step of each agent in turn, until none has work left. */
  const drain = Effect.gen(function* () {
    yield* retryDatabase(onDatabase(Effect.flatMap(agents, askForIdleSessions)))
    for (let worked = true; worked;) {
      worked = false
      for (const agent_id of yield* agents) worked = (yield* next(agent_id)) || worked
    }
  }).pipe(one.withPermit)

  const loop = Effect.andThen(drain, Effect.timeoutOption(Queue.take(woken), MEMORY_LOOK_MS)).pipe(Effect.forever)

  const run = Effect.gen(function* () {
    yield* sessions.ended.pipe(
      Stream.runForEach(() => wake),
      restarted("the watch for ended sessions"),
      Effect.forkScoped({ startImmediately: true })
    )
    yield* loop.pipe(restarted("the worker that adds sessions to memory"), Effect.forkScoped)
  })

  return SessionMemory.of({
    wake,
    run,
    drain,
    again: Effect.fn("SessionMemory.again")(function* (agent_id, session_id) {
      yield* onDatabase(forgetChunks(agent_id, session_id))
      yield* wake
    })
  })
})

const forgetChunks = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const known = yield* sql`UPDATE choir_control.sessions SET memory_state = NULL, memory_tier = NULL, summary = NULL
    WHERE session_id = ${session_id} AND agent_id = ${agent_id} RETURNING 1`
  if (known.length > 0) yield* askForChunks(session_id)
  if (yield* hasMemory(agent_id)) yield* asAgent(agent_id, deleteDocuments(agent_id, session_id))
}, inTransaction)
