import { assert } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName } from "#schema/Ids.ts"
import { memoryQuery } from "#src/choird/hosttools/memoryQuery.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { LogAnswer } from "#src/shared/session/search.ts"
import { started } from "../../support/jobEvents.ts"
import { describeStores } from "../../support/engines.ts"
import { modelOutput, newTalk, notice, stores, type Talk, userMsg } from "../../support/stores.ts"
import { LOG_SEARCH_BYTES_MAX, LOG_SEARCH_REVS_MAX } from "#src/choird/hosttools/memoryQuery.ts"
import { LOG_PAGE_EVENTS_MAX } from "#src/choird/sessions/storedEvents.ts"

const WORK = JobName.make("work")
const JOB = CallId.make("job-1")

const begun = started(WORK, { job_id: JOB, start: { task_spec: "find the falcon" } })
const instructed = (content: string, refused?: string): EventDraft => ({
  event_type: "InjectedInstruction",
  lane: coreLane(WORK),
  payload: { target: coreLane(WORK), source: "edge", content, ...(refused === undefined ? {} : { refused }) }
})

const store = Effect.fnUntraced(function* (talk: Talk, from = 0) {
  const { append } = yield* EventStore
  for (let rev = from; rev < talk.rev; rev += 500)
    assert.strictEqual((yield* append(talk.caller, talk.heartbeat(rev, Math.min(rev + 500, talk.rev)))).action, "OK")
  return talk
})

const decode = Schema.decodeUnknownEffect(LogAnswer)

/** What choird answers, by edge unless a job is named. */
const ask = Effect.fnUntraced(function* (talk: Talk, query: Readonly<Record<string, Schema.Json>>, job_id?: CallId) {
  const tool = yield* memoryQuery
  const caller = job_id === undefined ? talk.caller : { ...talk.caller, job_id }
  const outcome = yield* Effect.flatten(tool.prepare({ store: "working", mode: "keyword", ...query }, caller))
  assert.strictEqual(outcome.status, "success", JSON.stringify(outcome.output))
  return yield* decode(outcome.output)
})
const revs = ({ hits }: LogAnswer) => hits.map(({ rev }) => rev)

