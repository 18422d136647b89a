/**
 * What an agent still knows after hundreds of turns: from its prompt, or by one query of its memory (R81). Its model knows only what it is sent. Of the
 * summary the model writes the facts, and pins the goal and the constraint; all else is Choir's.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ToolName, toWireName } from "#schema/Tool.ts"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { memoryDelta, memoryQuery } from "#src/agent/tools/memoryTools.ts"
import { configWith, modelClient } from "../../support/modelClient.ts"
import { modelEntry } from "../../support/modelNames.ts"
import { type Decision, decide, isCompacting, linesOf, linesOfBody, type Memory, toldIn } from "./rememberingModel.ts"
import { atSize, SIZE } from "../../support/size.ts"
import { bookOf, carefulChange } from "../../support/skills.ts"
import { makeProviderOf, say } from "../../support/testing/Provider.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, says } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const TURNS = 300
const FACTS = 100
/** The turns in which a fact is corrected, each another one that was told before; fewer turns have them at the same places. */
const CORRECTED_IN = [60, 120, 180, 240, 290]
const correctionsOf = (turns: number) =>
  new Map(CORRECTED_IN.map((turn, index) => [(turn * turns) / TURNS, index * Math.ceil((7 * turns) / TURNS)]))
const GOAL = "Goal: plan the wedding of Ines and Jo in May"
const CONSTRAINT = "Constraint: never spend more than 9000 euros"

const config = {
  ...agentConfig({ total_session_tokens: 1_000_000_000, max_tool_calls_per_session: 10_000 }),
  memory: { ...agentConfig().memory, window_tokens_max: 4500 }
}

/** What the user says in a turn: a fact in every third, a correction now and then, and much that does not matter. */
const saidIn = (turn: number, turns = TURNS): string => {
  if (turn === 0) return `${GOAL}. ${CONSTRAINT}.`
  const corrected = correctionsOf(turns).get(turn)
  if (corrected !== undefined) return `Correction. Fact ${corrected}: corrected number ${turn}.`
  const talk = `Then we talked about the weather of day ${turn}, ${"as one does, and about nothing else of any weight, ".repeat(4)}and that was it.`
  return turn % 3 === 1 ? `Fact ${(turn - 1) / 3}: value number ${turn}. ${talk}` : talk
}

/** The newest value of each fact, which is a corrected one for as many of them as there were corrections, and the goal and the constraint. */
const truthOf = (turns: number) => {
  const truth = toldIn(Array.from({ length: turns }, (_, turn) => saidIn(turn, turns)).join("\n"))
  const corrected = [...truth.values()].filter((value) => value.startsWith("corrected"))
  assert.lengthOf(corrected, CORRECTED_IN.length)
  assert.strictEqual(truth.size, (FACTS * turns) / TURNS + 2)
  return truth
}

/** Whether a prompt lacks what must be in each of them. */
const isForgetful = (prompt: string): boolean => !prompt.includes(GOAL) || !prompt.includes(CONSTRAINT)

/** The search of the log; all of it is here, so that nobody else is asked. */
const query = Effect.provide(
  memoryQuery(() => false),
  Layer.merge(
    Layer.mock(ControlPlane, { execute: () => Effect.die(new Error("all of the log is here")) }),
    Layer.mock(Replication, { acked: () => 0 })
  )
)

let written = 0
const write = testTool("ws.write", () =>
  Effect.sync(() => ({
    status: "success" as const,
    summary: "written",
    writes: [{ path: `plan-${++written}.md`, after: "0".repeat(64) as never }]
  }))
)

/**
 * Says all of it and then asks for each fact, the goal and the constraint, which are all answered right. What was needed for that: queries; and at the
 * end of the talk the last prompt, and the messages of the user in it that had left the window.
 */
const talk = Effect.fnUntraced(function* (plane: MemoryControlPlane, prompts: ReadonlyArray<string>, turns: number) {
  let said = 0
  const turn = Effect.fnUntraced(function* (text: string) {
    said += 1
    yield* plane.say(text)
    yield* plane.until((events, state) => spoken(events).length === said && quiet(state))
    return spoken(plane.events).at(-1)?.payload.text
  })
  for (let at = 0; at < turns; at++) yield* turn(saidIn(at, turns))
  const boundaries = new Set(ofType(plane.events, "CompactionCommitted").map(({ payload }) => payload.boundary_rev))
  const last = prompts.at(-1) ?? ""
  const shown = ofType(plane.events, "UserMsg").filter(({ payload }) => last.includes(payload.text))
  const verbatim = shown.filter(({ rev }) => rev <= Math.max(...boundaries)).length
  for (const [key, value] of truthOf(turns))
    assert.strictEqual(yield* turn(`What is the ${key}?`), `The ${key} is ${value}.`)
  const queries = ofType(plane.events, "ToolCallRequested").filter(
    ({ payload: { tool } }) => tool === "choir.memory.query"
  ).length
  return { compactions: boundaries.size, forgetful: prompts.filter(isForgetful).length, last, queries, verbatim }
})

