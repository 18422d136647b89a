/** What an agent still knows after hundreds of turns: from its prompt, or from one query of its memory (R81). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { logSearch, LogQuery } from "#src/shared/session/search.ts"
import { configWith, modelClient } from "../../support/modelClient.ts"
import { modelEntry } from "../../support/modelNames.ts"
import { atSize, SIZE } from "../../support/size.ts"
import { bookOf, carefulChange } from "../../support/skills.ts"
import { makeProviderOf, say } from "../../support/testing/Provider.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, isCompaction, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const TURNS = 300
const FACTS = 100
/** The turns in which a fact is corrected, each another one that was told before; fewer turns have them at the same places. */
const CORRECTED_IN = [60, 120, 180, 240, 290]
const correctionsOf = (turns: number) =>
  new Map(CORRECTED_IN.map((turn, index) => [(turn * turns) / TURNS, index * Math.ceil((7 * turns) / TURNS)]))
const GOAL = "Goal: plan the wedding of Ines and Jo in May"
const CONSTRAINT = "Constraint: never spend more than 9000 euros"
const TOLD = /\b(Fact \d+): (\S+ number \d+)/gu

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

/** The newest value of each fact, which is a corrected one for as many of them as there were corrections. */
const truthOf = (turns: number) => {
  const truth = new Map(
    Array.from({ length: turns }, (_, turn) => [...saidIn(turn, turns).matchAll(TOLD)]).flatMap((told) =>
      told.map(([, key = "", value = ""]) => [key, value] as const)
    )
  )
  const corrected = [...truth.values()].filter((value) => value.startsWith("corrected"))
  assert.lengthOf(corrected, CORRECTED_IN.length)
  assert.strictEqual(truth.size, (FACTS * turns) / TURNS)
  return truth
}

/** Whether a prompt lacks what must be in each of them. */
const isForgetful = (prompt: string): boolean => !prompt.includes(GOAL) || !prompt.includes(CONSTRAINT)

const textOf = (messages: ReadonlyArray<Message>): string => messages.map(({ content }) => content ?? "").join("\n")
const knownIn = (text: string) => new Map([...text.matchAll(TOLD)].map(([, key = "", value = ""]) => [key, value]))

/** A compaction's answer by all facts of a prompt that are kept; the first ones pin the goal and the constraint. */
const deltaOf = (text: string, isFirst: boolean, keeps: (index: number) => boolean) => {
  const facts = [...knownIn(text)].filter((_, index) => keeps(index))
  const pinned = [GOAL, CONSTRAINT].map((text) => ({ key: text.split(":")[0] ?? "", value: text, pinned: true }))
  return {
    mode: "overwrite",
    summary_update: "Open: the wedding.",
    add_facts: [...(isFirst ? pinned : []), ...facts.map(([key, value]) => ({ key, value }))]
  }
}

/** A model that writes down the facts of its prompt that it keeps, and pins the goal and the constraint. */
const keeper =
  (prompts: Array<ReadonlyArray<Message>>, keeps: (index: number) => boolean): Script =>
  (messages) =>
    Effect.sync(() => {
      if (!isCompaction(messages)) {
        prompts.push(messages)
        const asked = messages.at(-1)
        const isWrite = asked?.role === "user" && /day \d*00,/u.test(asked.content)
        return isWrite ? calls(["ws.write", { text: asked.content }]) : says("noted")
      }
      return calls(["choir.memory.delta", deltaOf(textOf(messages), prompts.length < TURNS / 4, keeps)])
    })

const talked = Effect.fnUntraced(function* (keeps: (index: number) => boolean) {
  yield* ticking
  const plane = yield* makeMemoryControlPlane
  const prompts: Array<ReadonlyArray<Message>> = []
  let written = 0
  const write = testTool("ws.write", () =>
    Effect.sync(() => ({
      status: "success" as const,
      summary: "written",
      writes: [{ path: `plan-${++written}.md`, after: "0".repeat(64) as never }]
    }))
  )
  yield* Effect.forkScoped(runAgent({ plane, script: keeper(prompts, keeps), tools: [write], config }))
  for (let turn = 0; turn < TURNS; turn++) {
    yield* plane.say(saidIn(turn))
    yield* plane.until((events, state) => spoken(events).length === turn + 1 && quiet(state))
  }
  const boundaries = new Set(ofType(plane.events, "CompactionCommitted").map(({ payload }) => payload.boundary_rev))
  const texts = prompts.map(textOf)
  return { plane, text: texts.at(-1) ?? "", forgetful: texts.filter(isForgetful).length, compactions: boundaries.size }
})

