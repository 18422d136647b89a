/** What may start, move and end a skill, against a table and against a model of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { CallId, EDGE, JobName, LaneId } from "#schema/Ids.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { SKILL_START, SKILL_TRANSITION } from "#src/agent/arbiter/decideSkills.ts"
import type { Command, Rejected } from "#src/agent/arbiter/Command.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeRandom, pick, placed, situation, userMessage } from "../../support/history.ts"
import { bookOf, skillSpec } from "../../support/skills.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"
import { SIZE } from "../../support/size.ts"

const A = JobName.make("a")
const CORE = LaneId.make("core:a")
const SCHEMA = { type: "object", properties: { n: { type: "number" } }, required: ["n"] }
const FIRM = skillSpec({ name: "firm", interruptible: false, input_schema: SCHEMA, output_schema: SCHEMA })
const BOOK = bookOf(skillSpec(), FIRM)
const said = {
  purpose: "turn",
  model: "small",
  finish_reason: "stop",
  usage: { input_tokens: 1, output_tokens: 1 },
  latency_ms: 0
} as const

interface Taken {
  readonly state: SessionState
  readonly events: ReadonlyArray<ChoirEvent>
}
const begun: Taken = { state: initialState, events: [] }

/** What becomes of a command. */
const tried = (
  { events, state }: Taken,
  command: Command,
  skills = BOOK,
  retries = 2
): Taken & { readonly refused?: Rejected } => {
  const budgets = agentConfig({ skill_retry_budget: retries, total_session_tokens: 1_000_000_000 }).budgets
  const decided = decide(
    state,
    command,
    situation({ skills, budgets: { ...budgets, max_tool_calls_per_session: 1e9 } })
  )
  if (Result.isFailure(decided)) return { events, state, refused: decided.failure }
  const next = placed(state, decided.success)
  const folded = foldAll(state, next)
  if (Result.isFailure(folded)) throw new Error(`${command.type}: ${folded.failure.reason}`)
  return { state: folded.success, events: [...events, ...next] }
}
const after = (...commands: ReadonlyArray<Command | ((taken: Taken) => Command)>): Taken =>
  commands.reduce<Taken>((taken, next) => {
    const command = typeof next === "function" ? next(taken) : next
    const result = tried(taken, command)
    if (result.refused !== undefined) throw new Error(`${command.type}: ${result.refused.reason}`)
    return result
  }, begun)

let calls = 0
const output = (lane: LaneId, ...names: ReadonlyArray<string>): Command => ({
  type: "Output",
  lane,
  output: {
    ...said,
    // Never twice the same call, so that no answer counts as a repetition (E11).
    tool_calls: names.map((name) => ({ name, input: { n: ++calls } })),
    ...(names.length === 0 ? { text: "t" } : {})
  }
})
const newest = (lane: LaneId, { state }: Taken): CallId => {
  const call = laneOf(state, lane)?.calls[0]
  return call?.call_id ?? CallId.make("none")
}
const request =
  (lane: LaneId, tool: string) =>
  (taken: Taken): Command => ({
    type: "Request",
    lane,
    call_id: newest(lane, taken),
    tool,
    input: {},
    effect: "none",
    locks: [],
    allowed_tools: undefined,
    capabilities: []
  })
const start =
  (lane: LaneId, skill: string, input: object = {}) =>
  (taken: Taken): Command => ({ type: "StartSkill", lane, call_id: newest(lane, taken), skill, input: input as never })
const move =
  (lane: LaneId, on: string, more: object = {}) =>
  (taken: Taken): Command => ({ type: "MoveSkill", lane, call_id: newest(lane, taken), on, output: more as never })
const rejected =
  (lane: LaneId, { allowed, reason }: Rejected) =>
  (taken: Taken): Command => ({
    type: "Result",
    lane,
    call_id: newest(lane, taken),
    result: {
      status: "rejected",
      summary: reason,
      duration_ms: 0,
      ...(allowed === undefined ? {} : { allowed })
    }
  })
const granted =
  (lane: LaneId) =>
  (taken: Taken): Command => ({
    type: "Grant",
    lane,
    call_id: newest(lane, taken),
    locks: [],
    dirty: false,
    beside_jobs: true
  })
