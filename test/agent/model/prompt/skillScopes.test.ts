/**
 * What a step's prompt holds of STATE: the fields of its scope, and no others, however the skill is made. After a result that was not taken it also
 * holds that result, which the same step wrote.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeRandom } from "../../../support/history.ts"
import { makeMemoryControlPlane } from "../../../support/testing/MemoryControlPlane.ts"
import { calls, isCore, says, type Script } from "../../../support/testing/ScriptedModel.ts"
import { quiet, runAgent, spoken, ticking } from "../../../support/testing/TestAgent.ts"
import { contractSpec, summarize } from "../../../support/contracts.ts"
import { bookOf } from "../../../support/skills.ts"

const SEEDS = 24
const FIELDS = ["a", "b", "c", "d", "e", "f"]
const STATES = ["one", "two", "three", "four"]
/** Whether a result is taken: the one field that every step writes. */
const OPEN = "open"
const RETRIES = 4

type Random = ReturnType<typeof makeRandom>
const some = (random: Random, from: ReadonlyArray<string>) => from.filter(() => random() < 0.5)

const IS_OPEN = { statement: "the result is open", path: OPEN, op: "==", value: true }

/** A skill of four steps in a row, each with scopes of its own, that are left only with a result that holds an assertion. */
const skillOf = (random: Random) => {
  const scopes = new Map(STATES.map((state) => [state, { read: some(random, FIELDS), write: some(random, FIELDS) }]))
  const states = Object.fromEntries(
    STATES.map((state, index) => {
      const { read, write } = scopes.get(state) ?? { read: [], write: [] }
      const to = STATES[index + 1] ?? "done"
      const transitions = [{ on: "complete", to }]
      const assertions = index === 0 ? [] : [IS_OPEN]
      const scoped = { state_read: read, state_write: [...write, OPEN] }
      return [state, { objective: "o", allowed_tools: [], transitions, assertions, ...scoped }]
    })
  )
  const contract = {
    ...summarize.contract,
    state: Object.fromEntries([...FIELDS, OPEN].map((field) => [field, { schema: {} }])),
    state_read: FIELDS,
    state_write: [...FIELDS, OPEN],
    assertions: [IS_OPEN],
    retries: RETRIES,
    confidence_threshold: undefined,
    judge: undefined
  }
  const spec = contractSpec({
    ...summarize,
    initial_state: "one",
    states: { ...states, done: { terminal: true } },
    contract: JSON.parse(JSON.stringify(contract)) as object
  })
  return { scopes, spec }
}

const stateOf = (messages: ReadonlyArray<Message>): string =>
  /STATE of the skill summarize for its step (\w+)\./u.exec(
    messages.map(({ content }) => content ?? "").join("\n")
  )?.[1] ?? ""

describe("a prompt", () => {
  it.effect("holds no field of STATE outside of its step's state_read, and all of those in it, over retries too", () =>
    Effect.gen(function* () {
      yield* ticking
      let [looked, retried] = [0, 0]
      for (let seed = 1; seed <= SEEDS; seed++) {
        const random = makeRandom(seed)
        const { scopes, spec } = skillOf(random)
        const values = new Map<string, string>()
        const old: Array<string> = []
        let [count, retries] = [0, 0]
        /** The result of the present step that was not taken last. */
        let refused: ReadonlyArray<string> = []
        const fresh = (field: string) => [field, `${field}-value-${seed}-${count++}`] as const
        const take = (written: ReadonlyArray<readonly [string, string]>) => {
          for (const [field, value] of written) {
            const before = values.get(field)
            if (before !== undefined) old.push(before)
            values.set(field, value)
          }
        }
        const given = some(random, FIELDS).map(fresh)
        const input = Object.fromEntries(given)
        take(given)
        const script: Script = (messages) =>
          Effect.sync(() => {
            if (!isCore(messages)) {
              if (
                messages.findLast(({ role }) => role === "user")?.content?.startsWith("<choir-note>\nReport:") === true
              )
                return says("it ended")
              return messages.some(({ role }) => role === "tool")
                ? says("started")
                : calls(["choir.core.spawn", { job_name: "a", task_spec: "t", skill: { name: "summarize", input } }])
            }
            const state = stateOf(messages)
            const { read, write } = scopes.get(state) ?? { read: [], write: [] }
            const text = JSON.stringify(messages)
            for (const [field, value] of values) {
              assert.strictEqual(text.includes(value), read.includes(field), `${field} in ${state}, seed ${seed}`)
              looked += 1
            }
            for (const value of old) assert.notInclude(text, value, `an old value in ${state}, seed ${seed}`)
            // The one exception: a step is shown its own result that was not taken, in the prompt that asks for it again.
            for (const value of refused) assert.include(text, value, `a refused value in ${state}, seed ${seed}`)
            old.push(...refused)
            refused = []
            const written = some(random, write).map(fresh)
            const isTaken = retries >= RETRIES || random() < 0.6
            if (isTaken) take(written)
            else {
              retries += 1
              retried += 1
              refused = written.map(([, value]) => value)
            }
            return calls([
              "choir.skill.transition",
              { on: "complete", writes: { ...Object.fromEntries(written), [OPEN]: isTaken } }
            ])
          })
        const plane = yield* makeMemoryControlPlane
        const agent = yield* Effect.forkChild(runAgent({ plane, script, skills: bookOf(spec) }))
        yield* plane.say("go")
        const ended = plane.until((events, state) => spoken(events).length === 2 && quiet(state))
        yield* Effect.raceFirst(ended, Fiber.join(agent))
        yield* Fiber.interrupt(agent)
        assert.strictEqual(plane.state().rev, plane.events.length)
      }
      assert.isAbove(looked, SEEDS * 8)
      assert.isAbove(retried, SEEDS)
    })
  )
})
