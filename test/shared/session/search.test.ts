import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName, LaneId, Rev } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { initialState } from "#src/shared/session/fold.ts"
import {
  LOG_SEARCH_EXCERPT_CHARS_MAX,
  LOG_SEARCH_HITS,
  LOG_SEARCH_WORDS_MAX,
  LogQuery,
  logSearch,
  sees,
  viewOf
} from "#src/shared/session/search.ts"
import { output } from "../../support/drafts.ts"
import { notice, userMsg } from "../../support/stores.ts"

const HASH = `abcdef01${"0".repeat(56)}`
const event = (draft: EventDraft, rev = 7): ChoirEvent => ({
  v: 1,
  rev,
  ...draft,
  created_at: "2026-01-01T00:00:00.000Z"
})
const keyword = (query: string) => logSearch({ mode: "keyword", query })
const found = (query: string, text: string) => keyword(query).hit(event(notice(text)), () => HASH)

const decode = Schema.decodeUnknownResult(LogQuery, { onExcessProperty: "error" })
const problem = (input: object) =>
  Result.match(decode(input), { onSuccess: () => "", onFailure: ({ message }) => message })
const base = { store: "working", mode: "keyword", query: "a" }

describe("LogQuery", () => {
  it("has a default limit and takes nothing beyond its bounds", () => {
    assert.deepStrictEqual(Result.getOrThrow(decode(base)).limit, LOG_SEARCH_HITS)
    assert.include(problem({ ...base, limit: 51 }), "limit")
    assert.include(problem({ ...base, limit: 0 }), "limit")
    assert.include(problem({ ...base, before_rev: 2 ** 31 }), "before_rev")
    assert.include(problem({ ...base, query: "a".repeat(501) }), "query")
    assert.include(
      problem({ ...base, query: "a b c d e f g h i j k l m n o p q" }),
      `1 to ${LOG_SEARCH_WORDS_MAX} words`
    )
    assert.include(problem({ ...base, query: " \n " }), "words")
    assert.include(problem({ ...base, session_id: "x" }), "session_id")
  })

  it("says that the other stores are not there yet", () => {
    for (const store of ["session", "knowledge"]) assert.include(problem({ ...base, store }), "only the store working")
  })

  it("takes 8 to 64 hex digits for a hash and nothing else", () => {
    for (const query of ["abcdef01", "ABCDEF01", "f".repeat(64)])
      assert.strictEqual(problem({ ...base, mode: "hash", query }), "")
    for (const query of ["abcdef0", "abcdefgh", "f".repeat(65), "%", "abcdef01%"])
      assert.include(problem({ ...base, mode: "hash", query }), "hex digits")
  })
})

describe("a search by words", () => {
  it("wants every word, in any order and any case", () => {
    assert.isDefined(found("falcon MEETING", "The meeting about Project Falcon"))
    assert.isUndefined(found("falcon lunch", "The meeting about Project Falcon"))
    assert.isDefined(found("ÜBER straße", "über die STRAßE"))
  })

  it("finds a word within another one, and a number only as a whole", () => {
    assert.isDefined(found("falc", "the falcon"))
    assert.isDefined(found("a1b2", "commit a1b23c4"))
    assert.isUndefined(found("Fact 7:", "Fact 17: sand"))
    assert.isUndefined(found("room 4", "room 45"))
    assert.isDefined(found("Fact 7:", "Fact 17: sand. Fact 7: lime"))
    assert.isTrue(keyword("7").mayMatch(canonicalJson(event(notice("17")))), "the quick look needs no more")
  })

  it("does not find what a compaction wrote, which other events say", () => {
    const committed: EventDraft = {
      event_type: "CompactionCommitted",
      lane: EDGE,
      payload: {
        delta: { mode: "append", add_fact: { key: "falcon", value: "grey" } },
        boundary_rev: Rev.make(3),
        words: ["the falcon is grey"]
      }
    }
    assert.isUndefined(keyword("falcon").hit(event(committed), () => HASH))
    assert.isDefined(logSearch({ mode: "hash", query: "abcdef01" }).hit(event(committed), () => HASH))
    const said = (purpose: "compaction" | "turn") => event(output(EDGE, { purpose, text: "the falcon is grey" }))
    assert.isUndefined(keyword("falcon").hit(said("compaction"), () => HASH))
    assert.isDefined(keyword("falcon").hit(said("turn"), () => HASH))
  })

  it("takes every character of a word for itself", () => {
    assert.isUndefined(found("a.c", "abc"))
    assert.isDefined(found(".*+?^${}()|[]\\/-", "x .*+?^${}()|[]\\/- y"))
  })

  it("looks at the texts and numbers of an event, not at the names of its fields", () => {
    assert.isUndefined(found("kind", "hello"))
    assert.isUndefined(found("agentmessage", "hello"))
    const result: EventDraft = {
      event_type: "ToolResultCommitted",
      lane: EDGE,
      payload: {
        call_id: CallId.make("c-1"),
        status: "success",
        summary: "ok",
        output: { deep: [{ port: 8080 }, "needle"] },
        duration_ms: 5
      }
    }
    assert.isDefined(keyword("8080 needle").hit(event(result), () => HASH))
  })

  it("shows the place where the words stand together, rather than the first one alone", () => {
    const excerpt = found("Fact 7:", `Fact 8: lime. ${"a ".repeat(1000)}Fact 7: sand`)?.excerpt
    assert.include(excerpt, "Fact 7: sand")
  })

  it("shows a bounded part around the first word, on one line, with marks where it was cut", () => {
    const long = `${"a ".repeat(1000)}needle\n\n${"b ".repeat(1000)}`
    const excerpt = found("needle", long)?.excerpt ?? ""
    assert.include(excerpt, "needle b")
    assert.isAtMost(excerpt.length, LOG_SEARCH_EXCERPT_CHARS_MAX + 2)
    assert.isTrue(excerpt.startsWith("…") && excerpt.endsWith("…"))
    assert.notInclude(excerpt, "\n")
    assert.strictEqual(found("needle", "needle")?.excerpt, "notice needle")
  })

  it("never cuts a character in two", () => {
    for (let shift = 0; shift < 3; shift++)
      assert.isTrue(
        found("needle", `${"x".repeat(shift)}${"🙂".repeat(500)}needle${"🙂".repeat(500)}`)?.excerpt.isWellFormed()
      )
  })

  it("may match wherever it matches, so that the quick look loses nothing", () => {
    const texts = ['say "hi"', String.raw`back\slash`, "tab\there", "über 漢字 🙂", "İstanbul ẞ ſ K", "line\nbreak"]
    const missed: Array<string> = []
    for (const text of texts)
      for (const word of text.split(/\s/u)) {
        const search = keyword(word.toUpperCase())
        const told = event(notice(text))
        if (search.hit(told, () => HASH) === undefined) missed.push(word)
        else assert.isTrue(search.mayMatch(canonicalJson(told)), word)
        assert.isDefined(keyword(word).hit(told, () => HASH))
      }
    assert.deepStrictEqual(missed, [], "capital letters are found like small ones")
    assert.isFalse(keyword("absent").mayMatch(canonicalJson(event(notice("here")))))
  })
})

