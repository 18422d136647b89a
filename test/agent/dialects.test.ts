/** A turn, a job and its report against the double of each server, none of whose rules the agent breaks. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { agentWithModels, configWith } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import * as double from "../support/testing/Provider.ts"
import { ofType, quiet, spoken, testTool } from "../support/testing/TestAgent.ts"

/** A model behind a server, and the keys that its configuration adds to each request. */
interface Server {
  readonly dialect: DialectName
  /** Another model than the usual one of the dialect. */
  readonly model?: string
  readonly reasoning_effort?: string
  readonly request_template?: object
}

const SERVERS: ReadonlyArray<Server> = [
  { dialect: "openai" },
  { dialect: "responses" },
  { dialect: "anthropic" },
  { dialect: "anthropic", request_template: { thinking: { type: "enabled", budget_tokens: 2048 } } },
  { dialect: "qwen-template" },
  { dialect: "openrouter" },
  { dialect: "openrouter", request_template: { reasoning: { effort: "high" } } },
  { dialect: "openrouter", model: "anthropic/claude-sonnet-4.6", reasoning_effort: "high" },
  { dialect: "openrouter", model: "anthropic/claude-opus-4.8", reasoning_effort: "high" },
  { dialect: "anthropic", model: "claude-sonnet-4-6", reasoning_effort: "high" },
  { dialect: "anthropic", model: "claude-opus-4-8", reasoning_effort: "high" },
  { dialect: "kimi" },
  { dialect: "deepseek" },
  { dialect: "gemini" },
  { dialect: "mistral" }
]

const look = testTool("mem.look", () => Effect.succeed({ status: "success", summary: "seen" }), { besideJobs: true })
const looks = double.callTools([
  { name: "mem-look", input: {} },
  { name: "mem-look", input: { at: "b" } }
])
const spawns = double.callTools([{ name: "choir-core-spawn", input: { job_name: "work", task_spec: "look" } }])

/** The last place of one of these texts. */
const lastOf = (text: string, parts: ReadonlyArray<string>): number =>
  Math.max(...parts.map((part) => text.lastIndexOf(part)))

const SAID = ["look around", "thanks", "start a job", "what else"]
const RESULTS = ['"role":"tool"', '"type":"tool_result"', '"type":"function_call_output"']

/** Answers by what it is asked: looks once, starts a job where it is told to, and ends. */
const model = (text: string): double.Reply => {
  const said = lastOf(text, SAID)
  if (lastOf(text, RESULTS) > said) return double.answer("I looked.")
  if (text.includes("You carry out one task")) return looks
  if (text.startsWith("start a job", said)) return spawns
  return text.startsWith("look", said) ? looks : double.answer("Fine.")
}

describe("an agent", () => {
  it.live.each(SERVERS)("breaks no rule of $dialect", ({ request_template = {}, ...server }) =>
    Effect.gen(function* () {
      const { dialect, reasoning_effort } = server
      const provider = yield* double.makeProviderOf({ dialect })
      yield* provider.otherwise(({ body }) => model(JSON.stringify(body)))
      const entry = {
        ...modelEntry(dialect),
        ...(server.model === undefined ? {} : { model: server.model }),
        ...(reasoning_effort === undefined ? {} : { reasoning_effort }),
        endpoint: provider.endpoint,
        request_template: { ...request_template }
      }
      const plane = yield* agentWithModels({ tools: [look], config: configWith(entry) })
      for (const text of ["look around", "thanks", "start a job", "what else"]) {
        const before = spoken(plane.events).length
        yield* plane.say(text)
        yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
      }
      const refused = (yield* provider.takeRefusals).map(({ rule }) => rule)
      assert.deepStrictEqual(refused, [])
      const looked = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.summary === "seen")
      assert.lengthOf(looked, 4, "edge and the job looked at two places each")
    })
  )
})
