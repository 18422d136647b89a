import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { crowdedText, unlistedModels } from "#src/choird/api/operator/statusWarnings.ts"
import { CONFIG } from "../../../support/stores.ts"

const configWith = (runtime: object) =>
  Schema.decodeUnknownSync(Config)({
    ...CONFIG,
    agents: {},
    models: {
      far: { provider: "p", model: "m", endpoint: "https://api.example.org/v1" },
      near: { provider: "p", model: "m", endpoint: "http://10.0.0.5:8080/v1" },
      plain: { provider: "p", model: "m", endpoint: "http://api.example.org/v1" }
    },
    runtime
  })

describe("unlistedModels", () => {
  it("names each model that the list keeps agents from, with the entry that is missing", () => {
    assert.deepStrictEqual(unlistedModels(configWith({ network: "allowlist", allow: ["api.example.org"] })), [
      'agents cannot reach the model near: runtime.allow lacks "10.0.0.5:8080"',
      'agents cannot reach the model plain: runtime.allow lacks "api.example.org:80"'
    ])
    const all = ["api.example.org", "api.example.org:80", "10.0.0.5:8080"]
    assert.deepStrictEqual(unlistedModels(configWith({ network: "allowlist", allow: all })), [])
    assert.deepStrictEqual(unlistedModels(configWith({ network: "public" })), [])
  })
})

describe("crowdedText", () => {
  it("names the DM whose messages wait, and says no more than that an answer may have to", () => {
    assert.strictEqual(
      crowdedText({ agent_id: AgentId.make("ada"), dm: ResourceName.make("desk"), count: 4000 }),
      "ada may have to hold back its next answer: 4000 of its messages to the DM desk are neither read nor delivered"
    )
  })
})
