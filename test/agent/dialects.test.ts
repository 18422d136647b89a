/** A turn, a job and its report against the double of each server of chat completions, and the rules that the agent breaks there. */
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

/** A model behind a server, and the rules of its dialect that the agent is known to break there. What it learns to send, leaves this list. */
interface Known {
  readonly dialect: DialectName
  readonly request_template?: object
  readonly broken: ReadonlyArray<string>
}

const REASONING = "calls come back with their reasoning_content"

const KNOWN: ReadonlyArray<Known> = [
  { dialect: "openai", broken: [] },
  { dialect: "qwen-template", broken: [] },
  { dialect: "openrouter", broken: [] },
  {
    dialect: "openrouter",
    request_template: { reasoning: { effort: "high" } },
    broken: ["calls of the present turn come back with their reasoning where reasoning is on"]
  },
  // The temperature is left out from the second request on.
  { dialect: "kimi", broken: [REASONING, "the temperature of a model that thinks is 1"] },
  { dialect: "deepseek", broken: [REASONING] },
  { dialect: "gemini", broken: ["the first call of each step of the present turn comes back with its signature"] },
  { dialect: "mistral", broken: ["a call's id has the form that the provider takes"] }
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
  it.live.each(KNOWN)("breaks no rule of $dialect but the known ones", ({ broken, dialect, request_template = {} }) =>
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
      assert.deepStrictEqual([...new Set(refused)].toSorted(), broken.toSorted())
    })
  )
})
