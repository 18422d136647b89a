/** Skills as agents run them: step by step, within their rules, and on after a crash. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Said, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { bookOf, carefulChange, skillSpec } from "../support/skills.ts"

const REPORT = { changed_files: ["notes.md"], checked_by: "read it again" }
const TOOLS = "choir.fs.read choir.fs.search choir.fs.find choir.fs.edit choir.fs.write choir.exec mem.read ws.write"
  .split(" ")
  .map((name) =>
    testTool(name, () => Effect.succeed({ status: "success", summary: `${name} done` }), {
      effect: "none"
    })
  )

/** The step that a prompt was told of last, and the messages since. */
const stepOf = (messages: ReadonlyArray<Message>) => {
  const at = messages.findLastIndex(({ content }) => /You are in the step|No skill is running:/u.test(content ?? ""))
  const text = messages[at]?.content ?? ""
  const step = /You are in the step (\S+) of the skill/u.exec(text)?.[1]
  return { step, text, since: messages.slice(at + 1) }
}
const move = (on: string, output?: Schema.Json): Said =>
  calls(["choir.skill.transition", output === undefined ? { on } : { on, output }])
const begin = (skill: string, input: Schema.Json): Said => calls(["choir.skill.start", { skill, input }])
const isReport = (messages: ReadonlyArray<Message>) =>
  messages.findLast(({ role }) => role === "user")?.content?.startsWith("<choir-note>\nReport:") === true

/** Follows careful_change in each of its steps: one call of a tool, then on. */
const careful = (messages: ReadonlyArray<Message>): Said => {
  const { since, step } = stepOf(messages)
  const isDone = since.some(({ content, role }) => role === "tool" && content?.includes(" done"))
  switch (step) {
    case "understand":
      return isDone ? move("complete", { now: "a", later: "b" }) : calls(["choir.fs.read", { path: "notes.md" }])
    case "plan":
      return move("complete", { files: ["notes.md"] })
    case "modify":
      return isDone ? move("complete", { changed: 1 }) : calls(["choir.fs.write", { path: "notes.md", content: "b" }])
    case "validate":
      return isDone ? move("complete", REPORT) : calls(["choir.exec", { command: "cat notes.md" }])
    default:
      return says("all done")
  }
}

const edgeRuns =
  (first: Said, then: (messages: ReadonlyArray<Message>) => Said): Script =>
  (messages) =>
    Effect.sync(() => {
      if (isReport(messages)) return says("a job ended")
      const hasBegun = messages.some(({ role }) => role === "tool") || stepOf(messages).step !== undefined
      return hasBegun ? then(messages) : first
    })

const transitions = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "SkillTransitionCommitted").map(({ payload: { ended, from, on, to } }) => [
    from,
    on,
    to,
    ...(ended === undefined ? [] : [ended])
  ])
const WHOLE = [
  ["", "start", "understand"],
  ["understand", "complete", "plan"],
  ["plan", "complete", "modify"],
  ["modify", "complete", "validate"],
  ["validate", "complete", "done", "completed"]
]

/** Every tool that ran was allowed in the state that the lane's skill was in. */
const check = (events: ReadonlyArray<ChoirEvent>, spec: SkillSpec) => {
  const at = new Map<string, string>()
  const names = new Map<string, string>()
  for (const event of events) {
    const { lane } = event
    if (event.event_type === "SkillTransitionCommitted") {
      const { ended, from, on, to } = event.payload
      const known = spec.states[from]?.transitions.some((known) => known.on === on && known.to === to) === true
      assert.isTrue(from === "" || known || to === "", `${from} ${on} ${to}`)
      assert.isAtMost(event.payload.step, spec.max_steps)
      if (ended === undefined) at.set(lane, to)
      else at.delete(lane)
    }
    if (event.event_type === "ToolCallRequested") names.set(event.payload.call_id, event.payload.tool)
    const tool = event.event_type === "ToolCallCommitted" ? names.get(event.payload.call_id) : undefined
    const state = at.get(lane)
    if (tool === undefined || state === undefined || tool === "choir.skill.transition") continue
    if (tool !== "choir.skill.start")
      assert.include<string>(spec.states[state]?.allowed_tools ?? [], tool, `${tool} in ${state}`)
  }
}

const inSession = Effect.fnUntraced(function* (
  script: Script,
  specs: ReadonlyArray<SkillSpec>,
  until: (plane: MemoryControlPlane) => boolean,
  retries = 2
) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const config = agentConfig({ skill_retry_budget: retries })
  const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: TOOLS, skills: bookOf(...specs), config }))
  yield* plane.say("go")
  yield* plane.until(() => until(plane))
  yield* Fiber.interrupt(agent)
  return plane
})
const answered = (plane: MemoryControlPlane) => spoken(plane.events).length > 0 && quiet(plane.state())