const succeeded =
  (lane: LaneId) =>
  (taken: Taken): Command => ({
    type: "Result",
    lane,
    call_id: newest(lane, taken),
    result: { status: "success", summary: "s", duration_ms: 0 }
  })

const turn = [userMessage("1")]
const starting = [...turn, output(EDGE, SKILL_START), request(EDGE, SKILL_START)]
const inTidy = [...starting, start(EDGE, "tidy")]
const inFirm = [...starting, start(EDGE, "firm", { n: 1 })]
const moving = [output(EDGE, SKILL_TRANSITION), request(EDGE, SKILL_TRANSITION)]
const inWrite = [...inTidy, ...moving, move(EDGE, "complete")]
const spawn =
  (skill?: object, more: object = {}): ((taken: Taken) => Command) =>
  (taken) => ({
    type: "Spawn",
    call_id: newest(EDGE, taken),
    model: "small",
    tools: [],
    start: {
      job_name: A,
      task_spec: "do",
      context_bundle: { facts: [], excerpts: [], constraints: [] },
      tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
      verbosity: "normal",
      ...(skill === undefined ? {} : { skill: skill as never }),
      ...more
    }
  })
const spawning = [...turn, output(EDGE, "choir.core.spawn"), request(EDGE, "choir.core.spawn")]

type Step = Command | ((taken: Taken) => Command)
const TIDY_LOOK = { tools: ["mem-read", "choir-skill-transition"], transitions: ["complete", "cancel"] }
const FIRM_WRITE = { tools: ["mem-read", "ws-write", "choir-skill-transition"], transitions: ["complete", "revise"] }

/** What is refused, after what, why, and what the model is told to be allowed where that counts against the skill. */
const REFUSED: ReadonlyArray<readonly [string, ReadonlyArray<Step>, Step, RegExp, object?]> = [
  ["an unknown skill", starting, start(EDGE, "no"), /there is no skill no; there are tidy, firm/u],
  ["an input that does not fit", starting, start(EDGE, "firm"), /input does not fit the skill firm: n: is missing/u],
  [
    "a tool that the state does not allow",
    [...inTidy, output(EDGE, "ws.write")],
    request(EDGE, "ws.write"),
    /look does not allow/u,
    TIDY_LOOK
  ],
  [
    "a skill within a skill",
    [...inTidy, output(EDGE, SKILL_START)],
    request(EDGE, SKILL_START),
    /cannot start another/u,
    TIDY_LOOK
  ],
  [
    "a transition that the state does not have",
    [...inTidy, ...moving],
    move(EDGE, "revise"),
    /no transition revise/u,
    TIDY_LOOK
  ],
  ["a state's name for an event", [...inTidy, ...moving], move(EDGE, "done"), /no transition done/u, TIDY_LOOK],
  [
    "a cancel of a skill that is not interruptible",
    [...inFirm, ...moving, move(EDGE, "complete"), ...moving],
    move(EDGE, "cancel"),
    /no transition cancel/u,
    FIRM_WRITE
  ],
  [
    "an end without the output that it needs",
    [...inFirm, ...moving, move(EDGE, "complete"), ...moving],
    move(EDGE, "complete", { n: "one" }),
    /output does not fit the skill firm/u,
    FIRM_WRITE
  ],
  ["a transition without a skill", [...turn, ...moving], move(EDGE, "complete"), /no skill is running/u],
  ["a failure of what goes on", inTidy, { type: "FailSkill", lane: EDGE }, /no skill of the lane has failed/u],
  ["a job with an unknown skill", spawning, spawn({ name: "no" }), /there is no skill no/u],
  ["a job with a bad input", spawning, spawn({ name: "firm" }), /input does not fit/u],
  [
    "a job with a skill and a schema of its own",
    spawning,
    spawn({ name: "tidy" }, { output_schema: SCHEMA }),
    /leave output_schema out/u
  ],
  [
    "edge's cancel of a job whose skill may not be interrupted",
    [...spawning, spawn({ name: "firm", input: { n: 1 } }), output(EDGE, "choir.core.cancel")],
    (taken) => ({ type: "CancelCore", call_id: newest(EDGE, taken), job_name: A, reason: "r" }),
    /may not be interrupted/u
  ]
]

