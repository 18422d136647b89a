import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, InboxId, JobName, type LaneId, Rev } from "#schema/Ids.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane, type HostCall, type HostReply } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { LOG_SEARCH_REQUESTS_MAX, memoryQuery } from "#src/agent/tools/memoryTools.ts"
import { Unreachable } from "#src/agent/control/verbAnswer.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { LogAnswer, type LogHit, LogQuery } from "#src/shared/session/search.ts"
import { placed } from "../../support/history.ts"
import { started } from "../../support/jobEvents.ts"
import { modelOutput, notice, userMsg } from "../../support/stores.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"

const WORK = coreLane(JobName.make("work"))
const decodeInput = Schema.decodeUnknownSync(LogQuery)

type Asked = LogQuery & { readonly job?: CallId }

/** What choird answers, in order; `Unreachable` beyond. */
const makeChoird = (...answers: ReadonlyArray<LogAnswer | HostReply>) => {
  const asked: Array<Asked> = []
  const left = [...answers]
  const execute = ({ input, tool_name }: HostCall, job?: CallId) =>
    Effect.suspend(() => {
      assert.strictEqual(tool_name, "choir.memory.query")
      asked.push({ ...decodeInput(input), ...(job === undefined ? {} : { job }) })
      const answer = left.shift()
      if (answer === undefined) return Effect.fail(new Unreachable({ verb: "EXECUTE_HOST_TOOL", reason: "away" }))
      return Effect.succeed("status" in answer ? answer : { status: "success" as const, output: answer })
    })
  return { asked, execute }
}

/** The tool over a log of these events. The first `left` of them count as gone; of those up to `acked` the log lets go by itself. */
const openLog = Effect.fnUntraced(function* (
  events: ReadonlyArray<ChoirEvent>,
  options: {
    readonly choird?: ReturnType<typeof makeChoird>
    readonly isMasked?: (tool: string) => boolean
    readonly left?: number
    readonly acked?: number
  } = {}
) {
  const { acked = 0, choird = makeChoird(), isMasked = () => false, left = 0 } = options
  const state = Result.getOrThrow(foldAll(initialState, events))
  const layer = Layer.mergeAll(
    Layer.mock(Arbiter, { state: () => state }),
    Layer.mock(ControlPlane, { execute: choird.execute }),
    Layer.mock(Replication, { acked: () => state.rev, reached: () => Effect.void }),
    Layer.effect(
      EventLog,
      Effect.map(EventLog, (log) => EventLog.of({ ...log, oldest: () => Math.max(log.oldest(), left + 1) }))
    ).pipe(Layer.provide(EventLog.layer(SESSION)))
  )
  const { log, tool } = yield* Effect.provide(
    Effect.all({ log: EventLog, tool: memoryQuery(isMasked) }),
    yield* Layer.build(layer)
  )
  for (const event of events) log.append([event])
  if (acked > 0) log.trim(acked, new Set())
  const run = Effect.fnUntraced(function* (input: object, lane: LaneId = EDGE, call_id = "c-0-0") {
    const prepared = yield* tool.prepare({ store: "working", mode: "keyword", ...input })
    return yield* prepared.run({ lane, call_id: CallId.make(call_id), seen: () => undefined, network: true })
  })
  const find = (...args: Parameters<typeof run>) =>
    Effect.flatMap(run(...args), ({ output }) => Schema.decodeUnknownEffect(LogAnswer)(output))
  return { asked: choird.asked, find, log, run, tool }
})
const history = (...drafts: ReadonlyArray<EventDraft>) => placed(initialState, drafts)
const revs = ({ hits }: LogAnswer) => hits.map(({ rev }) => rev)