describe("the tools of what is found", () => {
  const asked = event({
    event_type: "ToolCallRequested",
    lane: EDGE,
    payload: {
      call_id: CallId.make("c-1"),
      tool: "choir.email.send",
      input: { subject: "hello" },
      effect: "external",
      locks: []
    }
  })
  const proposed = event({
    event_type: "ToolCallRequested",
    lane: EDGE,
    payload: { call_id: CallId.make("c-2"), tool: "choir.propose.tool", input: {}, effect: "none", locks: [] }
  })
  const started = event({
    event_type: "CoreStarted",
    lane: coreLane(JobName.make("work")),
    payload: {
      job_id: CallId.make("c-3"),
      job_name: JobName.make("work"),
      start: {
        job_id: CallId.make("c-3"),
        job_name: JobName.make("work"),
        task_spec: "look",
        context_bundle: { facts: [], excerpts: [], constraints: [] },
        tool_constraints: { allowed_tools: [ToolName.make("choir.fs.read")], time_budget_ms: 0 },
        verbosity: "normal"
      },
      model: "m",
      budgets: { max_steps: 1, max_tool_calls: 1, wall_time_ms: 1, max_injections: 1 }
    }
  })

  it("have the names by which models call them", () => {
    const hit = keyword("hello").hit(asked, () => HASH)
    assert.include(hit?.excerpt, "choir-email-send")
    for (const told of [asked, proposed, started])
      for (const search of [keyword("c-"), logSearch({ mode: "hash", query: HASH.slice(0, 8) })])
        assert.notMatch(search.hit(told, () => HASH)?.excerpt ?? "choir.", /choir\./u)
  })

  it("are found by these names and by those that the log has", () => {
    for (const [told, ...names] of [
      [asked, "choir-email-send", "choir.email.send"],
      [proposed, "choir-propose", "choir.propose"],
      [started, "choir-fs-read", "choir.fs.read"]
    ] as const)
      for (const name of names) {
        assert.isDefined(
          keyword(name).hit(told, () => HASH),
          name
        )
        assert.isTrue(keyword(name).mayMatch(canonicalJson(told)), name)
      }
    assert.isUndefined(keyword("choir-fs-read").hit(asked, () => HASH))
  })
})

describe("a search by hash", () => {
  it("finds what begins so and shows its beginning", () => {
    const search = logSearch({ mode: "hash", query: "ABCDEF01" })
    const hit = search.hit(event(notice("hello")), () => HASH)
    assert.deepInclude(hit, { rev: 7, hash: HASH, event_type: "AgentMessage", lane: EDGE, excerpt: "notice hello" })
    assert.isUndefined(search.hit(event(notice("hello")), () => "0".repeat(64)))
  })
})

describe("what a lane sees", () => {
  const work = coreLane(JobName.make("work"))
  const on = (lane: LaneId, text: string, refused?: string): EventDraft => ({
    event_type: "InjectedInstruction",
    lane,
    payload: { target: lane, source: "edge", content: text, ...(refused === undefined ? {} : { refused }) }
  })

  it("is its own lane, for a job since its start, and no instruction that was refused", () => {
    const edge = { lane: EDGE, from: 1 }
    const core = { lane: work, from: 5 }
    assert.isTrue(sees(edge, event(userMsg(1))))
    assert.isFalse(sees(core, event(userMsg(1))))
    assert.isTrue(sees(core, event(on(work, "x"), 5)))
    assert.isFalse(sees(core, event(on(work, "x"), 4)))
    assert.isFalse(sees(core, event(on(work, "x", "too many"))))
    assert.isFalse(sees(edge, event(on(work, "x"))))
    assert.isFalse(sees({ lane: coreLane(JobName.make("other")), from: 1 }, event(on(work, "x"))))
  })

  it("is nothing for a job that does not run", () => {
    assert.deepStrictEqual(viewOf(initialState, EDGE), { lane: EDGE, from: 1 })
    assert.isUndefined(viewOf(initialState, work))
  })
})
