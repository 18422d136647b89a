/** No secret crosses the network unencrypted: each address of config.json that is used with one is refused over http:// but on this host. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { clearTextProblems } from "#src/shared/config/clearText.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { CONFIG, makeHome, SECRETS } from "../support/stores.ts"

const OWN = "192.0.2.7"
const decode = Schema.decodeUnknownSync(Config)
const model = (endpoint: string, secret?: string) => ({
  models: {
    ...CONFIG.models,
    far: { provider: "p", model: "m", endpoint, ...(secret === undefined ? {} : { secret }) }
  }
})
const problems = (more: object) =>
  clearTextProblems(decode({ ...CONFIG, ...more }), new Set([OWN])).map(({ path }) => path.join("."))

/** Every key of config.json that is an address used with a secret, with a configuration that has it at `url`. */
const ENDPOINTS: ReadonlyArray<readonly [string, (url: string) => object]> = [
  ["models.far.endpoint", (url) => model(url, "k")],
  [
    "tts.voice.endpoint",
    (url) => ({ tts: { voice: { provider: "elevenlabs", model_id: "m", endpoint: url, secret: "k" } } })
  ],
  ["notion_integrations.notes.endpoint", (url) => ({ notion_integrations: { notes: { endpoint: url, secret: "k" } } })],
  ["search.web.endpoint", (url) => ({ search: { web: { endpoint: url, secret: "k" } } })],
  [
    "embedding.endpoint",
    (url) => ({ embedding: { provider: "openai", model: "e", dimensions: 8, endpoint: url, secret: "k" } })
  ],
  [
    "gateways.bot.api_root",
    (url) => ({ gateways: { bot: { type: "telegram", secret: "k", api_root: url } }, dms: {} })
  ],
  ["telemetry.otlp.endpoint", (url) => ({ telemetry: { otlp: { endpoint: url, secret: "k" } } })]
]

describe("a secret beside an http:// address", () => {
  it("is refused at every endpoint of config.json, unless the address is this host's", () => {
    for (const [path, at] of ENDPOINTS) {
      for (const far of ["http://api.example.com/v1", "http://127.0.0.1.example.com/v1", "http://192.0.2.8:80"])
        assert.deepStrictEqual(problems(at(far)), [path], far)
      for (const near of ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:1/v1", `http://${OWN}:1`])
        assert.deepStrictEqual(problems(at(near)), [], near)
      assert.deepStrictEqual(problems(at("https://api.example.com/v1")), [], path)
    }
  })

  it("is not asked for where there is no secret", () => {
    assert.deepStrictEqual(problems(model("http://10.0.0.5:8080/v1")), [])
  })

  it.effect("keeps the file from being loaded, and the message carries the fix", () =>
    Effect.gen(function* () {
      const home = yield* makeHome({ ...CONFIG, ...model("http://api.example.com/v1", "far-key") }, SECRETS)
      const { message } = yield* Effect.flip(loadFiles(home))
      assert.match(message, /models.+far.+endpoint/su)
      assert.match(message, /"far-key" would cross the network in the clear. Write https:\/\//u)
    })
  )
})
