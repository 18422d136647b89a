/**
 * Orders of people to forget: a fact, words, or a part of a session, with all that derives from it. The order is a row until it is carried out,
 * and each step can be done again, so that a choird that dies in the middle ends it later.
 */
import { Clock, Context, Effect, Layer, Schema, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { DocumentId, FactKey, Forget, ForgetPlan, ForgetReach, ForgetReceipt } from "#schema/Memory.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type DatabaseAway, inTransaction, retryDatabase, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { hasMemory } from "./embeddingRows.ts"
import {
  chunkedSessions,
  countRemoved,
  deleteChunks,
  deleteFacts,
  emptyTexts,
  factsOf,
  type Removed,
  removedBy
} from "./forgetRows.ts"
import { type Reached, reachIn, Target, targetOf } from "./forgetTarget.ts"
import { ForgetWords } from "./forgetWords.ts"
import { SessionMemory } from "./SessionMemory.ts"

/** Events that one order may reach: words that stand in more are too common. */
export const FORGET_EVENTS_MAX = 20_000

export class ForgetTooMuch extends Schema.TaggedError<ForgetTooMuch>()("ForgetTooMuch", { events: Schema.Natural }) {
  override get message() {
    return `${this.events} events hold this, and at most ${FORGET_EVENTS_MAX} are forgotten at once: give more words, or delete sessions`
  }
}

export class Forgetting extends Context.Service<
  Forgetting,
  {
    /** The reach of an order; changes nothing. */
    plan(agent_id: AgentId, forget: Forget): Effect.Effect<ForgetPlan, DatabaseAway>
    /**
     * Carries an order out, to the end even if nobody waits for it any longer. An agent whose session it reaches is stopped for a moment and
     * continues without the texts.
     */
    forget(agent_id: AgentId, forget: Forget, who: string): Effect.Effect<ForgetReceipt, ForgetTooMuch | DatabaseAway>
    /** Ends the orders that an earlier life of choird began. */
    readonly finish: Effect.Effect<void>
  }
>()("choir/choird/Forgetting") {
  static readonly layer = Layer.effect(
    Forgetting,
    Effect.suspend(() => make)
  )
}

interface SessionHead {
  readonly session_id: SessionId
  readonly last_rev: number
  readonly active: boolean
  readonly archived: boolean
}

const sessionsOf = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<SessionHead>`SELECT session_id, last_rev, status = 'active' AS active, archive IS NOT NULL AS archived
    FROM choir_control.sessions WHERE agent_id = ${agent_id} ORDER BY started_at, session_id`
})

const archivedText = (session_id: SessionId) =>
  `the session ${session_id} is archived, and its file still holds the text; to delete both: choirctl session delete ${session_id}`
const fixedText = (session_id: SessionId, fixed: number) =>
  `${fixed} events of ${session_id} are version 1 events, which cannot lose their text; to delete the session: choirctl session delete ${session_id}`
const BACKUPS =
  "backups and exports that were made before keep it, and so do files in the workspace and the logs of other agents that found it here"

/** The reach of words that are in no session. */
const NO_SESSION: Reached = { session_id: "" as SessionId, revs: [], calls: new Set(), inbox: new Set() }

/** The reach of a target in each session of an agent. A session that was reached before counts, even if its log holds nothing of it any longer. */
const reach = Effect.fnUntraced(function* (agent_id: AgentId, target: Target) {
  const chunked = (yield* hasMemory(agent_id)) ? yield* chunkedSessions(agent_id, new ForgetWords(target.phrases)) : []
  const named = new Set<string>([...chunked, ...target.sessions])
  const sessions = yield* sessionsOf(agent_id)
  const reached = yield* Effect.forEach(sessions, (session) =>
    Effect.map(session.archived ? Effect.undefined : reachIn(target, session), (found) => ({
      session,
      events: found?.revs.length ?? 0
    }))
  )
  const isInFile = ({ archived, session_id }: SessionHead) =>
    archived && target.spans.some((span) => span.session_id === session_id)
  return reached.filter(({ events, session }) => events > 0 || named.has(session.session_id) || isInFile(session))
})

const planOf = Effect.fnUntraced(function* (agent_id: AgentId, target: Target) {
  const reached = yield* reach(agent_id, target)
  const facts = (yield* hasMemory(agent_id)) ? yield* factsOf(agent_id, target) : []
  return {
    facts: facts.map(({ id, key, text }) => ({ id: id as DocumentId, key: key as FactKey | null, text })),
    sessions: reached.map(({ events, session: { active, archived, session_id } }): ForgetReach => ({
      session_id,
      events,
      archived,
      running: active
    }))
  } satisfies ForgetPlan
})