describe("a skill on edge", () => {
  it.effect("runs careful_change whole, told in each step its tools and the results of those before", () =>
    Effect.gen(function* () {
      const seen: Array<{ readonly step: string; readonly text: string }> = []
      const offered = new Set<string>()
      const script: Script = (messages, tools) => {
        const { step, text } = stepOf(messages)
        offered.add(tools.map((tool) => tool.name).join())
        if (step !== undefined) seen.push({ step, text })
        return edgeRuns(begin("careful_change", { goal: "b" }), careful)(messages, tools)
      }
      const plane = yield* inSession(script, [carefulChange], answered)
      assert.deepStrictEqual(transitions(plane.events), WHOLE)
      check(plane.events, carefulChange)
      assert.strictEqual(plane.state().edge.skill, undefined)
      assert.strictEqual(spoken(plane.events)[0]?.payload.text, "all done")
      assert.strictEqual(offered.size, 1, "the tools of a lane are the same in each step, for the provider's cache")
      for (const { step, text } of seen) {
        const allowed = (carefulChange.states[step]?.allowed_tools ?? []).map((name) => name.replaceAll(".", "-"))
        assert.include(text, `Tools of this step: ${allowed.join(", ") || "none"};`)
        for (const [name, state] of Object.entries(carefulChange.states))
          assert.strictEqual(text.includes(state.objective ?? "\0"), name === step, `${name} in the prompt of ${step}`)
      }
      const validate = seen.find(({ step }) => step === "validate")?.text ?? ""
      const context = JSON.parse(/Context: (.*)/u.exec(validate)?.[1] ?? "null")
      assert.deepStrictEqual(context, {
        input: { goal: "b" },
        steps: { understand: { now: "a", later: "b" }, plan: { files: ["notes.md"] }, modify: { changed: 1 } }
      })
      assert.include(validate, "checked_by")
      assert.notInclude(seen[0]?.text, "checked_by", "the output's schema is shown where the skill may end")
    })
  )

  it.effect("answers a forbidden tool, an unknown one and a wrong transition with what is allowed, and runs none", () =>
    Effect.gen(function* () {
      const wrong = [
        calls(["ws.write", { content: 1 }]),
        calls(["no.such", {}]),
        calls(["choir.skill.transition", { on: "revise" }]),
        calls(["choir.skill.transition", { output: 7 }]),
        calls(["choir.skill.start", { skill: "tidy" }])
      ]
      const script = edgeRuns(
        begin("tidy", {}),
        (messages) => wrong.shift() ?? (stepOf(messages).step === undefined ? says("so") : move("cancel"))
      )
      const plane = yield* inSession(script, [skillSpec()], answered, 100)
      const refused = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.status === "rejected")
      assert.lengthOf(refused, 5)
      for (const { payload } of refused)
        assert.deepStrictEqual(payload.allowed, {
          tools: ["mem-read", "choir-skill-transition"],
          transitions: ["complete", "cancel"]
        })
      assert.deepStrictEqual(transitions(plane.events).at(-1), ["look", "cancel", "", "cancelled"])
      check(plane.events, skillSpec())
    })
  )

  it.effect("fails after its retry budget, in as many outputs and not calls, and the model is told why", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const script = edgeRuns(begin("tidy", {}), (messages) => {
        if (stepOf(messages).step !== undefined) return calls(["ws.write", {}], ["ws.write", { a: 1 }])
        told.push(...messages.flatMap(({ content }) => (content?.includes("has failed") === true ? [content] : [])))
        return says("it did not work")
      })
      const plane = yield* inSession(script, [skillSpec()], answered)
      assert.deepStrictEqual(transitions(plane.events), [
        ["", "start", "look"],
        ["look", "error", "", "failed"]
      ])
      const last = ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload
      assert.strictEqual(last?.step, 3, "a first try and two retries (skill_retry_budget)")
      assert.match(last?.reason ?? "", /look were broken 3 times/u)
      assert.lengthOf(told, 1)
      assert.match(told[0] ?? "", /The skill tidy has failed: the rules of its step look/u)
    })
  )

  it.effect("takes its state's own error transition, where the count begins again", () =>
    Effect.gen(function* () {
      const { look, ...states } = skillSpec().states
      const caught = skillSpec({
        states: {
          ...states,
          look: { ...look, transitions: [...(look?.transitions ?? []), { on: "error", to: "mend" }] },
          mend: { objective: "Mend it.", allowed_tools: ["ws.write"], transitions: [{ on: "complete", to: "done" }] }
        }
      })
      const script = edgeRuns(begin("tidy", {}), (messages) => {
        const { step } = stepOf(messages)
        if (step === "look") return calls(["ws.write", {}])
        return step === "mend" ? move("complete") : says("mended")
      })
      const plane = yield* inSession(script, [caught], answered)
      assert.deepStrictEqual(transitions(plane.events), [
        ["", "start", "look"],
        ["look", "error", "mend"],
        ["mend", "complete", "done", "completed"]
      ])
    })
  )

  it.effect("is ended by its limit of model calls, and stays over the user's messages until then", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = edgeRuns(begin("tidy", {}), (messages) =>
        stepOf(messages).step === undefined ? says("free again") : says("which one?")
      )
      const skills = bookOf(skillSpec({ max_steps: 2 }))
      yield* Effect.forkScoped(runAgent({ plane, script, tools: TOOLS, skills }))
      for (const turn of [1, 2, 3]) {
        yield* plane.say(`message ${turn}`)
        yield* plane.until((events) => spoken(events).length === turn)
        assert.strictEqual(plane.state().edge.skill?.step, turn === 3 ? undefined : turn)
      }
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => payload.text),
        ["which one?", "which one?", "free again"]
      )
      assert.match(ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload.reason ?? "", /limit of 2 steps/u)
    })
  )

  it.effect("moves once what its output proposed beside has ended, and once only", () =>
    Effect.gen(function* () {
      const script = edgeRuns(
        calls(["choir.skill.start", { skill: "tidy" }], ["ws.write", {}], ["choir.skill.start", { skill: "tidy" }]),
        (messages) =>
          stepOf(messages).step === "look"
            ? calls(
                ["choir.skill.transition", { on: "complete" }],
                ["mem.read", {}],
                ["choir.skill.transition", { on: "complete" }]
              )
            : stepOf(messages).step === "write"
              ? move("complete")
              : says("so")
      )
      const plane = yield* inSession(script, [skillSpec()], answered)
      assert.deepStrictEqual(transitions(plane.events), [
        ["", "start", "look"],
        ["look", "complete", "write"],
        ["write", "complete", "done", "completed"]
      ])
      const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
      assert.deepStrictEqual(
        results.map(({ status, summary }) => (status === "success" ? summary : summary.slice(0, 20))),
        [
          "ws.write done",
          "the skill tidy began",
          "the skill tidy is ru",
          "mem.read done",
          "tidy: look to write",
          "the skill is already",
          "tidy: write to done"
        ]
      )
      assert.isTrue(
        results.every(({ allowed }) => allowed === undefined),
        "what came too late breaks no rule"
      )
    })
  )

  it.effect("is ended when the image has it no more", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const script = edgeRuns(begin("tidy", {}), (messages) => says(stepOf(messages).step ?? "none"))
      const options = { plane, script, tools: TOOLS }
      const first = yield* Effect.forkScoped(runAgent({ ...options, skills: bookOf(skillSpec()) }))
      yield* plane.say("go")
      yield* plane.until((events) => spoken(events).length === 1)
      yield* Fiber.interrupt(first)
      yield* Effect.forkScoped(runAgent({ ...options, skills: bookOf(carefulChange), epoch: 2 }))
      yield* plane.say("on")
      yield* plane.until((events) => spoken(events).length === 2)
      assert.deepStrictEqual(
        spoken(plane.events).map(({ payload }) => payload.text),
        ["look", "none"]
      )
      const last = ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload
      assert.deepStrictEqual([last?.ended, last?.to], ["failed", ""])
      assert.match(last?.reason ?? "", /image no longer has the state look of the skill tidy/u)
    })
  )

  it.effect("goes on after a crash at any revision, and ends as it would have (R1)", () =>
    Effect.gen(function* () {
      yield* ticking
      const script = edgeRuns(begin("careful_change", { goal: "b" }), careful)
      const whole = yield* Effect.scoped(inSession(script, [carefulChange], answered))
      const revs = whole.events.map(({ rev }) => rev)
      assert.isAtLeast(revs.length, 40)
      for (const rev of revs) {
        const plane = yield* makeMemoryControlPlane
        const options = { plane, script, tools: TOOLS, skills: bookOf(carefulChange) }
        const first = yield* Effect.forkScoped(runAgent(options))
        yield* plane.say("go")
        yield* plane.cutOffAt(rev)
        yield* Fiber.interrupt(first)
        const second = yield* Effect.forkScoped(runAgent({ ...options, epoch: 2 }))
        yield* plane.until(() => answered(plane))
        yield* Fiber.interrupt(second)
        assert.deepStrictEqual(transitions(plane.events), WHOLE, `a crash after ${rev}`)
        check(plane.events, carefulChange)
      }
    })
  )
})

