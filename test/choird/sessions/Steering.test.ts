import { assert } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { coreLane, EDGE, InboxId, JobName, ResourceName, Rev, type SessionId, type SignalId } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import type { Order } from "#src/choird/sessions/Order.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { describeStores } from "../../support/engines.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { reporting } from "../../support/operatorSocket.ts"
import { newTalk, stores, type Talk } from "../../support/stores.ts"
import { SIGNALS_PENDING_MAX } from "#src/choird/queues/Signals.ts"

const INJECT: Order = { type: "Inject", content: "be quick" }
const JOB = JobName.make("tidy")

const order = (session_id: SessionId, request_id: string, order: Order, wait_ms = 0) =>
  Effect.flatMap(Steering, (steering) => steering.order({ session_id, request_id, who: "operator", wait_ms }, order))

const store = (talk: Talk, from: number) =>
  Effect.flatMap(EventStore, (events) => events.append(talk.caller, talk.heartbeat(from)))

const injected = (signal_id: SignalId, refused?: string) =>
  ({
    event_type: "InjectedInstruction",
    lane: EDGE,
    payload: {
      signal_id,
      target: EDGE,
      source: "user",
      content: "be quick",
      ...(refused === undefined ? {} : { refused })
    }
  }) as const

const userMsg = (inbox_id: string) =>
  ({
    event_type: "UserMsg",
    lane: EDGE,
    payload: { inbox_id: InboxId.make(inbox_id), dm: ResourceName.make("me"), text: "hi", attachments: [] }
  }) as const

const rows = (session_id: SessionId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly kind: string; readonly payload: unknown }>`SELECT kind, payload FROM choir_control.signals
      WHERE session_id = ${session_id} ORDER BY signal_id`
  )

const auditOf = (session_id: SessionId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly action: string; readonly detail: Record<string, unknown> }>`SELECT action, detail
      FROM choir_control.audit WHERE session_id = ${session_id} ORDER BY id`
  )

