/** Skills of a program that embeds Choir: an Effect program behind a contract. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Schema } from "effect"
import { defineSkill, type SkillDefinition } from "#src/agent/tools/defineSkill.ts"
import { makeMemoryControlPlane } from "../../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script } from "../../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, ticking } from "../../support/testing/TestAgent.ts"
import { bookOf } from "../../support/skills.ts"

/** A service of the embedding program. */
class Rates extends Context.Service<Rates, { readonly of: (currency: string) => Effect.Effect<number, NoRate> }>()(
  "test/Rates"
) {}
class NoRate extends Schema.TaggedError<NoRate>()("NoRate", { currency: Schema.String }) {
  override get message() {
    return `there is no rate for ${this.currency}`
  }
}

const conversion: SkillDefinition<NoRate, Rates> = {
  name: "convert-money",
  description: "Convert an amount of money.",
  registry: { version: "1.2.0", tier: "task" },
  contract: {
    does: "converts an amount by today's rate",
    does_not: "pay anything",
    state: {
      amount: { schema: { type: "number" } },
      currency: { schema: { type: "string" } },
      euros: { schema: { type: "number" } }
    },
    state_read: ["amount", "currency"],
    state_write: ["euros"],
    assertions: [{ statement: "it is some money", path: "euros", op: ">", value: 0 }]
  },
  run: ({ amount, currency }) =>
    Effect.gen(function* () {
      const rate = yield* Effect.flatMap(Rates, ({ of }) => of(typeof currency === "string" ? currency : ""))
      return { writes: { euros: Number(amount) * rate }, summary: `at ${rate}` }
    })
}

const rates = Rates.of({
  of: (currency) => (currency === "usd" ? Effect.succeed(0.5) : Effect.fail(new NoRate({ currency })))
})
const defined = Effect.provideService(defineSkill(conversion), Rates, rates)

const inSession = Effect.fnUntraced(function* (script: Script) {
  yield* ticking
  const { spec, tool } = yield* defined
  const plane = yield* makeMemoryControlPlane
  const agent = yield* Effect.forkChild(runAgent({ plane, script, tools: [tool], skills: bookOf(spec) }))
  yield* plane.say("go")
  const ended = plane.until((events, state) => spoken(events).length === 1 && quiet(state))
  yield* Effect.raceFirst(ended, Fiber.join(agent))
  yield* Fiber.interrupt(agent)
  return plane
})

const begins =
  (input: { readonly amount: number; readonly currency: string }): Script =>
  (messages, tools) =>
    Effect.sync(() => {
      assert.isFalse(
        tools.some(({ name }) => name.startsWith("program")),
        "no model is offered the program"
      )
      return messages.some(({ role }) => role === "tool")
        ? says("done")
        : calls(["choir.skill.start", { skill: "convert-money", input }])
    })
const ended = (plane: Effect.Success<ReturnType<typeof inSession>>) =>
  ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload

describe("defineSkill", () => {
  it.effect("runs an Effect program with the services of its definition, by the skill's STATE", () =>
    Effect.gen(function* () {
      const plane = yield* inSession(begins({ amount: 8, currency: "usd" }))
      assert.deepStrictEqual(ended(plane)?.output, { euros: 4 })
      assert.strictEqual(ended(plane)?.ended, "completed")
      const models = ofType(plane.events, "ModelOutput").map(({ payload }) => payload.model)
      assert.deepStrictEqual(models, ["small", "skill:convert-money@1.2.0", "skill:convert-money@1.2.0", "small"])
    })
  )

  it.effect("ends as failed with the program's own error, and where its result does not hold", () =>
    Effect.gen(function* () {
      const unknown = yield* inSession(begins({ amount: 8, currency: "xau" }))
      assert.match(ended(unknown)?.reason ?? "", /there is no rate for xau/u)
      const nothing = yield* inSession(begins({ amount: 0, currency: "usd" }))
      assert.match(ended(nothing)?.reason ?? "", /"it is some money" does not hold/u)
    })
  )

  it.effect("lets no model call the program, whatever name it guesses", () =>
    Effect.gen(function* () {
      const script: Script = (messages) =>
        Effect.succeed(
          messages.some(({ role }) => role === "tool") ? says("no") : calls(["program.s_convert_money", { amount: 1 }])
        )
      const plane = yield* inSession(script)
      assert.strictEqual(ofType(plane.events, "ToolResultCommitted")[0]?.payload.status, "rejected")
      assert.lengthOf(ofType(plane.events, "ToolCallCommitted"), 0)
    })
  )

  it.effect("refuses a definition that cannot hold, with every problem", () =>
    Effect.gen(function* () {
      const contract = { ...conversion.contract, state_read: ["rate"], retries: 3 }
      const exit = yield* Effect.exit(defineSkill({ ...conversion, contract, run: () => Effect.never }))
      assert.match(Exit.isFailure(exit) ? JSON.stringify(exit.cause) : "", /retries/u)
      const other = yield* Effect.exit(
        defineSkill({ ...conversion, contract: { ...contract, retries: 0 }, run: () => Effect.never })
      )
      assert.match(Exit.isFailure(other) ? JSON.stringify(other.cause) : "", /rate is not in the contract's state/u)
    })
  )
})