describeStores("choir.memory.query in choird", (it) => {
  it.effect("finds words in what is acknowledged, the newest first, with all that tells where it stands", () =>
    Effect.gen(function* () {
      const talk = yield* Effect.andThen(newTalk, (talk) =>
        store(talk.commit(notice("Falcon one"), notice("nothing"), notice("the FALCON again")))
      )
      talk.commit(notice("falcon unsent"))
      const found = yield* ask(talk, { query: "falcon" })
      assert.deepStrictEqual(revs(found), [3, 1])
      assert.isUndefined(found.next_before_rev)
      assert.deepStrictEqual(found.hits[0], {
        rev: 3,
        hash: talk.hash(3),
        event_type: "AgentMessage",
        lane: EDGE,
        created_at: "2026-01-01T00:00:00.000Z",
        excerpt: "notice the FALCON again"
      })
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "falcon", before_rev: 3 })), [1])
      assert.deepStrictEqual(yield* ask(talk, { query: "falcon", limit: 1 }), {
        hits: found.hits.slice(0, 1),
        next_before_rev: 3
      })
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "falcon", before_rev: 2_147_483_647 })), [3, 1])
    }).pipe(Effect.provide(stores))
  )

  it.effect("finds an event by its hash, and takes no pattern for one", () =>
    Effect.gen(function* () {
      const talk = yield* store((yield* newTalk).turn(1).turn(2))
      for (const rev of [1, 4, 6])
        for (const query of [talk.hash(rev).slice(0, 12), talk.hash(rev).toUpperCase()])
          assert.deepStrictEqual(revs(yield* ask(talk, { mode: "hash", query })), [rev])
      assert.deepStrictEqual(revs(yield* ask(talk, { mode: "hash", query: talk.hash(4), before_rev: 4 })), [])
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "%" })), [])
    }).pipe(Effect.provide(stores))
  )

  it.effect("shows a job its own lane since its start, and edge no more of it than where it began and ended", () =>
    Effect.gen(function* () {
      const secret = { ...userMsg(1), payload: { ...userMsg(1).payload, text: "falcon of the user" } } as EventDraft
      const said = { ...modelOutput("c-2", "falcon of edge") }
      const answered: EventDraft = {
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "reply", text: "falcon told", in_reply_to: "1" as never }
      }
      const talk = (yield* newTalk).commit(secret, begun, said, answered)
      talk.commit(instructed("falcon for the job"), instructed("falcon refused", "no more"))
      yield* store(talk)
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "falcon" }, JOB)), [5, 2])
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "falcon" })), [4, 3, 2, 1])
      assert.deepStrictEqual(revs(yield* ask(talk, { mode: "hash", query: talk.hash(1) }, JOB)), [])
      const tool = yield* memoryQuery
      const gone = yield* Effect.flatten(
        tool.prepare(
          { store: "working", mode: "keyword", query: "falcon" },
          { ...talk.caller, job_id: CallId.make("job-0") }
        )
      )
      assert.deepStrictEqual(gone, { status: "error", output: { error: "the job is no longer running" } })
    }).pipe(Effect.provide(stores))
  )

  it.effect("shows no other session, and refuses what is not a query", () =>
    Effect.gen(function* () {
      yield* store((yield* newTalk).commit(notice("falcon")))
      const talk = yield* store((yield* newTalk).commit(notice("sparrow")))
      assert.deepStrictEqual(revs(yield* ask(talk, { query: "falcon" })), [])
      const tool = yield* memoryQuery
      for (const input of [{}, { store: "session", mode: "keyword", query: "a" }, { session_id: "x" }, null])
        assert.isTrue(Exit.isFailure(yield* Effect.exit(tool.prepare(input, talk.caller))))
    }).pipe(Effect.provide(stores))
  )

  it.effect("marks what came from outside, and names the tool by the text that the chain covers (D31, R12)", () =>
    Effect.gen(function* () {
      const call_id = CallId.make("c-2-0")
      const asked = modelOutput("c-2")
      const calling = {
        ...asked,
        payload: { ...asked.payload, tool_calls: [{ call_id, name: "web", input: {} }] }
      } as EventDraft
      const result: EventDraft = {
        event_type: "ToolResultCommitted",
        lane: EDGE,
        payload: { call_id, status: "rejected", summary: "falcon", untrusted: true, duration_ms: 0 }
      }
      const talk = yield* store((yield* newTalk).commit(userMsg(1), calling, result))
      assert.deepStrictEqual(
        (yield* ask(talk, { query: "falcon" })).hits.map(({ rev, tool, untrusted }) => [rev, tool, untrusted]),
        [[3, "web", true]]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("goes page by page, looks at a bounded part and says where to go on", () =>
    Effect.gen(function* () {
      const talk = (yield* newTalk).commit(notice("falcon"))
      const pages = Math.ceil(LOG_SEARCH_REVS_MAX / LOG_PAGE_EVENTS_MAX)
      talk.commit(...Array.from({ length: pages * LOG_PAGE_EVENTS_MAX + 10 }, () => notice("other")))
      yield* store(talk)
      const first = yield* ask(talk, { query: "falcon" })
      assert.deepStrictEqual(first, { hits: [], next_before_rev: talk.rev + 1 - pages * LOG_PAGE_EVENTS_MAX })
      const rest = yield* ask(talk, { query: "falcon", before_rev: first.next_before_rev ?? 0 })
      assert.deepStrictEqual([revs(rest), rest.next_before_rev], [[1], undefined])
      assert.deepStrictEqual(revs(yield* ask(talk, { mode: "hash", query: talk.hash(1) })), [1])
      // Nothing is passed over where pages meet.
      const all: Array<number> = []
      let before_rev: number | undefined = 1501
      while (before_rev !== undefined) {
        const answer: LogAnswer = yield* ask(talk, { query: "notice", limit: 50, before_rev })
        all.push(...revs(answer))
        before_rev = answer.next_before_rev
      }
      assert.deepStrictEqual(
        all,
        Array.from({ length: 1500 }, (_, index) => 1500 - index)
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("cuts a page of large events by its bytes and loses none", () =>
    Effect.gen(function* () {
      const large = "x".repeat(300_000)
      const count = Math.ceil(LOG_SEARCH_BYTES_MAX / large.length) + 10
      const talk = (yield* newTalk).commit(
        notice("falcon first"),
        ...Array.from({ length: count }, (_, index) => notice(`${large} falcon ${index}`))
      )
      const { append } = yield* EventStore
      for (let rev = 0; rev < talk.rev; rev += 3)
        yield* append(talk.caller, talk.heartbeat(rev, Math.min(rev + 3, talk.rev)))
      const found: Array<number> = []
      let before_rev: number | undefined = talk.rev + 1
      let requests = 0
      while (before_rev !== undefined) {
        const answer: LogAnswer = yield* ask(talk, { query: "falcon", limit: 50, before_rev })
        found.push(...revs(answer))
        before_rev = answer.next_before_rev
        requests += 1
      }
      assert.deepStrictEqual(
        found,
        Array.from({ length: talk.rev }, (_, index) => talk.rev - index)
      )
      assert.isAtLeast(requests, 2)
    }).pipe(Effect.provide(stores))
  )
})