const proposing = (tool: string, id: string): EventDraft => {
  const output = modelOutput(id, "") as Extract<EventDraft, { event_type: "ModelOutput" }>
  const call = { call_id: CallId.make(`${id}-0`), name: tool, input: { query: "falcon" } }
  return { ...output, payload: { ...output.payload, tool_calls: [call] } }
}
const result = (id: string, output: Schema.Json, more: object = {}): EventDraft => ({
  event_type: "ToolResultCommitted",
  lane: EDGE,
  payload: { call_id: CallId.make(`${id}-0`), status: "rejected", summary: "done", output, duration_ms: 0, ...more }
})
const hit = (rev: number, more: Partial<LogHit> = {}): LogHit => ({
  rev,
  hash: rev.toString(16).padStart(64, "0"),
  event_type: "AgentMessage",
  lane: EDGE,
  created_at: "2026-01-01T00:00:00.000Z",
  excerpt: "falcon",
  ...more
})

/** Falcons, of which the first 25 are gone. */
const MANY = history(...Array.from({ length: 35 }, (_, index) => notice(`falcon ${index}`)))
const LEFT = 25

/** Events of 400 KB each, of which the agent does not keep seventy. */
const large = (count: number) =>
  history(...Array.from({ length: count }, (_, index) => notice(`falcon ${index} ${"x".repeat(400_000)}`)))