describeStores("Steering", (it) => {
  it.effect("waits for the event that a signal ends in, and finds it again for the same request (R28)", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const { ended, signal_id } = yield* order(session_id, "r1", INJECT)
      assert.isNull(ended)
      const waiting = yield* order(session_id, "r1", INJECT, 60_000).pipe(Effect.forkChild({ startImmediately: true }))
      yield* store(talk.turn(1), 0)
      talk.commit(injected(signal_id))
      yield* store(talk, 3)
      assert.deepStrictEqual((yield* Fiber.join(waiting)).ended, { rev: 4, refused: null })
      // The session has ended meanwhile, and what was asked for before is answered all the same.
      yield* Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "stopped"))
      const again = yield* order(session_id, "r1", INJECT, 60_000)
      assert.deepStrictEqual([again.signal_id, again.ended], [signal_id, { rev: 4, refused: null }])
      assert.deepStrictEqual(yield* rows(session_id), [{ kind: "Inject", payload: { content: "be quick" } }])
    }).pipe(Effect.provide(stores))
  )

  it.effect("tells why nothing came of a signal", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const { signal_id } = yield* order(session_id, "r1", INJECT)
      talk.commit(injected(signal_id, "the session has ended"))
      yield* store(talk, 0)
      const { ended } = yield* order(session_id, "r1", INJECT, 1)
      assert.deepStrictEqual(ended, { rev: 1, refused: "the session has ended" })
    }).pipe(Effect.provide(stores))
  )

  it.effect("stops waiting after its time, and the signal stays", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const { ended } = yield* order(session_id, "r1", { type: "Compact" }, 20)
      assert.isNull(ended)
      assert.deepStrictEqual(yield* rows(session_id), [{ kind: "Compact", payload: {} }])
    }).pipe(Effect.provide(stores))
  )

  it.effect("takes the text from outside for trusted that the person was shown, and none that came later", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const refusedFor = (rev: number, request: string) =>
        Effect.map(Effect.flip(order(session_id, request, { type: "Trust", rev })), (error) => error.message)
      assert.match(yield* refusedFor(1, "r1"), /no text from outside/u)
      const forwarded = userMsg("1")
      talk.commit({ ...forwarded, payload: { ...forwarded.payload, forwarded: true } })
      yield* store(talk, 0)
      assert.match(yield* refusedFor(7, "r2"), /not the text which is in this conversation now/u)
      const { body, signal_id } = yield* order(session_id, "r3", { type: "Trust", rev: 1 })
      assert.deepStrictEqual(body, { type: "Trust", rev: 1 })
      const events = yield* EventStore
      assert.isTrue((yield* events.state(session_id)).edge.tainted)
      talk.commit({
        event_type: "CompactionCommitted",
        lane: EDGE,
        payload: { signal_id, delta: { mode: "append" }, boundary_rev: Rev.make(0), split: { trusted: true } }
      })
      yield* store(talk, 1)
      assert.isFalse((yield* events.state(session_id)).edge.tainted)
      assert.deepStrictEqual(
        (yield* auditOf(session_id)).map(({ action, detail }) => [action, detail["rev"], detail["refused"]]),
        [
          ["session.trust", 1, "OTHER_TEXT"],
          ["session.trust", 7, "OTHER_TEXT"],
          ["session.trust", 1, undefined]
        ]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("makes one signal of a request that comes many times at once (R28)", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const asked = Array.from({ length: 10 }, () => order(session_id, "r1", INJECT))
      const ids = new Set((yield* Effect.all(asked, { concurrency: 10 })).map(({ signal_id }) => signal_id))
      assert.strictEqual(ids.size, 1)
      assert.lengthOf(yield* rows(session_id), 1)
      const other = yield* Effect.flip(order(session_id, "r1", { type: "Compact" }))
      assert.deepInclude(other, { _tag: "SteeringRefused", kind: "REQUEST_ID_REUSED" })
    }).pipe(Effect.provide(stores))
  )

  it.effect("cancels a job once, also when it is asked again after the job has ended (R28)", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      talk.commit(started("tidy"))
      yield* store(talk, 0)
      const first = yield* order(session_id, "r1", { type: "CancelCore" })
      assert.deepStrictEqual(first.body, { type: "CancelCore", job_name: JOB })
      const target = coreLane(JOB)
      const payload = { signal_id: first.signal_id, target, by: "user", reason: "cancelled by the user" } as const
      talk.commit({ event_type: "Cancelled", lane: target, payload }, stopped("tidy", { outcome: "cancelled" }))
      yield* store(talk, 1)
      const again = yield* order(session_id, "r1", { type: "CancelCore", job_name: JOB }, 1000)
      assert.deepStrictEqual([again.signal_id, again.ended], [first.signal_id, { rev: 2, refused: null }])
      const late = yield* Effect.flip(order(session_id, "r2", { type: "CancelCore", job_name: JOB }))
      assert.deepInclude(late, { _tag: "SteeringRefused", kind: "NO_SUCH_JOB" })
    }).pipe(Effect.provide(stores))
  )

  it.effect("takes an answer to the job that asks, and tells jobs that ask at once apart", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const answer = (id: string, content: string, job_name?: JobName) =>
        order(session_id, id, { type: "Answer", content, ...(job_name === undefined ? {} : { job_name }) })
      const asks = (name: string) =>
        reporting(coreLane(JobName.make(name)), `ask-${name}`, { kind: "need_info", text: "?" })
      talk.commit(started("tidy"), started("other"))
      yield* store(talk, 0)
      const refused = (id: string, content: string) => Effect.flip(answer(id, content))
      assert.deepInclude(yield* refused("r0", "main"), {
        kind: "NO_QUESTION",
        reason: "no job is waiting for an answer"
      })
      const early = yield* refused("r0", "tidy main")
      assert.deepInclude(early, { kind: "NO_QUESTION", reason: "the job tidy is not waiting for an answer" })
      talk.commit(...asks("tidy"))
      yield* store(talk, 2)
      assert.deepStrictEqual((yield* answer("r1", " the main one ")).body, {
        type: "Inject",
        content: "the main one",
        job_name: JOB
      })
      assert.deepInclude(yield* refused("r2", "other main"), { kind: "NO_QUESTION" })
      assert.deepInclude(yield* refused("r2", "tidy"), { kind: "EMPTY" })
      const from = 2 + asks("tidy").length
      talk.commit(...asks("other"))
      yield* store(talk, from)
      assert.deepInclude(yield* refused("r3", "main"), {
        kind: "JOB_AMBIGUOUS",
        hint: "jobs with a question: tidy, other"
      })
      const named = yield* answer("r4", "other the\nmain one")
      assert.deepStrictEqual(named.body, {
        type: "Inject",
        content: "the\nmain one",
        job_name: JobName.make("other")
      })
      assert.deepStrictEqual((yield* answer("r5", "tidy", JOB)).body, {
        type: "Inject",
        content: "tidy",
        job_name: JOB
      })
      // The same request is the same signal, and no answer passes for an instruction to edge.
      assert.strictEqual((yield* answer("r4", "other the\nmain one")).signal_id, named.signal_id)
      const other = yield* Effect.flip(order(session_id, "r5", { type: "Inject", content: "tidy" }))
      assert.deepInclude(other, { kind: "REQUEST_ID_REUSED" })
      assert.deepStrictEqual(
        (yield* auditOf(session_id)).slice(-1).map(({ action, detail }) => [action, detail["chars"]]),
        [["session.inject", 4]]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("stops the turn that runs by its name, or the one that a waiting message is about to begin", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { session_id } = talk.caller
      const nothing = yield* Effect.flip(order(session_id, "r0", { type: "StopTurn" }))
      assert.deepInclude(nothing, { _tag: "SteeringRefused", kind: "NOTHING_RUNS" })
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO choir_control.signals (session_id, kind, payload)
        SELECT ${session_id}, 'UserMessage', jsonb_build_object('inbox_id', n::text) FROM generate_series(5, 6) AS n`
      const early = yield* order(session_id, "r1", { type: "StopTurn" })
      assert.deepStrictEqual(early.body, { type: "StopTurn", turn: { inbox_id: InboxId.make("5") } })
      talk.commit(userMsg("5"))
      yield* store(talk, 0)
      const running = yield* order(session_id, "r2", { type: "Cancel" })
      assert.deepStrictEqual(running.body, { type: "StopTurn", turn: { inbox_id: InboxId.make("5") } })
      talk.commit(started("tidy"))
      yield* store(talk, 1)
      const job = yield* order(session_id, "r3", { type: "Cancel" })
      assert.deepStrictEqual(job.body, { type: "CancelCore", job_name: JOB })
      // The same request means what it meant, whatever runs by now.
      assert.deepStrictEqual((yield* order(session_id, "r2", { type: "Cancel" })).body, running.body)
      const payload = { signal_id: early.signal_id, target: EDGE, by: "user", reason: "no_such_turn", turn: 0 } as const
      talk.commit({ event_type: "Cancelled", lane: EDGE, payload })
      yield* store(talk, 2)
      const late = yield* order(session_id, "r1", { type: "StopTurn" }, 1000)
      assert.deepStrictEqual(late.ended, { rev: 3, refused: "the turn had already ended" })
      assert.deepStrictEqual(
        (yield* auditOf(session_id)).map(({ action }) => action),
        ["session.stop", "session.stop", "session.cancel", "session.cancel", "session.cancel", "session.stop"]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("audits the start of a skill as ordered, since the agent may refuse it later", () =>
    Effect.gen(function* () {
      const { session_id } = (yield* newTalk).caller
      const { signal_id } = yield* order(session_id, "r1", { type: "StartSkill", skill: SkillName.make("tidy") })
      const [row] = yield* auditOf(session_id)
      assert.deepInclude(row, { action: "skill.start" })
      assert.deepInclude(row?.detail, { skill: "tidy", outcome: "ordered", signal_id })
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "keeps a bounded number of signals, and refuses sessions that do not run, each with one audit row (R77)",
    () =>
      Effect.gen(function* () {
        const talk = yield* newTalk
        const { session_id } = talk.caller
        const sql = yield* SqlClient.SqlClient
        yield* sql`INSERT INTO choir_control.signals (session_id, kind, payload)
        SELECT ${session_id}, 'Compact', '{}' FROM generate_series(1, ${SIGNALS_PENDING_MAX}::int)`
        assert.deepInclude(yield* Effect.flip(order(session_id, "r1", INJECT)), { kind: "SIGNALS_FULL" })
        yield* Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "crashed"))
        assert.deepInclude(yield* Effect.flip(order(session_id, "r2", INJECT)), {
          kind: "NOT_RUNNING",
          reason: "the session is crashed",
          hint: `choirctl agent start ${talk.caller.agent_id}`
        })
        assert.deepStrictEqual(yield* auditOf(session_id), [
          { action: "session.inject", detail: { chars: 8, refused: "SIGNALS_FULL" } },
          { action: "session.inject", detail: { chars: 8, refused: "NOT_RUNNING" } }
        ])
      }).pipe(Effect.provide(stores))
  )
})
