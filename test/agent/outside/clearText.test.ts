/** A secret goes to https or to this host alone: looked at again with each request, whatever the configuration was when it was read. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { request } from "#src/agent/model/modelRequest.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { isInTheClear } from "#src/shared/config/clearText.ts"
import { answeringServer } from "../../support/answeringServer.ts"
import { agentConfig, settingsOf } from "../../support/testing/TestAgent.ts"

const FAR = "192.0.2.9"
/** Nothing may be sent. */
const nowhere = Layer.succeed(
  HttpClient.HttpClient,
  HttpClient.make((sent) => Effect.die(new Error(`a request was sent to ${sent.url}`)))
)
const asked = (url: string) =>
  ({
    service: "Notion",
    source: "notion",
    method: "GET",
    url,
    headers: { authorization: "Bearer k" },
    waitOf: () => undefined
  }) as const

const layerOf = (own_addresses: ReadonlyArray<string>, http: Layer.Layer<HttpClient.HttpClient>) =>
  OutsideApi.layer.pipe(Layer.provide([http, AgentSettings.layer(settingsOf(1, { ...agentConfig(), own_addresses }))]))

describe("a request with a secret", () => {
  it("is in the clear unless it is https, loopback, or an address that choird named; names and other spellings of http are not believed", () => {
    const own = new Set([FAR])
    for (const url of [
      "https://api.example/",
      "http://127.0.0.1:1/",
      "http://[::1]/",
      "http://localhost/",
      `http://${FAR}:8080/v1`
    ])
      assert.isFalse(isInTheClear(url, own), url)
    for (const url of [
      "http://api.example/",
      "http://192.0.2.10/",
      "HTTP://api.example/",
      "http://localhost.example/",
      "http://127.0.0.1.example/",
      "ftp://api.example/",
      "no address"
    ])
      assert.isTrue(isInTheClear(url, own), url)
  })

  it.effect("of a tool is not sent to an address that is choird's no more", () =>
    Effect.gen(function* () {
      const api = yield* OutsideApi
      const { in_doubt, problem } = yield* Effect.flip(api.ask(asked(`http://${FAR}/v1/search`)))
      assert.match(problem, /Notion: no request was sent, .*192\.0\.2\.9 is not of this host; write https:/u)
      assert.isFalse(in_doubt)
    }).pipe(Effect.provide(layerOf(["192.0.2.8"], nowhere)))
  )

  it.live("of a tool does not follow a redirect", () =>
    Effect.gen(function* () {
      const second = yield* answeringServer(() => ({ status: 200, body: {} }))
      const first = yield* answeringServer(() => ({ status: 307, headers: { location: second.origin }, body: {} }))
      const http = Layer.fresh(NodeHttpClient.layerUndiciOptions({ allowH2: false }))
      const api = yield* Effect.provideContext(OutsideApi, yield* Layer.build(layerOf([], http)))
      const { problem } = yield* Effect.flip(api.ask(asked(`${first.origin}/`)))
      assert.match(problem, /redirect, which is not followed/u)
      assert.deepStrictEqual([first.asked.length, second.asked.length], [1, 0])
    }).pipe(Effect.scoped)
  )

  it.effect("of a model is not sent to an address that is choird's no more, and one without a key is", () =>
    Effect.gen(function* () {
      const model = agentConfig().models["small" as keyof ReturnType<typeof agentConfig>["models"]]
      if (model === undefined) return assert.fail("no model")
      const far = { ...model, endpoint: `http://${FAR}/v1` }
      const http = yield* HttpClient.HttpClient
      const send = (key: Redacted.Redacted | undefined) =>
        request(
          http,
          { model: far, key, own: new Set<string>(), redact: (text) => text },
          Buffer.from("{}"),
          Effect.void,
          () => Effect.void
        )
      const refused = yield* Effect.flip(send(Redacted.make("k")))
      assert.match(refused.error.message, /would cross the network in the clear/u)
      assert.match(String(yield* Effect.sandbox(Effect.flip(send(undefined))).pipe(Effect.flip)), /a request was sent/u)
    }).pipe(Effect.provide(nowhere))
  )
})