const talked = Effect.fnUntraced(function* (memory: Memory) {
  yield* ticking
  written = 0
  const plane = yield* makeMemoryControlPlane
  const prompts: Array<string> = []
  const told = (decision: Decision) => ("text" in decision ? says(decision.text) : calls(decision.call as never))
  const tools = Effect.map(query, (search) => [write, search])
  yield* Effect.forkScoped(
    runAgent({
      plane,
      script: (messages) =>
        Effect.sync(() => {
          const lines = linesOf(messages)
          if (!isCompacting(lines)) prompts.push(lines.map(({ text }) => text).join("\n"))
          return told(decide(lines, memory))
        }),
      tools,
      config
    })
  )
  return yield* talk(plane, prompts, TURNS)
})

const isEven = (fact: string) => Number(/\d+/u.exec(fact)?.[0]) % 2 === 0

/** The same over a socket, with a model that writes down every other fact. */
const talkedTo = Effect.fnUntraced(function* (dialect: DialectName, turns: number) {
  const provider = yield* makeProviderOf({ dialect, counts: true })
  const prompts: Array<string> = []
  yield* provider.otherwise(({ body }) => {
    const lines = linesOfBody(body)
    if (!isCompacting(lines)) prompts.push(lines.map(({ text }) => text).join("\n"))
    const decision = decide(lines, { keeps: isEven, pins: true })
    const reasoning = "What is there to keep?"
    if ("text" in decision) return say({ text: decision.text, reasoning })
    const [name, input] = decision.call
    return say({ calls: [{ name: toWireName(ToolName.make(name)), input }], reasoning })
  })
  const plane = yield* makeMemoryControlPlane
  const models = configWith({ ...modelEntry(dialect), endpoint: provider.endpoint, reasoning_effort: "low" }).models
  yield* Effect.forkScoped(
    runAgent({
      plane,
      script: inOrder(),
      llm: yield* modelClient,
      tools: Effect.map(query, (search) => [memoryDelta, search]),
      // With a skill every request has its tools.
      skills: bookOf(carefulChange),
      config: { ...config, models, memory: { ...config.memory, window_tokens_max: SIZE.recallWindow } }
    })
  )
  const known = yield* talk(plane, prompts, turns)
  assert.strictEqual((yield* provider.summary).refusals, 0)
  return known
})

describe(`after ${TURNS} turns and five compactions`, () => {
  it.effect(
    `${FACTS} facts, the newest of each, are in the prompt, and the goal and the constraint in every prompt`,
    () =>
      Effect.gen(function* () {
        const { compactions, forgetful, queries } = yield* talked({ pins: true })
        assert.isAtLeast(compactions, 5)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
        assert.strictEqual(queries, 0)
      })
  )

  it.effect(
    "each fact is one query away where the model wrote down every other one, and what it pinned once is in every prompt, however much more it writes down",
    () =>
      Effect.gen(function* () {
        const { compactions, forgetful, last, queries } = yield* talked({ keeps: isEven, pins: true, isVerbose: true })
        assert.isAtLeast(compactions, 5)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
        assert.isAtLeast(queries, FACTS / 4)
        assert.isAtMost(queries, FACTS)
        for (const file of ["plan-1.md", "plan-2.md"]) assert.include(last, file)
      })
  )

  it.effect(
    "files and the newest words of the user are in the prompt, and all else is one query away, where the model writes down nothing",
    () =>
      Effect.gen(function* () {
        const { compactions, forgetful, last, queries, verbatim } = yield* talked({ keeps: () => false, pins: false })
        assert.isAtLeast(compactions, 5)
        assert.isAbove(forgetful, 0, "what nobody pinned leaves the prompt")
        assert.isAtLeast(verbatim, 5)
        assert.isAtMost(queries, FACTS + 2)
        for (const file of ["plan-1.md", "plan-2.md"]) assert.include(last, file)
      })
  )
})

describe(`after ${SIZE.recallTurns} turns with a provider`, () => {
  it.live.each(
    atSize<DialectName>(
      ["responses", "anthropic", "deepseek"],
      ["openai", "openrouter", "kimi", "gemini", "qwen-template", "mistral"]
    )
  )(
    "that speaks %s, all facts, the newest of each, are in the prompt or one query away, and the goal is in every prompt",
    (dialect) =>
      Effect.gen(function* () {
        const { compactions, forgetful, queries } = yield* talkedTo(dialect, SIZE.recallTurns)
        assert.isAtLeast(compactions, SIZE.recallCompactions)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
        assert.isAbove(queries, 0)
      }).pipe(Effect.scoped)
  )
})
