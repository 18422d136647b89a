/** Triggers of skills and skills that a person runs, with everything real but choird and the model. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { CallId, EDGE, InboxId, JobName, ResourceName, SignalId } from "#schema/Ids.ts"
import { SkillName, SkillSpec } from "#schema/Skill.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { jobTriggers, messageTriggers } from "#src/agent/arbiter/skillTriggers.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { situation, userMessage } from "../../support/history.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"
import { bookOf, skillDraft } from "../../support/skills.ts"
import { contractSpec, summarize } from "../../support/contracts.ts"

const skill = (name: string, triggers: ReadonlyArray<object>, more = {}): readonly [string, SkillSpec] => [
  name,
  Schema.decodeUnknownSync(SkillSpec)({
    ...skillDraft(),
    name,
    ...more,
    registry: { version: "1.0.0", tier: "task", triggers }
  })
]
const brief = skill("brief", [{ kind: "keyword", match: "Daily  brief!", mode: "start" }])
const tidy = skill("tidy", [{ kind: "keyword", match: "tidy" }])
const book = new Map([brief, tidy])
const found = (text: string) => messageTriggers(book, text).map(({ skill }) => String(skill))

const drafts = (text: string, more: { readonly forwarded?: boolean } = {}, state = initialState) => {
  const command = userMessage("1", text)
  const message = command.type === "UserMessage" ? { ...command.message, ...more } : assert.fail("a message")
  return Result.getOrThrow(decide(state, { type: "UserMessage", message }, situation({ skills: book })))
}
const types = (text: string, more = {}) => drafts(text, more).map(({ event_type }) => event_type)

describe("a trigger", () => {
  it("matches folded words one after the other, and no part of a word", () => {
    assert.deepStrictEqual(found("give me the DAILY—BRIEF, please"), ["brief"])
    assert.deepStrictEqual(found("ｄａｉｌｙ brief"), ["brief"])
    assert.deepStrictEqual(found("a daily debrief"), [])
    assert.deepStrictEqual(found("untidy"), [])
    assert.deepStrictEqual(found(""), [])
  })

  it("matches in every script, with or without blanks between words", () => {
    const on = (match: string, text: string) =>
      messageTriggers(new Map([skill("x", [{ kind: "keyword", match }])]), text).length === 1
    assert.isTrue(on("天気", "今日の天気は？"))
    assert.isTrue(on("日报", "帮我写日报！"))
    assert.isTrue(on("สวัสดี", "ครับสวัสดีครับ"))
    assert.isTrue(on("weekly 报告", "请写 weekly 报告。"))
    assert.isTrue(on("decision", "今日のdecisionについて"))
    assert.isFalse(on("decision", "今日のindecisionsについて"))
    assert.isTrue(on("코드", "이 코드를 고쳐 줘"))
    assert.isFalse(on("코드", "바코드"))
    assert.isTrue(on("हिन्दी", "यह हिन्दी है"))
    assert.isFalse(on("हिन्दी", "यह हन्दु है"))
    assert.isTrue(on("istanbul", "İSTANBUL hava durumu"))
    assert.isTrue(on("ısı raporu", "ISI RAPORU"))
    assert.isTrue(on("straße", "WELCHE STRASSE?"))
    assert.isTrue(on("λόγος", "Ο ΛΌΓΟΣ"))
    assert.isTrue(on("résumé", "mon re\u{301}sume\u{301}, svp"))
    assert.isFalse(on("тест", "тестирование"))
  })

  it("matches what a person says, and nothing that they reply to", () => {
    const label = "[A reply to your message, written 2026-10-02 08:00 UTC:]"
    assert.deepStrictEqual(found(`${label}\n> your daily brief is ready\n> shall I tidy?\nno`), [])
    assert.deepStrictEqual(found(`${label}\n> your daily brief is ready\nyes, tidy`), ["tidy"])
    assert.deepStrictEqual(found('[A reply to a message by "tidy":]\nno'), [])
    assert.deepStrictEqual(found("[Sent at 2026-10-02 08:00 UTC and received only 3 hours later:]\ntidy"), ["tidy"])
  })

  it("matches a tool that is named, and a job's type, pool and tools", () => {
    const by = (kind: string, match: string) => new Map([skill("x", [{ kind, match }])])
    assert.lengthOf(messageTriggers(by("tool", "choir.exec"), "use choir-exec."), 1)
    assert.lengthOf(messageTriggers(by("tool", "choir.exec"), "use choir-executor"), 0)
    const start = {
      job_name: JobName.make("a"),
      task_spec: "Look.",
      context_bundle: { facts: [], excerpts: [], constraints: [] },
      tool_constraints: { allowed_tools: ["choir.exec" as never], time_budget_ms: 0 },
      verbosity: "normal",
      agent_type: "scout" as never,
      pool: "research"
    } as const
    for (const [kind, match] of [
      ["task_type", "scout"],
      ["task_type", "research"],
      ["tool", "choir.exec"],
      ["keyword", "look"]
    ] as const)
      assert.lengthOf(jobTriggers(by(kind, match), start), 1, match)
    assert.lengthOf(jobTriggers(by("task_type", "review"), start), 0)
  })

  it("begins its skill in the batch of a person's message, and says which it was", () => {
    const batch = drafts("my daily brief")
    assert.deepStrictEqual(
      batch.map(({ event_type }) => event_type),
      ["UserMsg", "SkillTransitionCommitted"]
    )
    assert.deepInclude(batch[1]?.payload, { skill: "brief", trigger: "keyword: Daily  brief!" })
    const events = batch.map((draft, index) => ({ ...draft, rev: index + 1, created_at: "" }) as ChoirEvent)
    assert.isTrue(Result.isSuccess(foldAll(initialState, events)))
  })

  it("begins nothing by words that somebody else wrote, nor beside other work of edge", () => {
    assert.deepStrictEqual(types("my daily brief", { forwarded: true }), ["UserMsg"])
    const busy = drafts("my daily brief").map((draft, n) => ({ ...draft, rev: n + 1, created_at: "" }) as ChoirEvent)
    const state = busy.reduce((at, event) => Result.getOrThrow(fold(at, event)), initialState)
    const command = userMessage("2", "my daily brief")
    const decided = decide(state, command, situation({ skills: book }))
    assert.lengthOf(Result.getOrThrow(decided), 1)
  })

  it("begins nothing that a job's task calls for once edge has read text from outside", () => {
    const spawn = (isTainted: boolean) => {
      const state = { ...initialState, edge: { ...initialState.edge, tainted: isTainted } }
      return Result.getOrThrow(
        decide(
          state,
          {
            type: "Spawn",
            call_id: CallId.make("c"),
            tools: [],
            model: "small",
            start: {
              job_name: JobName.make("a"),
              task_spec: "make the daily brief",
              context_bundle: { facts: [], excerpts: [], constraints: [] },
              tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
              verbosity: "normal"
            }
          },
          situation({ skills: book })
        )
      ).map(({ event_type }) => event_type)
    }
    assert.include(spawn(false), "SkillTransitionCommitted")
    assert.notInclude(spawn(true), "SkillTransitionCommitted")
  })
})

describe("a skill that matches", () => {
  const through = Effect.fnUntraced(function* (text: string, forwarded: boolean) {
    yield* ticking
    const plane = yield* makeMemoryControlPlane
    const seen: Array<string> = []
    const script: Script = (messages) =>
      Effect.sync(() => {
        seen.push(JSON.stringify(messages))
        return says("fine")
      })
    const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "s" }))
    yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], skills: book }))
    yield* plane.push({
      type: "UserMessage",
      inbox_id: InboxId.make("1"),
      dm: ResourceName.make("me"),
      text,
      attachments: [],
      created_at: "2026-01-01T00:00:00.000Z",
      ...(forwarded ? { forwarded } : {})
    })
    yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
    return { plane, prompt: seen[0] ?? "" }
  })

  it.effect("is suggested in one line, and forwarded words only suggest one that a person's would begin", () =>
    Effect.gen(function* () {
      const { plane, prompt } = yield* through("the daily brief, and tidy up", true)
      assert.include(prompt, "This matches the skills brief, tidy: begin it with choir-skill-start if it fits.")
      assert.lengthOf(ofType(plane.events, "SkillTransitionCommitted"), 0)
    })
  )

  it.effect("is at work in the first prompt where its trigger begins it", () =>
    Effect.gen(function* () {
      const { plane, prompt } = yield* through("the daily brief", false)
      assert.notInclude(prompt, "This matches")
      assert.lengthOf(ofType(plane.events, "SkillTransitionCommitted"), 1)
    })
  )
})

describe("a person's order to run a skill", () => {
  const order = (more: object = {}) =>
    ({
      type: "SignalSkill",
      signal_id: SignalId.make("7"),
      job_name: JobName.make("run-tidy"),
      skill: SkillName.make("tidy"),
      model: "small",
      ...more
    }) as const

  it("starts a job with it, whose first events carry the order", () => {
    const batch = Result.getOrThrow(decide(initialState, order(), situation({ skills: book })))
    assert.deepInclude(batch[1]?.payload, { signal_id: SignalId.make("7"), trigger: "person" })
    const events = batch.map(
      (draft, index) => ({ ...draft, rev: index + 1, created_at: "2026-01-01T00:00:00.000Z" }) as ChoirEvent
    )
    const state = Result.getOrThrow(foldAll(initialState, events))
    assert.strictEqual(state.cores.get(JobName.make("run-tidy"))?.skill?.name, "tidy")
    // Delivered once more, it is dropped.
    const again = events.map((event) => ({ ...event, rev: event.rev + 2 }))
    assert.isTrue(Result.isFailure(foldAll(state, again)))
  })

  it("names what the skill is not granted, for a row of the audit", () => {
    const needs = contractSpec({
      ...summarize,
      name: "tidy",
      contract: { ...summarize.contract, capabilities: ["net", "fs:read"] }
    })
    const [refused] = Result.getOrThrow(
      decide(initialState, order(), situation({ skills: bookOf(needs), grants: ["fs:read"] }))
    )
    assert.deepInclude(refused?.payload, { denied: { skill: "tidy", capabilities: ["net"] } })
    assert.match(JSON.stringify(refused?.payload), /needs net, which this agent is not granted/u)
  })

  it("ends in an event that says why where it cannot", () => {
    const unknown = order({ skill: SkillName.make("nothing") })
    const [refused] = Result.getOrThrow(decide(initialState, unknown, situation({ skills: book })))
    assert.strictEqual(refused?.lane, EDGE)
    assert.include(JSON.stringify(refused?.payload), "there is no skill nothing; there are brief, tidy")
  })

  it.effect("runs to the end of its job, which edge reports", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script: Script = (messages) =>
        Effect.sync(() => (isCore(messages) ? calls(["choir.skill.transition", { on: "complete" }]) : says("fine")))
      const read = testTool("mem.read", () => Effect.succeed({ status: "success", summary: "s" }))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [read], skills: book }))
      yield* plane.push({ type: "StartSkill", signal_id: "7", job_name: "run-tidy", skill: "tidy" } as never)
      yield* plane.until((events, state) => spoken(events).length === 1 && quiet(state))
      assert.strictEqual(ofType(plane.events, "CoreStopped")[0]?.payload.outcome, "completed")
      const timed = { type: "StartSkill", signal_id: "8", job_name: "run-tidy", skill: "tidy" } as const
      yield* plane.push({ ...timed, trigger: "schedule: daily at 07:30" } as never)
      yield* plane.until((events, state) => spoken(events).length === 2 && quiet(state))
      const begun = ofType(plane.events, "SkillTransitionCommitted").filter(({ payload }) => payload.from === "")
      assert.deepStrictEqual(
        begun.map(({ payload: { signal_id, trigger } }) => [signal_id, trigger]),
        [
          ["7", "person"],
          ["8", "schedule: daily at 07:30"]
        ]
      )
    })
  )
})