/** Carries out an order: stops the agent if it runs in a session that is reached, removes everything, and wakes it again. */
const makeCarryOut = Effect.gen(function* () {
  const onDatabase = yield* useDatabase
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const memory = yield* SessionMemory

  /** A step of an order with its count, in one transaction. */
  const counted = (order_id: string, step: Effect.Effect<Partial<Removed>, SqlError.SqlError, SqlClient.SqlClient>) =>
    onDatabase(inTransaction(Effect.flatMap(step, (removed) => countRemoved(order_id, removed))))

  /** One session: first the texts beside its log, which its events name, then the events. Answers what stays. */
  const forgetIn = Effect.fnUntraced(function* (
    { agent_id, id, target }: Order,
    session_id: SessionId,
    found: Reached
  ) {
    const words = new ForgetWords(target.phrases)
    if (found.revs.length > 0)
      yield* counted(
        id,
        Effect.map(emptyTexts(agent_id, found, words), (texts) => ({ texts }))
      )
    const { fixed } = yield* events.forget(session_id, found.revs, (reduced) => countRemoved(id, { events: reduced }))
    return fixed === 0 ? [] : [fixedText(session_id, fixed)]
  })

  return Effect.fnUntraced(function* (order: Order) {
    const { agent_id, id, target } = order
    // A turn that runs may hold the text in its prompt, and would write it down after the look at its log.
    const isRunning = (yield* onDatabase(sessionsOf(agent_id))).some(({ active }) => active)
    const isPaused = isRunning ? yield* lifecycle.pause(agent_id, "something is being forgotten") : false
    return yield* Effect.gen(function* () {
      const now = (yield* onDatabase(reach(agent_id, target))).map(({ session }) => session)
      const open = now.filter(({ archived }) => !archived)
      const fixed = yield* Effect.forEach(open, (session) =>
        Effect.flatMap(onDatabase(reachIn(target, session)), (found) =>
          Effect.orDie(forgetIn(order, session.session_id, found))
        )
      )
      const ids = now.map(({ session_id }) => session_id)
      // Answers of commands and messages without an event are reached by their words alone.
      yield* counted(
        id,
        Effect.map(emptyTexts(agent_id, NO_SESSION, new ForgetWords(target.phrases)), (texts) => ({ texts }))
      )
      yield* counted(
        id,
        Effect.map(deleteFacts(agent_id, target), ({ rows, vectors }) => ({ facts: rows, vectors }))
      )
      yield* counted(
        id,
        Effect.map(deleteChunks(agent_id, ids), ({ rows, vectors }) => ({ chunks: rows, vectors }))
      )
      yield* Effect.forEach(ids, (session_id) => memory.again(agent_id, session_id), { discard: true })
      const files = now.flatMap(({ archived, session_id }) => (archived ? [archivedText(session_id)] : []))
      return {
        agent_id,
        forgotten_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
        ...(yield* onDatabase(removedBy(id))),
        sessions: ids,
        restarted: isPaused,
        left: [...fixed.flat(), ...files, BACKUPS]
      } satisfies ForgetReceipt
    }).pipe(Effect.ensuring(isPaused ? Effect.ignore(lifecycle.wake(agent_id)) : Effect.void))
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const onDatabase = yield* useDatabase
  const audit = yield* Audit
  const carryOut = yield* makeCarryOut
  const one = yield* Semaphore.make(1)

  /** Carries out the order of a row and deletes it with its words. */
  const settle = Effect.fnUntraced(function* (order: Order) {
    const { agent_id, id, who } = order
    const receipt = yield* carryOut(order)
    const { facts, events, chunks, vectors, texts } = receipt
    const detail = { facts, events, chunks, vectors, texts, sessions: [...receipt.sessions] }
    const record = audit.record({ who, action: "memory.forget", agent_id, detail })
    const end = Effect.andThen(record, sql`DELETE FROM choir_control.forgets WHERE id = ${id}`)
    yield* retryDatabase(onDatabase(inTransaction(end)))
    return receipt
  }, one.withPermit)

  return Forgetting.of({
    plan: Effect.fn("Forgetting.plan")(function* (agent_id, forget) {
      return yield* planOf(agent_id, yield* targetOf(agent_id, forget))
    }, onDatabase),
    forget: Effect.fn("Forgetting.forget")(function* (agent_id, forget, who) {
      const named = yield* onDatabase(targetOf(agent_id, forget))
      const { sessions } = yield* onDatabase(planOf(agent_id, named))
      const count = sessions.reduce((total, { events }) => total + events, 0)
      if (count > FORGET_EVENTS_MAX) return yield* new ForgetTooMuch({ events: count })
      const target = { ...named, sessions: sessions.map(({ session_id }) => session_id) }
      const [row] = yield* onDatabase(sql<{
        readonly id: string
      }>`INSERT INTO choir_control.forgets (agent_id, who, target)
        VALUES (${agent_id}, ${who}, ${canonicalJson(target)}::jsonb) RETURNING id::text AS id`)
      return yield* Effect.uninterruptible(settle({ id: row?.id ?? "", agent_id, who, target }))
    }),
    finish: Effect.gen(function* () {
      const rows = yield* retryDatabase(
        onDatabase(sql<Stored>`SELECT id::text AS id, agent_id, who, target FROM choir_control.forgets ORDER BY id`)
      )
      for (const row of rows) {
        const target = yield* decodeTarget(row.target)
        yield* retryDatabase(settle({ ...row, target }))
        yield* Effect.logInfo(`${row.agent_id}: carried out an order to forget that had been interrupted`)
      }
    }).pipe(Effect.catchCause((cause) => Effect.logError("orders to forget could not be carried out", cause)))
  })
})

interface Order {
  readonly id: string
  readonly agent_id: AgentId
  readonly who: string
  readonly target: Target
}
type Stored = Omit<Order, "target"> & { readonly target: unknown }

const decodeTarget = Schema.decodeUnknownEffect(Target)