const jobRuns =
  (start: Schema.Json, core: (messages: ReadonlyArray<Message>) => Said): Script =>
  (messages) =>
    Effect.sync(() => {
      if (isCore(messages)) return core(messages)
      const isAsked = messages.at(-1)?.role === "user" && !isReport(messages)
      return isAsked ? calls(["choir.core.spawn", start]) : says("told")
    })
const stoppedJob = ({ events }: MemoryControlPlane) => ofType(events, "CoreStopped")[0]?.payload
const reported = (plane: MemoryControlPlane) => stoppedJob(plane) !== undefined && quiet(plane.state())
const JOB = { job_name: "work", task_spec: "tidy up", skill: { name: "careful_change", input: { goal: "b" } } }

describe("a job with a skill", () => {
  it.effect("begins in it, keeps to it and ends with its output", () =>
    Effect.gen(function* () {
      const report = calls(["choir.core.report", { kind: "progress", text: "reading" }])
      let asked = 0
      const plane = yield* inSession(
        jobRuns(JOB, (messages) => (asked++ === 0 ? report : careful(messages))),
        [carefulChange],
        reported
      )
      assert.deepStrictEqual(transitions(plane.events), WHOLE)
      assert.deepStrictEqual([stoppedJob(plane)?.outcome, stoppedJob(plane)?.result], ["completed", REPORT])
      const refused = ofType(plane.events, "ToolResultCommitted").find(({ lane }) => lane === "core:work")
      assert.strictEqual(refused?.payload.status, "rejected", "the state's tools and no others")
      check(plane.events, carefulChange)
    })
  )

  it.effect("does not end by its words, and fails with the skill when it insists", () =>
    Effect.gen(function* () {
      const corrections: Array<string> = []
      const plane = yield* inSession(
        jobRuns(JOB, (messages) => {
          const last = messages.at(-1)?.content ?? ""
          if (last.includes("has not ended: do")) corrections.push(last)
          return says("I am done")
        }),
        [carefulChange],
        reported
      )
      assert.lengthOf(corrections, 2)
      assert.match(corrections[0] ?? "", /do its step understand/u)
      assert.deepStrictEqual(transitions(plane.events).at(-1), ["understand", "error", "", "failed"])
      assert.strictEqual(stoppedJob(plane)?.outcome, "error")
      assert.match(
        stoppedJob(plane)?.summary ?? "",
        /careful_change failed: the rules of its step understand were broken/u
      )
    })
  )

  it.effect("that began one itself goes on without it, and its words count again", () =>
    Effect.gen(function* () {
      const plane = yield* inSession(
        jobRuns({ job_name: "work", task_spec: "tidy up" }, (messages) => {
          if (stepOf(messages).step !== undefined) return says("not yet")
          const hasBegun = messages.some(({ role }) => role === "tool")
          return hasBegun ? says("without the skill") : begin("tidy", {})
        }),
        [skillSpec()],
        reported
      )
      assert.deepStrictEqual(transitions(plane.events).at(-1), ["look", "error", "", "failed"])
      const { outcome, result } = stoppedJob(plane) ?? {}
      assert.deepStrictEqual([outcome, result], ["completed", "without the skill"])
    })
  )

  it.effect(
    "is cancelled by a person whatever the skill says, and the log shows the skill's end before the job's",
    () =>
      Effect.gen(function* () {
        yield* ticking
        const plane = yield* makeMemoryControlPlane
        const script = jobRuns({ ...JOB, skill: { name: "tidy" } }, () => calls(["mem.read", {}]))
        const tools = [testTool("mem.read", () => Effect.never, { effect: "none" })]
        const skills = bookOf(skillSpec({ interruptible: false }))
        yield* Effect.forkScoped(runAgent({ plane, script, tools, skills }))
        yield* plane.say("go")
        yield* plane.until((events) => ofType(events, "ToolCallCommitted").some(({ lane }) => lane !== "edge"))
        yield* plane.push({ type: "CancelCore", signal_id: "9" as never, job_name: "work" as never })
        yield* plane.until(() => reported(plane))
        assert.deepStrictEqual(transitions(plane.events).at(-1), ["look", "cancel", "", "cancelled"])
        assert.strictEqual(stoppedJob(plane)?.outcome, "cancelled")
      })
  )
})
