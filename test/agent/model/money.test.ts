/** The cost of a session as its events have it, beside what each provider counted in its own spelling. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { ResourceName } from "#schema/Ids.ts"
import { agentWithModels } from "../../support/modelClient.ts"
import { modelEntry } from "../../support/modelNames.ts"
import * as double from "../../support/testing/Provider.ts"
import { agentConfig, ofType, quiet, spoken } from "../../support/testing/TestAgent.ts"

/** OpenRouter's double takes the same. What goes into a cache costs as much as any other input here, since the double sums only what came out of it. */
const PRICE = { input: 3, output: 15, cache_read: 0.3, cache_write: 3 }
const TURNS = 5
/** The difference that is allowed. */
const SHARE_MAX = 0.01

const DIALECTS: ReadonlyArray<DialectName> = [
  "openai",
  "responses",
  "anthropic",
  "deepseek",
  "kimi",
  "gemini",
  "mistral",
  // Its own cost counts, whatever config.json says.
  "openrouter"
]
/** They say nothing of a cache, so that nobody can price one. */
const SILENT = new Set<DialectName>(["gemini", "mistral"])

describe("the cost of a session", () => {
  it.live.each(DIALECTS)("is within 1 % of what %s counted", (dialect) =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect, counts: true })
      yield* provider.otherwise(({ body }) =>
        double.answer(`I read ${JSON.stringify(body).length} characters. `.repeat(20))
      )
      const base = agentConfig()
      const price = dialect === "openrouter" ? { input: 30, output: 150 } : PRICE
      const small = base.models[ResourceName.make("small")]
      const models = {
        small: { ...small, ...modelEntry(dialect), endpoint: provider.endpoint, price }
      } as typeof base.models
      const plane = yield* agentWithModels({ config: { ...base, models } })
      for (let turn = 1; turn <= TURNS; turn++) {
        yield* plane.say(`Line ${turn} of what there is to say. `.repeat(80))
        yield* plane.until((events, state) => spoken(events).length === turn && quiet(state))
      }
      const { cached, input, output } = yield* provider.summary
      assert.isAbove(cached, 0)
      const read = SILENT.has(dialect) ? PRICE.input : PRICE.cache_read
      const counted = ((input - cached) * PRICE.input + cached * read + output * PRICE.output) / 1e6
      const told = ofType(plane.events, "ModelOutput").reduce(
        (sum, { payload }) => sum + (payload.usage.cost_usd ?? 0),
        0
      )
      assert.closeTo(told, counted, counted * SHARE_MAX)
    })
  )
})
