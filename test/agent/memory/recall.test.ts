/** What an agent still knows after hundreds of turns: from its prompt, or from one query of its memory (R81). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { logSearch, LogQuery } from "#src/shared/session/search.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, isCompaction, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../../support/testing/TestAgent.ts"

const TURNS = 300
const FACTS = 100
const CORRECTIONS = new Map([60, 120, 180, 240, 290].map((turn, index) => [turn, index * 7]))
const GOAL = "Goal: plan the wedding of Ines and Jo in May"
const CONSTRAINT = "Constraint: never spend more than 9000 euros"
const TOLD = /\b(Fact \d+): (\S+ number \d+)/gu

const config = {
  ...agentConfig({ total_session_tokens: 1_000_000_000, max_tool_calls_per_session: 10_000 }),
  memory: { ...agentConfig().memory, window_tokens_max: 4500 }
}

/** What the user says in a turn: a fact in every third, a correction now and then, and much that does not matter. */
const saidIn = (turn: number): string => {
  if (turn === 0) return `${GOAL}. ${CONSTRAINT}.`
  const corrected = CORRECTIONS.get(turn)
  if (corrected !== undefined) return `Correction. Fact ${corrected}: corrected number ${turn}.`
  const talk = `Then we talked about the weather of day ${turn}, ${"as one does, and about nothing else of any weight, ".repeat(4)}and that was it.`
  return turn % 3 === 1 ? `Fact ${(turn - 1) / 3}: value number ${turn}. ${talk}` : talk
}

/** The newest value of each fact. */
const TRUTH = new Map(
  Array.from({ length: TURNS }, (_, turn) => [...saidIn(turn).matchAll(TOLD)]).flatMap((told) =>
    told.map(([, key = "", value = ""]) => [key, value] as const)
  )
)

const textOf = (messages: ReadonlyArray<Message>): string => messages.map(({ content }) => content ?? "").join("\n")
const knownIn = (text: string) => new Map([...text.matchAll(TOLD)].map(([, key = "", value = ""]) => [key, value]))

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
      const facts = [...knownIn(textOf(messages))].filter((_, index) => keeps(index))
      const pinned = [GOAL, CONSTRAINT].map((text) => ({ key: text.split(":")[0] ?? "", value: text, pinned: true }))
      const first = prompts.length < TURNS / 4 ? pinned : []
      return calls([
        "choir.memory.delta",
        {
          mode: "overwrite",
          summary_update: "Open: the wedding.",
          add_facts: [...first, ...facts.map(([key, value]) => ({ key, value }))]
        }
      ])
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
  return { plane, text: textOf(prompts.at(-1) ?? []), compactions: boundaries.size }
})

describe(`after ${TURNS} turns and five compactions`, () => {
  it.effect(`${FACTS} facts, the newest of each, and the goal are in the prompt or one query away`, () =>
    Effect.gen(function* () {
      const { compactions, plane, text } = yield* talked(() => true)
      assert.isAtLeast(compactions, 5)
      assert.strictEqual(TRUTH.size, FACTS)
      const known = knownIn(text)
      const decode = Schema.decodeUnknownSync(LogQuery)
      for (const [key, value] of TRUTH) {
        const search = logSearch(decode({ store: "working", query: `${key}:`, mode: "keyword" }))
        const found = () =>
          plane.events.findLast((event) => search.hit(event, () => "0".repeat(64)) !== undefined)?.payload
        assert.strictEqual(known.get(key) ?? knownIn(JSON.stringify(found())).get(key), value, key)
      }
      assert.include(text, GOAL)
      assert.include(text, CONSTRAINT)
    })
  )

  it.effect(
    "the goal, the constraint and the files are in the prompt even where the model drops half of what it knows",
    () =>
      Effect.gen(function* () {
        const { compactions, text } = yield* talked((index) => index % 2 === 0)
        assert.isAtLeast(compactions, 5)
        assert.include(text, GOAL)
        assert.include(text, CONSTRAINT)
        for (const file of ["plan-1.md", "plan-2.md"]) assert.include(text, file)
      })
  )
})