describe("decide", () => {
  for (const [what, before, command, reason, allowed] of REFUSED)
    it(`refuses ${what}`, () => {
      const taken = after(...before)
      const { refused } = tried(taken, typeof command === "function" ? command(taken) : command)
      assert.match(refused?.reason ?? "it was accepted", reason)
      assert.deepStrictEqual<unknown>(refused?.allowed, allowed)
    })

  it("refuses a job with a skill while edge is in one, so that no skill starts another", () => {
    const open = skillSpec({
      states: {
        look: { objective: "o", allowed_tools: ["choir.core.spawn"], transitions: [{ on: "complete", to: "done" }] },
        done: { terminal: true }
      }
    })
    const book = bookOf(open)
    let taken: Taken = begun
    for (const next of [...inTidy, output(EDGE, "choir.core.spawn"), request(EDGE, "choir.core.spawn")])
      taken = tried(taken, typeof next === "function" ? next(taken) : next, book)
    assert.match(tried(taken, spawn({ name: "tidy" })(taken), book).refused?.reason ?? "", /cannot start another/u)
    assert.isUndefined(tried(taken, spawn()(taken), book).refused)
  })

  it("keeps the newest result of each state, and the input, by their revisions", () => {
    const { state } = after(
      ...inWrite,
      ...moving,
      move(EDGE, "revise", { n: 2 }),
      ...moving,
      move(EDGE, "complete", { n: 3 })
    )
    const skill = state.edge.skill
    assert.deepStrictEqual([skill?.state, skill?.step, skill?.violations], ["write", 3, 0])
    assert.deepStrictEqual(
      skill?.fields.map(({ name }) => name),
      ["write", "look"]
    )
    assert.isTrue(skill?.fields.every(({ rev }) => rev > (skill.started_rev ?? 0) && rev <= skill.entered_rev))
  })

  it("ends the skill of a lane in the batch that ends the lane", () => {
    const job = after(...spawning, spawn({ name: "tidy" }))
    const stop: Command = { type: "StopCore", job_name: A, outcome: "cancelled", summary: "enough" }
    const stopped = tried(job, stop)
    const types = stopped.events.slice(job.events.length).map(({ event_type }) => event_type)
    assert.deepStrictEqual(types, ["SkillTransitionCommitted", "CoreStopped"])
    const ended = tried(after(...inTidy), { type: "End", by: "budget", reason: "r" })
    assert.strictEqual(ended.state.edge.skill, undefined)
    assert.strictEqual(ended.state.ended, "budget")
  })
})

/** The rules again, in other words: where a lane's skill is, and what it may do there. */
class Model {
  readonly #spec: SkillSpec
  readonly #retries: number
  state: string
  steps = 0
  broken = 0
  ended = false