describe("choir.memory.query", () => {
  it.effect("finds the newest first, and goes on where it ended", () =>
    Effect.gen(function* () {
      const { asked, find, log, run } = yield* openLog(
        history(notice("Falcon 1"), notice("other"), notice("falcon 3"), notice("falcon 4"))
      )
      const first = yield* find({ query: "falcon", limit: 2 })
      assert.deepStrictEqual([revs(first), first.next_before_rev], [[4, 3], 3])
      assert.strictEqual(first.hits[0]?.hash, log.hashAt(4))
      const rest = yield* find({ query: "falcon", before_rev: first.next_before_rev })
      assert.deepStrictEqual([revs(rest), rest.next_before_rev], [[1], undefined])
      assert.deepStrictEqual(revs(yield* find({ mode: "hash", query: log.hashAt(2).slice(0, 8) })), [2])
      assert.deepInclude(yield* run({ query: "nothing" }), {
        status: "success",
        summary: "0 events",
        output: { hits: [] }
      })
      assert.lengthOf(asked, 0)
    })
  )

  it.effect("does not find its own call, and what came before it", () =>
    Effect.gen(function* () {
      const { find } = yield* openLog(history(userMsg(1), notice("falcon"), proposing("choir-memory-query", "c-3")))
      assert.deepStrictEqual(revs(yield* find({ query: "falcon" }, EDGE, "c-3-0")), [2])
      assert.deepStrictEqual(revs(yield* find({ query: "falcon" }, EDGE, "c-9-0")), [3, 2])
    })
  )

  it.effect("shows a job its own lane since its start, never the user or edge's words", () =>
    Effect.gen(function* () {
      const told: EventDraft = {
        event_type: "InjectedInstruction",
        lane: WORK,
        payload: { target: WORK, source: "edge", content: "falcon" }
      }
      const user = { ...userMsg(1), payload: { ...userMsg(1).payload, text: "falcon" } } as EventDraft
      const { asked, find, run } = yield* openLog(
        history(user, modelOutput("c-2", "falcon"), started("work"), told, notice("falcon"))
      )
      assert.deepStrictEqual(revs(yield* find({ query: "falcon" }, WORK)), [4])
      assert.deepStrictEqual(revs(yield* find({ query: "x" }, WORK)), [3])
      assert.deepStrictEqual(revs(yield* find({ query: "falcon" })), [5, 2, 1])
      const gone = yield* run({ query: "falcon" }, coreLane(JobName.make("other")))
      assert.deepInclude(gone, { status: "error", summary: "the job is no longer running" })
      assert.lengthOf(asked, 0)
    })
  )

  it.effect("asks choird for what it no longer holds, page by page, and only for what was acknowledged (D9)", () =>
    Effect.gen(function* () {
      const choird = makeChoird({ hits: [hit(9)], next_before_rev: 5 }, { hits: [hit(2), hit(1)] })
      const { asked, find, log } = yield* openLog(large(70), { choird, acked: 70 })
      const oldest = log.oldest()
      assert.isAbove(oldest, 20)
      const found = yield* find({ query: "falcon", limit: 50 })
      const here = Array.from({ length: 71 - oldest }, (_, index) => 70 - index)
      assert.deepStrictEqual(revs(found), [...here, 9, 2, 1])
      assert.isUndefined(found.next_before_rev)
      assert.deepStrictEqual(
        asked.map(({ before_rev, limit, query }) => [query, before_rev, limit]),
        [
          ["falcon", oldest, 50 - here.length],
          ["falcon", 5, 49 - here.length]
        ]
      )
    })
  )

  it.effect("asks choird with a job's proof, once its start is acknowledged (D35)", () =>
    Effect.gen(function* () {
      const choird = makeChoird({ hits: [] })
      const { asked, find } = yield* openLog(history(started("work"), notice("falcon")), { choird, left: 1 })
      assert.deepStrictEqual(revs(yield* find({ query: "falcon" }, WORK)), [])
      assert.strictEqual(asked[0]?.job, CallId.make("job-work"))
    })
  )

  it.effect("makes no endless search of an endless log", () =>
    Effect.gen(function* () {
      const stuck = Array.from({ length: 100 }, () => ({ hits: [], next_before_rev: 1_000_000 }))
      const { asked, find } = yield* openLog(MANY, { choird: makeChoird(...stuck), left: LEFT })
      const found = yield* find({ query: "absent" })
      assert.lengthOf(asked, LOG_SEARCH_REQUESTS_MAX)
      assert.strictEqual(found.next_before_rev, LEFT + 1 - LOG_SEARCH_REQUESTS_MAX)
    })
  )

  it.effect("keeps what it found when choird fails, and says what was not searched", () =>
    Effect.gen(function* () {
      const { find, run } = yield* openLog(MANY, { left: LEFT })
      const found = yield* run({ query: "falcon", limit: 50 })
      assert.deepInclude(found, { status: "success" })
      assert.include(found.summary, `events before revision ${LEFT + 1} were not searched`)
      assert.include(JSON.stringify(found.output), "away")
      assert.lengthOf((yield* find({ query: "falcon", limit: 50 })).hits, 35 - LEFT)
      const none = yield* run({ query: "absent" })
      assert.strictEqual(none.status, "error")
      const refusing = makeChoird({ status: "timeout", output: { error: "late" } })
      const refused = yield* Effect.flatMap(openLog(MANY, { choird: refusing, left: LEFT }), ({ run }) =>
        run({ query: "absent" })
      )
      assert.include(refused.summary, "choird ended the search with timeout")
    })
  )

  it.effect("hands on that a hit came from outside, or that the lane is tainted (D31)", () =>
    Effect.gen(function* () {
      const outside = history(userMsg(1), proposing("web", "c-2"), result("c-2", "falcon", { untrusted: true }))
      const { run } = yield* openLog(outside)
      assert.deepStrictEqual((yield* run({ query: "done" })).sources, ["memory"])
      const clean = yield* openLog(outside.slice(0, 2))
      assert.isUndefined((yield* clean.run({ query: "falcon" })).sources)
      const choird = makeChoird({ hits: [hit(1, { untrusted: true })] })
      const older = yield* openLog(MANY, { choird, left: LEFT })
      assert.deepStrictEqual((yield* older.run({ query: "falcon", limit: 50 })).sources, ["memory"])
    })
  )

  it.effect("has the label of a lane that has ended, since the text is in the log", () =>
    Effect.gen(function* () {
      const sources = ["web:evil.example"] as const
      const ended: EventDraft = {
        event_type: "CompactionCommitted",
        lane: EDGE,
        payload: { delta: { mode: "append" }, boundary_rev: Rev.make(5), split: { ended: true } }
      }
      const answered: EventDraft = {
        event_type: "AgentMessage",
        lane: EDGE,
        payload: { kind: "reply", text: "ok", in_reply_to: InboxId.make("1") }
      }
      const { run } = yield* openLog(
        history(
          userMsg(1),
          proposing("web", "c-2"),
          result("c-2", "falcon", { untrusted: true, sources }),
          modelOutput("c-4", "swallow"),
          answered,
          ended
        )
      )
      // The lane's own words, said in sight of it.
      assert.deepStrictEqual((yield* run({ query: "swallow" })).sources, sources)
    })
  )

  it.effect("names the tool of a result and finds none that prompts mask", () =>
    Effect.gen(function* () {
      const events = history(userMsg(1), proposing("web", "c-2"), result("c-2", "falcon"))
      const shown = yield* Effect.flatMap(openLog(events), ({ find }) => find({ query: "falcon done" }))
      assert.deepStrictEqual(
        shown.hits.map(({ rev, tool }) => [rev, tool]),
        [[3, "web"]]
      )
      const isMasked = (tool: string) => tool === "web"
      const masked = yield* Effect.flatMap(openLog(events, { isMasked }), ({ find }) => find({ query: "falcon done" }))
      assert.deepStrictEqual(masked.hits, [])
      const event_type = "ToolResultCommitted"
      const told = [hit(3, { event_type, tool: "web" }), hit(2, { event_type }), hit(1, { event_type, tool: "other" })]
      const older = yield* openLog(MANY, { choird: makeChoird({ hits: told }), isMasked, left: LEFT })
      assert.deepStrictEqual(revs(yield* older.find({ query: "falcon", before_rev: 4 })), [1])
    })
  )

  it.effect("finds what an earlier search found by its hash and not by words", () =>
    Effect.gen(function* () {
      const searched = history(userMsg(1), proposing("choir-memory-query", "c-2"), result("c-2", "falcon"))
      const { find, log } = yield* openLog(searched)
      assert.deepStrictEqual((yield* find({ query: "falcon done" })).hits, [])
      assert.deepStrictEqual(revs(yield* find({ mode: "hash", query: log.hashAt(3) })), [3])
      const older = hit(3, { event_type: "ToolResultCommitted", tool: "choir-memory-query" })
      const choird = makeChoird({ hits: [older] }, { hits: [older] })
      const left = yield* openLog(MANY, { choird, left: LEFT })
      assert.deepStrictEqual(revs(yield* left.find({ query: "absent" })), [])
      assert.deepStrictEqual(revs(yield* left.find({ mode: "hash", query: "0".repeat(64) })), [3])
    })
  )

  it.effect("lets other lanes go on while it looks", () =>
    Effect.gen(function* () {
      const { find } = yield* openLog(large(30))
      let turns = 0
      const other = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.sync(() => void (turns += 1)),
            Effect.yieldNow
          )
        )
      )
      yield* find({ query: "absent" })
      assert.isAtLeast(turns, 10)
      yield* Fiber.interrupt(other)
    })
  )

  it.effect("takes no lock, has no effect, and says which stores there are", () =>
    Effect.gen(function* () {
      const { tool } = yield* openLog([])
      assert.deepInclude(tool, { effect: "none", lanes: "both" })
      const prepared = yield* tool.prepare({ store: "working", mode: "keyword", query: "x" })
      assert.deepStrictEqual(prepared.locks, [])
      const { problem } = yield* Effect.flip(tool.prepare({ store: "knowledge", query: "x", target_agent: "ada" }))
      assert.strictEqual(problem, "there is no target_agent; the key is agent")
      for (const store of ["session", "knowledge"]) {
        const { problem } = yield* Effect.flip(tool.prepare({ store, mode: "keyword", query: "x" }))
        assert.include(problem, `store ${store} has the modes`)
      }
    })
  )

  it.effect("makes no further request once it took long", () =>
    Effect.gen(function* () {
      const slow = makeChoird({ hits: [], next_before_rev: 5 }, { hits: [] })
      const late = { ...slow, execute: (call: HostCall) => Effect.delay(slow.execute(call), "4 seconds") }
      const { asked, find } = yield* openLog(MANY, { choird: late, left: LEFT })
      const fiber = yield* Effect.forkChild(find({ query: "absent" }), { startImmediately: true })
      while (asked.length === 0) yield* TestClock.adjust("4 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).next_before_rev, 5)
      assert.lengthOf(asked, 1)
    })
  )
})
