import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, InboxId, JobName, LaneId, ResourceName } from "#schema/Ids.ts"
import {
  type Chunk,
  chunkEvent,
  CHUNK_TOKENS_MAX,
  CHUNK_TOKENS_MIN,
  type ChunkState,
  closeChunks,
  noChunks
} from "#src/choird/memory/chunks.ts"
import { eventWords, OUTPUT_CHARS_MAX } from "#src/choird/memory/eventWords.ts"
import { isTainted, sourcesOf, noTaint, taintAfter } from "#src/choird/memory/laneTaint.ts"
import { reducedPayload } from "#src/choird/sessions/reducedPayload.ts"
import { estimateTokens } from "#src/shared/model/usage.ts"
import { fold, initialState } from "#src/shared/session/fold.ts"
import { makeHistory, makeRandom } from "../../support/history.ts"
import { isFull } from "../../support/size.ts"
import { goldenEvents } from "../../support/mixedHistory.ts"

const SEEDS = isFull ? 300 : 40
/** Histories that are cut into chunks at any place. */
const CUT_SEEDS = isFull ? 10_000 : 200
const AT = Date.UTC(2026, 0, 1)
const hashOf = (rev: number) => rev.toString(16).padStart(64, "0")

/** Events in their order, a second apart unless `at_s` says when. */
const eventsOf = (drafts: ReadonlyArray<EventDraft & { readonly at_s?: number }>): ReadonlyArray<ChoirEvent> =>
  drafts.map(({ at_s, ...draft }, index) => ({
    v: 2,
    rev: index + 1,
    created_at: new Date(AT + 1000 * (at_s ?? index)).toISOString(),
    salt: "0".repeat(32),
    ...draft
  }))

const run = (events: ReadonlyArray<ChoirEvent>, from: ChunkState = noChunks) => {
  let state = from
  const chunks: Array<Chunk> = []
  for (const event of events) {
    const done = chunkEvent(state, event, hashOf(event.rev))
    // As it comes back from the database.
    state = JSON.parse(JSON.stringify(done.state))
    chunks.push(...done.chunks)
  }
  const last = closeChunks(state)
  return { state: last.state, chunks: [...chunks, ...last.chunks] }
}

const user = (text: string, more: object = {}): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make("1"), dm: ResourceName.make("me"), text, attachments: [], ...more }
})
const output = (
  text: string | undefined,
  calls: ReadonlyArray<readonly [string, string]> = [],
  lane: LaneId = EDGE
): EventDraft => ({
  event_type: "ModelOutput",
  lane,
  payload: {
    call_id: CallId.make("o-1"),
    purpose: "turn",
    model: "small",
    ...(text === undefined ? {} : { text }),
    tool_calls: calls.map(([id, name]) => ({ call_id: CallId.make(id), name, input: {} })),
    finish_reason: "stop",
    usage: { input_tokens: 1, output_tokens: 1 },
    latency_ms: 1
  }
})
const reply = (text: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "reply", text, in_reply_to: InboxId.make("1") }
})
const request = (id: string, tool: string, input: object, lane: LaneId = EDGE): EventDraft => ({
  event_type: "ToolCallRequested",
  lane,
  payload: { call_id: CallId.make(id), tool, input: input as never, effect: "none", locks: [] }
})
const result = (id: string, summary: string, more: object = {}, lane: LaneId = EDGE): EventDraft => ({
  event_type: "ToolResultCommitted",
  lane,
  payload: { call_id: CallId.make(id), status: "success", summary, duration_ms: 1, ...more }
})
const tool = (id: string, name: string, input: object, summary: string, more: object = {}) => [
  output(undefined, [[id, name]]),
  request(id, name, input),
  result(id, summary, more)
]

const sentence = (random: () => number, words: number) =>
  Array.from({ length: words }, () => Math.floor(random() * 1e9).toString(36)).join(" ")

const wordsIn = (text: string) => text.split(/\s+/u).filter((word) => word !== "")

