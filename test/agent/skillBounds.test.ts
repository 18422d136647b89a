/** No run of a skill asks a model more often than its static bound says, whatever the skill and the models' answers are. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, type Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { runTrial } from "#src/agent/trial/Trial.ts"
import { skillBounds } from "#src/shared/image/skillBounds.ts"
import { skillProblems } from "#src/shared/image/skillProblems.ts"
import { BUILT_IN_FACTS } from "#src/shared/image/toolFacts.ts"
import { contractSpec } from "../support/contracts.ts"
import { makeRandom, pick } from "../support/history.ts"
import { SIZE } from "../support/size.ts"
import { calls, layerScriptedModel, type Said, says, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig } from "../support/testing/TestAgent.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

type Random = ReturnType<typeof makeRandom>

const STATES = ["one", "two", "three"]
const OUTAGE: Said = { error: { kind: "http", status: 401, message: "away" }, finish_reason: "error" }

const boundOf = (spec: SkillSpec) => skillBounds(spec, BUILT_IN_FACTS).model_calls

const draft = (states: object, contract: object, max_steps: number) =>
  contractSpec({
    name: "random",
    description: "d",
    initial_state: "one",
    max_steps,
    states: { ...states, done: { terminal: true }, failed: { terminal: true } },
    contract: {
      execution_class: "probabilistic",
      does: "works",
      does_not: "rest",
      state: { result: { schema: {} } },
      state_read: ["result"],
      state_write: ["result"],
      ...contract
    }
  })

/** A skill whose states lead anywhere, or `undefined` where one is not reached or has no way to an end. */
const randomSkill = (random: Random): SkillSpec | undefined => {
  const to = () => pick(random, [...STATES, "done", "done", "failed"])
  const states = Object.fromEntries(
    STATES.map((name) => {
      const ways = ["complete", "next", ...(random() < 0.8 ? ["error"] : [])]
      return [name, { objective: "o", allowed_tools: [], transitions: ways.map((on) => ({ on, to: to() })) }]
    })
  )
  const contract = {
    retries: pick(random, [0, 1, 2]),
    ...(random() < 0.85 ? { confidence_threshold: 0.8 } : {}),
    assertions: random() < 0.3 ? [{ statement: "it is 1", path: "result", op: "==", value: 1 }] : []
  }
  try {
    const spec = draft(states, contract, pick(random, [2, 4, 7, 12]))
    return skillProblems(spec).length === 0 ? spec : undefined
  } catch {
    return undefined
  }
}

const move = (random: Random): readonly [string, Schema.Json] => [
  "choir.skill.transition",
  {
    on: pick(random, ["complete", "complete", "next", "error"]),
    writes: { result: pick(random, [1, 1, 2]) },
    ...(random() < 0.5 ? { confidence: pick(random, [0, 0.5, 1]) } : {})
  }
]

const worker = (random: Random): Said =>
  random() < 0.1 ? says("I am done") : random() < 0.2 ? calls(move(random), move(random)) : calls(move(random))

const judge = (random: Random): Said =>
  pick(random, [
    OUTAGE,
    OUTAGE,
    says("fine"),
    calls(["choir.skill.verdict", { score: pick(random, [0, 0.5, 0.9]), unsupported: [] }])
  ])

const asked = Effect.fnUntraced(
  function* (spec: SkillSpec, script: Script) {
    const { root } = yield* temporaryWorkspace
    let count = 0
    const model = layerScriptedModel((messages, tools) => {
      count += 1
      return script(messages, tools)
    })
    const task = { config: agentConfig(), secrets: {}, skills: [spec], manifests: [], skill: spec.name, record: [] }
    const { outcome, summary } = yield* runTrial(task, { root, model })
    return { count, outcome, summary }
  },
  Effect.provide(Layer.merge(TokenCount.layer, NodeServices.layer)),
  Effect.scoped
)

const isJudge = (tools: Parameters<Script>[1]) => tools.some(({ name }) => name === "choir-skill-verdict")

describe("the bound of a skill", () => {
  it.effect("counts a judge for each model call where an error leads back to work", () =>
    Effect.gen(function* () {
      const transitions = [
        { on: "complete", to: "done" },
        { on: "error", to: "one" },
        { on: "next", to: "failed" }
      ]
      const states = { one: { objective: "o", allowed_tools: [], transitions } }
      const spec = draft(states, { retries: 0, confidence_threshold: 0.8 }, 12)
      assert.strictEqual(boundOf(spec), 24)
      // The same call again and again would be refused before it is judged.
      let result = 0
      const { count } = yield* asked(spec, (_, tools) =>
        Effect.sync(() =>
          isJudge(tools)
            ? OUTAGE
            : calls(["choir.skill.transition", { on: "complete", writes: { result: (result += 1) } }])
        )
      )
      // More than the steps and one judge for each attempt.
      assert.isAbove(count, 12 + 1)
      assert.strictEqual(count, boundOf(spec))
    })
  )

  it.effect("counts a judge for each attempt where an error ends it", () =>
    Effect.sync(() => {
      const transitions = [
        { on: "complete", to: "done" },
        { on: "error", to: "failed" }
      ]
      const states = { one: { objective: "o", allowed_tools: [], transitions } }
      assert.strictEqual(boundOf(draft(states, { retries: 1, confidence_threshold: 0.8 }, 12)), 14)
      assert.strictEqual(boundOf(draft(states, { retries: 5, confidence_threshold: 0.8 }, 2)), 4)
      assert.strictEqual(boundOf(draft(states, {}, 12)), 12)
    })
  )

  it.effect("is never exceeded by random skills and answers", () =>
    Effect.gen(function* () {
      let [runs, judged] = [0, 0]
      for (let seed = 1; runs < SIZE.skillRuns; seed += 1) {
        const random = makeRandom(seed)
        const spec = randomSkill(random)
        if (spec === undefined) continue
        runs += 1
        const { count, outcome, summary } = yield* asked(spec, (_, tools) =>
          Effect.sync(() => {
            if (!isJudge(tools)) return worker(random)
            judged += 1
            return judge(random)
          })
        )
        assert.isAtMost(count, boundOf(spec), `seed ${seed}: ${outcome}: ${summary}`)
        assert.isAbove(count, 0, `seed ${seed}: ${summary}`)
      }
      assert.isAbove(judged, runs / 2)
    })
  )
})