/** The value of a fact in a prompt, or else by one query of the session's log. */
const recalled = (key: string, text: string, events: ReadonlyArray<ChoirEvent>): string | undefined => {
  const search = logSearch(decodeQuery({ store: "working", query: `${key}:`, mode: "keyword" }))
  const found = () => events.findLast((event) => search.hit(event, () => "0".repeat(64)) !== undefined)?.payload
  return knownIn(text).get(key) ?? knownIn(JSON.stringify(found())).get(key)
}

const decodeQuery = Schema.decodeUnknownSync(LogQuery)

/** The same over a socket, with a model that knows only what it was sent: its last prompt, and how often the window was compacted. */
const talkedTo = Effect.fnUntraced(function* (dialect: DialectName, turns: number) {
  const provider = yield* makeProviderOf({ dialect, counts: true })
  let last = ""
  let [compacted, forgetful] = [0, 0]
  yield* provider.otherwise(({ body }) => {
    const { model: _, ...sent } = body as Record<string, unknown>
    const text = JSON.stringify(sent)
    const reasoning = "What is there to keep?"
    if (text.includes("Compaction: your context is nearly full")) {
      compacted += 1
      const input = deltaOf(text, compacted === 1, () => true)
      return say({ calls: [{ name: "choir-memory-delta", input }], reasoning })
    }
    last = text
    if (isForgetful(text)) forgetful += 1
    return say({ text: "noted", reasoning })
  })
  const plane = yield* makeMemoryControlPlane
  const models = configWith({ ...modelEntry(dialect), endpoint: provider.endpoint, reasoning_effort: "low" }).models
  yield* Effect.forkScoped(
    runAgent({
      plane,
      script: inOrder(),
      llm: yield* modelClient,
      tools: [memoryDelta],
      // With a skill every request has its tools.
      skills: bookOf(carefulChange),
      config: { ...config, models, memory: { ...config.memory, window_tokens_max: SIZE.recallWindow } }
    })
  )
  for (let turn = 0; turn < turns; turn++) {
    yield* plane.say(saidIn(turn, turns))
    yield* plane.until((events, state) => spoken(events).length === turn + 1 && quiet(state))
  }
  assert.strictEqual((yield* provider.summary).refusals, 0)
  const boundaries = new Set(ofType(plane.events, "CompactionCommitted").map(({ payload }) => payload.boundary_rev))
  return { plane, text: last, forgetful, compactions: boundaries.size }
})

describe(`after ${TURNS} turns and five compactions`, () => {
  it.effect(
    `${FACTS} facts, the newest of each, are in the prompt or one query away, and the goal is in every prompt`,
    () =>
      Effect.gen(function* () {
        const { compactions, forgetful, plane, text } = yield* talked(() => true)
        assert.isAtLeast(compactions, 5)
        for (const [key, value] of truthOf(TURNS)) assert.strictEqual(recalled(key, text, plane.events), value, key)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
      })
  )

  it.effect(
    "the goal and the constraint are in every prompt, and the files in the last one, even where the model drops half of what it knows",
    () =>
      Effect.gen(function* () {
        const { compactions, forgetful, text } = yield* talked((index) => index % 2 === 0)
        assert.isAtLeast(compactions, 5)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
        for (const file of ["plan-1.md", "plan-2.md"]) assert.include(text, file)
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
        const { compactions, forgetful, plane, text } = yield* talkedTo(dialect, SIZE.recallTurns)
        assert.isAtLeast(compactions, SIZE.recallCompactions)
        for (const [key, value] of truthOf(SIZE.recallTurns))
          assert.strictEqual(recalled(key, text, plane.events), value, key)
        assert.strictEqual(forgetful, 0, "prompts without the goal or the constraint")
      }).pipe(Effect.scoped)
  )
})