describe("chunks of a session", () => {
  it("hold a turn with its answer under a header, and say the reply once", () => {
    const { chunks } = run(eventsOf([user("I live in Oslo."), output("Noted: Oslo."), reply("Noted: Oslo.")]))
    assert.deepStrictEqual(
      chunks.map(({ text }) => text),
      ["[Thursday 1 January 2026, 00:00 UTC, talk with the user]\nuser: I live in Oslo.\nagent: Noted: Oslo."]
    )
    assert.deepInclude(chunks[0], {
      lane: EDGE,
      first_rev: 1,
      last_rev: 3,
      part: 0,
      index: 0,
      untrusted: false,
      source_events: [1, 2, 3].map(hashOf),
      said_at: "2026-01-01T00:00:00.000Z"
    })
  })

  it("hold every word, stay within their limits and begin with the event before", () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const random = makeRandom(seed)
      const drafts = Array.from({ length: 60 }, () => {
        const words = sentence(random, random() < 0.1 ? 900 : 1 + Math.floor(random() * 80))
        return random() < 0.5 ? user(words) : output(words)
      })
      const events = eventsOf(drafts)
      const { chunks } = run(events)
      const held = new Set(chunks.flatMap(({ text }) => wordsIn(text)))
      for (const event of events) {
        const { text } = event.payload as { text: string }
        for (const word of wordsIn(text)) assert.isTrue(held.has(word), `seed ${seed}, event ${event.rev}: ${word}`)
      }
      for (const { text } of chunks) assert.isAtMost(estimateTokens(text.length), CHUNK_TOKENS_MAX)
      const large = chunks.filter(({ text }) => estimateTokens(text.length) >= CHUNK_TOKENS_MIN)
      assert.isAtLeast(large.length, (chunks.length * 2) / 3)
      const places = chunks.map(({ first_rev, lane, part }) => `${lane} ${first_rev} ${part}`)
      assert.strictEqual(new Set(places).size, places.length)
      for (const [index, chunk] of chunks.entries()) {
        const before = chunks[index - 1]
        assert.strictEqual(chunk.index, index)
        if (before === undefined || chunk.part > 0 || estimateTokens(chunk.text.length) > 300) continue
        assert.include(chunk.text, (before.text.split("\n").at(-1) ?? "").slice(-20))
        assert.include(chunk.source_events, before.source_events.at(-1))
      }
    }
  })

  it("hold the words of legal histories, with a label that is the fold's", () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const { events } = makeHistory(seed, 150)
      let state = initialState
      let taint = noTaint
      for (const event of events) {
        state = Result.getOrThrow(fold(state, event))
        taint = taintAfter(taint, event)
        const where = `seed ${seed}, event ${event.rev}`
        assert.strictEqual(isTainted(taint, EDGE), state.edge.tainted, where)
        assert.strictEqual(taint.workspace, state.workspace_tainted, where)
        assert.sameMembers([...sourcesOf(taint, EDGE)], [...state.edge.sources], where)
        assert.sameMembers([...taint.workspace_sources], [...state.workspace_sources], where)
        for (const { lane, sources, tainted } of state.cores.values()) {
          assert.strictEqual(isTainted(taint, lane), tainted, where)
          assert.sameMembers([...sourcesOf(taint, lane)], [...sources], where)
        }
      }
      const all = run(events)
      const held = all.chunks.map(({ text }) => text.replaceAll(/\s+/gu, "")).join("")
      for (const event of events) {
        const words = eventWords(event, "a tool")
        if (words !== undefined && event.event_type !== "ToolResultCommitted")
          assert.include(held, words.text.replaceAll(/\s+/gu, ""), `seed ${seed}, event ${event.rev}`)
      }
    }
  })

  it("are the same from one go and from many, and a session that goes on gets new ones alone", () => {
    const events = eventsOf(
      Array.from({ length: 40 }, (_, n) => [user(`question ${n} ${"a ".repeat(90)}`), output(`answer ${n}`)]).flat()
    )
    const first = run(events.slice(0, 31))
    const second = run(events.slice(31), first.state)
    const places = [...first.chunks, ...second.chunks].map(({ first_rev }) => first_rev)
    assert.strictEqual(new Set(places).size, places.length)
    assert.isTrue(second.chunks.every(({ first_rev }) => first_rev > 31))
    assert.strictEqual(second.chunks[0]?.index, first.chunks.length)
    assert.deepStrictEqual(run([], second.state).chunks, [])
  })

  it("hold each text of a session once, whenever it left the window, was idle, ended or resumed, and mix no labels", () => {
    for (let seed = 1; seed <= CUT_SEEDS; seed += 1) {
      const random = makeRandom(seed)
      const drafts = Array.from({ length: 24 }, (_, n): ReadonlyArray<EventDraft> => {
        const text = `text${n}z ${"word ".repeat(Math.floor(random() * 120))}`
        const kind = random()
        if (kind < 0.4) return [user(text)]
        if (kind < 0.8) return [output(text)]
        return tool(`t-${n}`, "choir.exec", {}, text, { untrusted: random() < 0.3 })
      }).flat()
      let taint = noTaint
      let state = noChunks
      const chunks: Array<Chunk> = []
      const foreign = new Set<number>()
      const stored = (done: { readonly state: ChunkState; readonly chunks: ReadonlyArray<Chunk> }) => {
        state = JSON.parse(JSON.stringify(done.state))
        chunks.push(...done.chunks)
      }
      const events = eventsOf(drafts)
      for (const event of events) {
        taint = taintAfter(taint, event)
        if (isTainted(taint, EDGE)) foreign.add(event.rev)
        stored(chunkEvent(state, event, hashOf(event.rev)))
        if (random() < 0.15) stored(closeChunks(state))
      }
      stored(closeChunks(state))
      stored(closeChunks(state))
      const places = chunks.map(({ first_rev, lane, part }) => `${lane} ${first_rev} ${part}`)
      assert.strictEqual(new Set(places).size, places.length, `seed ${seed}`)
      for (const event of events) {
        const token = /text\d+z/u.exec(JSON.stringify(event.payload))?.[0]
        if (token === undefined) continue
        const where = `seed ${seed}, event ${event.rev}`
        const holding = chunks.filter(({ text }) => text.includes(token))
        const new_in = holding.filter(({ first_rev, last_rev }) => first_rev <= event.rev && last_rev >= event.rev)
        assert.lengthOf(new_in, 1, where)
        if (event.event_type === "UserMsg") assert.isFalse(new_in[0]?.untrusted, where)
        else if (foreign.has(event.rev))
          assert.isTrue(
            holding.every(({ untrusted }) => untrusted),
            where
          )
      }
    }
  })

  it("label what was said after something untrusted was read, and not what was said before", () => {
    const long = "word ".repeat(200)
    const { chunks, state } = run(
      eventsOf([
        user(`first ${long}`),
        output("fine"),
        user(`second ${long}`),
        ...tool("t-1", "choir.exec", { command: "curl" }, "a page", { untrusted: true, sources: ["web:a.example"] }),
        output("the page says so"),
        user("third"),
        output("as the page says")
      ])
    )
    const labelOf = (words: string) => chunks.find(({ text }) => text.includes(words))?.untrusted
    assert.strictEqual(labelOf("user: first"), false)
    assert.strictEqual(labelOf("a page"), true)
    assert.strictEqual(labelOf("as the page says"), true)
    // The person's own words are as trustworthy in a labelled hour as before it, and in no chunk with anybody else's.
    for (const words of ["user: second", "user: third"]) assert.strictEqual(labelOf(words), false)
    assert.lengthOf(
      chunks.filter(({ text }) => text.includes("user: third")),
      1
    )
    assert.isTrue(state.untrusted)
    assert.deepStrictEqual(state.sources, ["web:a.example"])
    assert.deepStrictEqual(chunks.find(({ text }) => text.includes("a page"))?.metadata.sources, ["web:a.example"])
    assert.isTrue(run(eventsOf([user("seen elsewhere", { forwarded: true })])).chunks[0]?.untrusted)
  })

  it("keep jobs apart, with their name, and take their label over to the talk", () => {
    const lane = coreLane(JobName.make("dig"))
    const started: EventDraft = {
      event_type: "CoreStarted",
      lane,
      payload: {
        job_id: CallId.make("j-1"),
        job_name: JobName.make("dig"),
        model: "small",
        budgets: { max_steps: 1, max_tool_calls: 1, wall_time_ms: 1, max_injections: 1 },
        start: {
          job_id: CallId.make("j-1"),
          job_name: JobName.make("dig"),
          task_spec: "find the well",
          context_bundle: { facts: [], excerpts: [], constraints: [] },
          tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
          verbosity: "normal"
        }
      }
    }
    const stopped: EventDraft = {
      event_type: "CoreStopped",
      lane,
      payload: {
        job_id: CallId.make("j-1"),
        job_name: JobName.make("dig"),
        outcome: "completed",
        summary: "the well is north",
        usage: { input_tokens: 1, output_tokens: 1 }
      }
    }
    const { chunks, state } = run(
      eventsOf([
        user("dig"),
        started,
        output(undefined, [["t-1", "choir-exec"]], lane),
        request("t-1", "choir.exec", { command: "ls" }, lane),
        user("still there?"),
        result("t-1", "a map", { untrusted: true }, lane),
        stopped,
        output("found")
      ])
    )
    const job = chunks.filter((chunk) => chunk.lane === lane)
    assert.strictEqual(job.length, 1)
    assert.deepInclude(job[0], { metadata: { job: "dig" }, untrusted: true, first_rev: 2, last_rev: 7 })
    assert.include(job[0]?.text, "find the well")
    assert.include(job[0]?.text, "the well is north")
    assert.notInclude(job[0]?.text, "still there?")
    assert.isTrue(chunks.find(({ text }) => text.includes("found"))?.untrusted)
    assert.deepStrictEqual(Object.keys(state.lanes), ["edge"])
  })

  it("begin after a long silence, without the event before", () => {
    const { chunks } = run(eventsOf([user("evening"), { ...user("morning"), at_s: 36_000 }]))
    assert.deepStrictEqual(
      chunks.map(({ text }) => text.split("\n").slice(1)),
      [["user: evening"], ["user: morning"]]
    )
  })

  it("name a skill's phase", () => {
    const move = (from: string, to: string, ended?: "completed"): EventDraft => ({
      event_type: "SkillTransitionCommitted",
      lane: EDGE,
      payload: { skill: "review", from, to, on: "x", step: 1, ...(ended === undefined ? {} : { ended }) }
    })
    const { chunks } = run(
      eventsOf([user("review it"), move("", "plan"), output("I plan"), move("plan", "", "completed"), output("done")])
    )
    assert.deepStrictEqual(
      chunks.map(({ metadata }) => metadata.skill),
      [undefined, "review plan", undefined]
    )
  })

  it("hold the beginning of an output, of an image's tool only the summary, and nothing that memory answered", () => {
    const { chunks } = run(
      eventsOf([
        ...tool("t-1", "choir.exec", { command: "cat log" }, "it ran", {
          output: { stdout: `begin ${"x".repeat(5000)} end` }
        }),
        ...tool("t-2", "bank.balance", { account: "mine" }, "one account", { output: { balance: "secret-balance" } }),
        ...tool("t-3", "choir.memory.query", { query: "cats" }, "1 hit", { output: { hits: ["remembered-words"] } })
      ])
    )
    const text = chunks.map((chunk) => chunk.text).join("\n")
    assert.include(text, "call choir-exec: command: cat log")
    assert.include(text, "result of choir-exec (success): it ran\nbegin xxx")
    assert.notInclude(text, "x".repeat(OUTPUT_CHARS_MAX + 1))
    assert.include(text, "result of bank-balance (success): one account")
    assert.notInclude(text, "secret-balance")
    assert.notInclude(text, "remembered-words")
  })

  it("hold no reasoning and no word of a payload that was forgotten", () => {
    const events = [...goldenEvents("jobs"), ...goldenEvents("files"), ...goldenEvents("crash")].map(
      ({ event }) => event
    )
    assert.isAbove(events.length, 20)
    const whole = eventsOf([
      user("my pin is 4711", {
        attachments: [{ path: "inbox/a", name: "pin-4711.txt", mime: "text/plain", bytes: 1 }]
      }),
      {
        ...output("4711 it is", [["t-1", "choir.exec"]]),
        payload: {
          ...(output("4711 it is", [["t-1", "choir.exec"]]).payload as object),
          continuation: { protocol: "chat", model: "m", items: ["reasoned-4711"] }
        } as never
      },
      request("t-1", "choir.exec", { command: "echo 4711" }),
      result("t-1", "it printed 4711", { output: "4711" }),
      reply("done with 4711")
    ])
    assert.include(run(whole).chunks[0]?.text, "my pin is 4711")
    assert.notInclude(run(whole).chunks[0]?.text, "reasoned")
    const reduce = (event: ChoirEvent) => ({ ...event, payload: reducedPayload(event) }) as ChoirEvent
    assert.deepStrictEqual(run(whole.map(reduce)).chunks, [])
    for (const event of events.map(reduce)) {
      const words = eventWords(event, "a tool")
      if (words !== undefined) assert.notInclude(words.text, "[forgotten]", event.event_type)
    }
  })

  it("take hostile texts: lone surrogates, NUL, half characters at a cut, no blanks", () => {
    const hostile = `\0\ud800 ${"🙂".repeat(3000)} ${"é".repeat(4000)}`
    const { chunks } = run(eventsOf([user(hostile), output("x".repeat(20_000)), user(""), output("   ")]))
    for (const { text } of chunks) {
      assert.isAtMost(estimateTokens(text.length), CHUNK_TOKENS_MAX)
      assert.notMatch(text.replace("\ud800", ""), /\p{Cs}/u)
    }
    assert.isAbove(chunks.length, 10)
  })
})