  constructor(spec: SkillSpec, retries: number) {
    this.#spec = spec
    this.#retries = retries
    this.state = spec.initial_state
  }
  get here() {
    return this.#spec.states[this.state]
  }
  get mustFail(): boolean {
    return this.steps >= this.#spec.max_steps || this.broken > this.#retries
  }
  allows(tool: string): boolean {
    return this.here?.allowed_tools.some((name) => name === tool) === true
  }
  takes(on: string): boolean {
    const taken = this.here?.transitions.find((transition) => transition.on === on)
    if (on === "cancel" && this.#spec.interruptible) this.ended = true
    else if (taken === undefined) return false
    else this.#enter(taken.to)
    return true
  }
  fails(): void {
    const handler = this.here?.transitions.find(({ on }) => on === "error")
    if (this.steps >= this.#spec.max_steps || handler === undefined) this.ended = true
    else this.#enter(handler.to)
  }
  #enter(to: string): void {
    this.state = to
    this.broken = 0
    this.ended = this.here?.terminal === true
  }
}

const EVENTS = ["complete", "revise", "error", "fail", "cancel", "done", "a", ""] as const
const TOOL_NAMES = ["mem.read", "ws.write", "choir.exec", "no.such", "choir.skill.start"] as const

/** A skill of up to six states, each with random tools and transitions; always with a way through. */
const randomSpec = (random: () => number): SkillSpec => {
  const names = ["a", "b", "c", "d", "e"].slice(0, 1 + Math.floor(random() * 5))
  const states = Object.fromEntries(
    names.map((name, index) => {
      const next = names[index + 1] ?? "done"
      const more = ["revise", "fail", "error"]
        .filter(() => random() < 0.3)
        .map((on) => ({ on, to: pick(random, [...names, "done"]) }))
      const allowed_tools = ["mem.read", "ws.write", "choir.exec"].filter(() => random() < 0.5)
      return [name, { objective: "o", allowed_tools, transitions: [{ on: "complete", to: next }, ...more] }]
    })
  )
  return skillSpec({
    initial_state: "a",
    states: { ...states, done: { terminal: true } },
    max_steps: 1 + Math.floor(random() * 12),
    interruptible: random() < 0.5
  })
}

/** One model answer on the lane: what it proposes is done as the runner would, or refused and told so. */
const answer = (
  random: () => number,
  lane: LaneId,
  before: Taken,
  model: Model,
  run: (taken: Taken, command: Command) => ReturnType<typeof tried>
) => {
  const kind = random()
  const isText = kind < 0.1
  const tool = kind < 0.5 ? pick(random, TOOL_NAMES) : SKILL_TRANSITION
  let taken: Taken = run(before, isText ? output(lane) : output(lane, tool))
  model.steps++
  if (isText) {
    model.broken++
    return taken
  }
  const asked = run(taken, request(lane, tool)(taken))
  const fits = tool === SKILL_TRANSITION || model.allows(tool)
  assert.strictEqual(asked.refused === undefined, fits, `${tool} in ${model.state}`)
  if (asked.refused !== undefined) {
    model.broken++
    return run(taken, rejected(lane, asked.refused)(taken))
  }
  taken = asked
  if (tool !== SKILL_TRANSITION) {
    taken = run(taken, granted(lane)(taken))
    return run(taken, succeeded(lane)(taken))
  }
  const on = pick(random, EVENTS)
  const from = model.state
  const moved = run(taken, move(lane, on)(taken))
  const isTaken = model.takes(on)
  assert.strictEqual(moved.refused === undefined, isTaken, `${on} in ${from}`)
  if (moved.refused === undefined) return moved
  model.broken++
  return run(taken, rejected(lane, moved.refused)(taken))
}

describe(`${SIZE.skillAnswers} model answers in random skills`, () => {
  it("run no forbidden tool, skip no transition and take no step beyond the last, as another model of the rules says", () => {
    const random = makeRandom(7)
    let answers = 0
    let skills = 0
    const ends = new Map<string, number>()
    while (answers < SIZE.skillAnswers) {
      const spec = randomSpec(random)
      const retries = Math.floor(random() * 4)
      const book = bookOf(spec)
      const run = (taken: Taken, command: Command) => tried(taken, command, book, retries)
      let taken: Taken = begun
      for (const next of [...spawning, spawn({ name: "tidy" })])
        taken = run(taken, typeof next === "function" ? next(taken) : next)
      const model = new Model(spec, retries)
      skills++
      while (!model.ended) {
        const failing = run(taken, { type: "FailSkill", lane: CORE })
        assert.strictEqual(failing.refused === undefined, model.mustFail, `${model.state} after ${model.steps} steps`)
        if (model.mustFail) {
          model.fails()
          taken = failing
        } else {
          taken = answer(random, CORE, taken, model, run)
          answers++
        }
        const skill = laneOf(taken.state, CORE)?.skill
        assert.strictEqual(skill === undefined, model.ended)
        if (skill !== undefined)
          assert.deepStrictEqual([skill.state, skill.step, skill.violations], [model.state, model.steps, model.broken])
        assert.isAtMost(model.steps, spec.max_steps)
      }
      const last = taken.events.findLast(({ event_type }) => event_type === "SkillTransitionCommitted")
      const how = last?.event_type === "SkillTransitionCommitted" ? (last.payload.ended ?? "none") : "none"
      ends.set(how, (ends.get(how) ?? 0) + 1)
    }
    assert.isAtLeast(skills, SIZE.skillAnswers / 20)
    for (const how of ["completed", "failed", "cancelled"])
      assert.isAtLeast(ends.get(how) ?? 0, SIZE.skillAnswers / 400, how)
  })
})
