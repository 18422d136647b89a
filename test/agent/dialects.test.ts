/** A turn, a job and its report against the double of each server of chat completions, none of whose rules the agent breaks. */
import { assert, describe, it } from "@effect/vitest"
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { MODELS } from "../demo/dialects/chatRequests.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import * as double from "../support/testing/Provider.ts"
import { inOrder } from "../support/testing/ScriptedModel.ts"
import { agentConfig, quiet, runAgent, spoken, testTool } from "../support/testing/TestAgent.ts"

/** A model behind a server, and the keys that its configuration adds to each request. */
interface Server {
  readonly dialect: DialectName
  readonly request_template?: object
}

const SERVERS: ReadonlyArray<Server> = [
  { dialect: "openai" },
  { dialect: "qwen-template" },
  { dialect: "openrouter" },
  { dialect: "openrouter", request_template: { reasoning: { effort: "high" } } },
  { dialect: "kimi" },
  { dialect: "deepseek" },
  { dialect: "gemini" },
  { dialect: "mistral" }
]

const look = testTool("mem.look", () => Effect.succeed({ status: "success", summary: "seen" }), { readOnly: true })
const looks = double.callTools([
  { name: "mem-look", input: {} },
  { name: "mem-look", input: { at: "b" } }
])
const spawns = double.callTools([{ name: "choir-core-spawn", input: { job_name: "work", task_spec: "look" } }])

/** Answers by what it is asked: looks once, starts a job where it is told to, and ends. */
const model = (text: string): double.Reply => {
  const isAnswered = /"role":"tool"(?!.*"role":"user")/su.test(text)
  if (isAnswered) return double.answer("I looked.")
  if (text.includes("You are a core job")) return looks
  const place = text.lastIndexOf('"role":"user"')
  if (text.includes("start a job", place)) return spawns
  return text.includes("look", place) ? looks : double.answer("Fine.")
}

describe("an agent", () => {
  it.live.each(SERVERS)("breaks no rule of $dialect", ({ dialect, request_template = {} }) =>
    Effect.gen(function* () {
      const provider = yield* double.makeProviderOf({ dialect })
      yield* provider.otherwise(({ body }) => model(JSON.stringify(body)))
      const base = agentConfig()
      const models = Object.fromEntries(
        Object.entries(base.models).map(([name, one]) => [
          name,
          {
            ...one,
            model: MODELS[dialect] ?? one.model,
            endpoint: provider.endpoint,
            request_template: { ...request_template }
          }
        ])
      )
      const plane = yield* makeMemoryControlPlane
      const llm = yield* Layer.build(Llm.layer.pipe(Layer.provide([SecretStore.layer, NodeHttpClient.layerUndici])))
      yield* Effect.forkScoped(
        runAgent({
          plane,
          script: inOrder(),
          llm: Layer.succeedContext(llm),
          tools: [look],
          config: { ...base, models }
        })
      )
      for (const text of ["look around", "thanks", "start a job", "what else"]) {
        const before = spoken(plane.events).length
        yield* plane.say(text)
        yield* plane.until((events, state) => spoken(events).length > before && quiet(state))
      }
      const refused = (yield* provider.takeRefusals).map(({ rule }) => rule)
      assert.deepStrictEqual(refused, [])
    })
  )
})
