import { createServer } from "node:http"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { layerPrometheus } from "#src/choird/telemetry/Prometheus.ts"
import { browserResult, metricsChecks, priceWarning, tryBot } from "#src/choirctl/doctor/serviceChecks.ts"
import { triedWords, tryModel } from "#src/choirctl/doctor/modelCheck.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import { serveOfflineModel } from "#demo/offline-model/OfflineModel.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { CONFIG } from "../../support/stores.ts"
import { callTools, makeProviderOf } from "../../support/testing/Provider.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"

const KEY = "sk-test-0123456789"

/** An endpoint that answers everything alike. */
const endpointThat = (status: number, body: string) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((_, response) => {
        response.writeHead(status, status === 302 ? { location: "http://127.0.0.1:9/" } : {}).end(body)
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1`, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map(({ url }) => url))

const text = (content: string) => JSON.stringify({ choices: [{ message: { role: "assistant", content } }] })

const CAUSES = [
  [401, `{"error":"bad key ${KEY}"}`, "key", /refuses the key \(401\)/u],
  [403, "{}", "key", /refuses the key \(403\)/u],
  [402, "{}", "credit", /no credit \(402\)/u],
  [404, '{"error":"no such model"}', "name", /has no model m-1/u],
  [404, '{"detail":"Not Found"}', "address", /has nothing at .*the address may be wrong/u],
  [404, '{"error":"No endpoints found that support tool use"}', "tools", /cannot call tools/u],
  [400, '{"error":"m-1 does not support tools"}', "tools", /cannot call tools/u],
  [404, "<!doctype html><title>x</title>", "address", /web page/u],
  [200, "<html></html>", "address", /web page/u],
  [200, "{}", "address", /not a chat completion/u],
  [302, "", "address", /redirects/u],
  [429, "{}", "busy", /limits how often/u],
  [503, "{}", "broken", /server at 127\.0\.0\.1:\d+ failed \(503\)/u],
  [200, text("ready"), "tools", /cannot call tools/u]
] as const

const call = { id: "c1", type: "function", function: { name: "choir_check", arguments: '{"word":"ready"}' } }
const called = (message: object, usage: object = {}) =>
  JSON.stringify({
    choices: [
      { finish_reason: "tool_calls", message: { role: "assistant", content: null, tool_calls: [call], ...message } }
    ],
    usage: { prompt_tokens: 90, completion_tokens: 40, ...usage }
  })
const signed = { ...call, extra_content: { google: { thought_signature: "c2lnbmVk" } } }
const thought = { completion_tokens_details: { reasoning_tokens: 20 } }

const THOUGHTS = [
  [called({}), /called a tool after [\d.]+ s$/u],
  [called({ reasoning_content: "The word is ready." }), /; it thought before this call, and agents send that back/u],
  [called({ reasoning_content: "So." }, thought), /; it thought for 20 tokens before this call, and agents send/u],
  [called({}, thought), /; it thought for 20 tokens before this call$/u],
  [
    called({ tool_calls: [signed] }),
    /; it showed no thoughts, but its call carries a signature, which agents send back$/u
  ]
] as const

describe("the check of a model", () => {
  it.live.each(THOUGHTS)("says what was seen of its thoughts: %s", ([body, words]) =>
    Effect.gen(function* () {
      const endpoint = yield* endpointThat(200, body)
      const tried = yield* tryModel({ endpoint, model: "m-1" }, undefined)
      assert.match(triedWords("m-1", tried), words)
    }).pipe(Effect.scoped)
  )

  it.each([
    ["https://api.example.com/v1", {}, {}, 1],
    ["https://api.example.com/v1", { price: { input: 3, output: 15 } }, {}, 0],
    ["https://openrouter.ai/api/v1", {}, { cost_usd: 0.01 }, 0],
    ["http://127.0.0.1:11434/v1", {}, {}, 0]
  ] as const)(
    "says that nobody knows what a turn costs without a price: %s %j %j",
    (endpoint, price, usage, warnings) => {
      const said = priceWarning({ endpoint, ...price }, usage)
      assert.strictEqual(said.length, warnings)
      for (const line of said) assert.include(line, "set its price in config.json")
    }
  )

  it.live("names the address to use where config.json has the path of a request", () =>
    Effect.gen(function* () {
      const endpoint = yield* endpointThat(404, "{}")
      const failure = yield* Effect.flip(
        tryModel({ endpoint: `${endpoint}/chat/completions/`, model: "m-1" }, undefined)
      )
      assert.deepStrictEqual([failure.obstacle, failure.fix], ["address", `Use the address ${endpoint}`])
    })
  )

  for (const [status, body, obstacle, words] of CAUSES)
    it.live(`says what is wrong: ${obstacle}, ${status} ${body.slice(0, 30)}`, () =>
      Effect.gen(function* () {
        const endpoint = yield* endpointThat(status, body)
        const failure = yield* Effect.flip(tryModel({ endpoint, model: "m-1" }, Redacted.make(KEY)))
        assert.strictEqual(failure.obstacle, obstacle)
        assert.match(failure.problem, words)
        assert.notInclude(failure.message, KEY)
      }).pipe(Effect.scoped)
    )

  for (const [body, words] of [
    [
      `{"error":{"message":"No auth credentials found for ${KEY}.","code":401}}`,
      "; it said: No auth credentials found for ***"
    ],
    ['{"error":"bad key"}', "; it said: bad key"],
    ['{"detail":[{"loc":["body"],"message":"field required"}]}', "; it said: field required"],
    ["Unauthorized\n", "; it said: Unauthorized"],
    ['{"code":401,"ok":false}', ""],
    ['{"error":{"message":"cut o', ""]
  ] as const)
    it.live(`shows of an answer only the provider's own words: ${body.slice(0, 30)}`, () =>
      Effect.gen(function* () {
        const endpoint = yield* endpointThat(401, body)
        const failure = yield* Effect.flip(tryModel({ endpoint, model: "m-1" }, Redacted.make(KEY)))
        assert.match(failure.problem, /^127\.0\.0\.1:\d+ refuses the key \(401\)/u)
        assert.strictEqual(failure.problem.replace(/^.*?\(401\)/u, ""), words)
      }).pipe(Effect.scoped)
    )

  it.live("refuses a key that no header can carry, and does not print it", () =>
    Effect.gen(function* () {
      const tried = tryModel({ endpoint: "http://127.0.0.1:65000/v1", model: "m" }, Redacted.make(`${KEY}\n${KEY}`))
      const failure = yield* Effect.flip(tried)
      assert.strictEqual(failure.obstacle, "key")
      assert.notInclude(failure.message, KEY)
    })
  )

  it.live("says that nobody answers", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(tryModel({ endpoint: "http://127.0.0.1:9/v1", model: "m" }, undefined))
      assert.strictEqual(failure.obstacle, "unreachable")
    })
  )

  it.live("is passed by the offline model, which calls the tool", () =>
    Effect.gen(function* () {
      const endpoint = yield* serveOfflineModel({ host: "127.0.0.1", port: 0 })
      assert.isAtLeast((yield* tryModel({ endpoint, model: "offline-model" }, undefined)).took_ms, 0)
    }).pipe(Effect.scoped)
  )
})

describe("the check of a bot", () => {
  it.live("answers the bot's name, and refuses a token that Telegram refuses", () =>
    Effect.gen(function* () {
      const telegram = yield* makeTelegram
      telegram.bot("1000:secret")
      assert.isNotEmpty(yield* tryBot(telegram.url, Redacted.make("1000:secret")))
      const wrong = yield* Effect.flip(tryBot(telegram.url, Redacted.make("1000:other")))
      assert.match(wrong.problem, /refuses the bot's token \(401\)/u)
      const none = yield* Effect.flip(tryBot(telegram.url, Redacted.make("hello")))
      assert.match(none.problem, /looks like/u)
    }).pipe(Effect.scoped)
  )

  it.live("takes no name that could steer a terminal", () =>
    Effect.gen(function* () {
      const endpoint = yield* endpointThat(200, JSON.stringify({ result: { username: "\u001b[2Jbot" } }))
      const failure = yield* Effect.flip(tryBot(endpoint, Redacted.make("1000:secret")))
      assert.strictEqual(failure.obstacle, "address")
    }).pipe(Effect.scoped)
  )
})

describe("choirctl model test and doctor", () => {
  it.live("try the model with its key, and exit with 1 and the cause", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const endpoint = yield* endpointThat(401, "{}")
      const flags = ["--model-endpoint", endpoint, "--model-name", "m-1", "--model-secret-stdin"]
      yield* choirctl(home, ["init", ...flags], { stdin: `${KEY}\n` })
      const refused = yield* choirctl(home, ["model", "test", "main", "--json"])
      assert.strictEqual(refused.code, 1)
      assert.deepInclude(document(refused), { ok: false })
      assert.match(refused.out, /MODEL_KEY.*refuses the key.*then: choirctl secret set other-key/u)
      const unknown = yield* choirctl(home, ["model", "test", "other"])
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "known: main")
      const doctor = yield* choirctl(home, ["doctor"])
      assert.strictEqual(doctor.code, 1)
      assert.match(doctor.out, /fail +model main +.*refuses the key[^]*then: choirctl .*secret set other-key/u)
      assert.match(doctor.out, /skip +telegram/u)
    }).pipe(Effect.scoped)
  )

  it.live("send a model what agents send it, and show which parameters its provider refuses (D47)", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const provider = yield* makeProviderOf({ refuses: ["temperature", "max_tokens"] })
      yield* provider.otherwise(() => callTools([{ name: "choir_check", input: { word: "ready" } }]))
      yield* choirctl(home, ["init", "--model-endpoint", provider.endpoint, "--model-name", "thinker"])
      const tested = yield* choirctl(home, ["model", "test", "main", "--json"])
      assert.strictEqual(tested.code, 0, tested.err)
      const { refused_parameters } = document(tested) as { readonly refused_parameters: ReadonlyArray<string> }
      assert.sameMembers([...refused_parameters], ["temperature", "max_tokens"])
      const words = yield* choirctl(home, ["model", "test", "main"])
      assert.match(words.out, /^main works: thinker .*; the provider refuses .*, and agents stop sending it/u)
      const last = (yield* provider.requests.all).at(-1)?.body as Readonly<Record<string, unknown>>
      assert.notProperty(last, "temperature")
      assert.property(last, "max_completion_tokens")
      const refused = (yield* provider.takeRefusals).map(({ param, rule }) => [param, rule])
      const rule = "a request has parameters that the model takes"
      const each = [
        ["temperature", rule],
        ["max_tokens", rule]
      ]
      assert.deepStrictEqual(refused, [...each, ...each])
    }).pipe(Effect.scoped)
  )

  it.live("lower the limit of the answer as agents do, and show the one that the provider takes", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const provider = yield* makeProviderOf({ answer_tokens_max: 4096 })
      yield* provider.otherwise(() => callTools([{ name: "choir_check", input: { word: "ready" } }]))
      yield* choirctl(home, ["init", "--model-endpoint", provider.endpoint, "--model-name", "mine"])
      const tested = yield* choirctl(home, ["model", "test", "main", "--json"])
      assert.strictEqual(tested.code, 0, tested.err)
      assert.deepInclude(document(tested), { refused_parameters: ["max_tokens"], answer_tokens_max: 4096 })
      const words = yield* choirctl(home, ["model", "test", "main"])
      assert.match(words.out, /the provider refuses max_tokens above 4096, and agents stop sending it/u)
      const rule = "an answer's limit is no more than the model writes"
      assert.deepStrictEqual(
        (yield* provider.takeRefusals).map((refusal) => refusal.rule),
        [rule, rule]
      )
    }).pipe(Effect.scoped)
  )

  it.live("say what a turn costs at most by the price in config.json, and of no price without one", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const endpoint = yield* endpointThat(200, called({}))
      yield* choirctl(home, ["init", "--model-endpoint", endpoint, "--model-name", "m-1"])
      assert.notInclude((yield* choirctl(home, ["model", "test", "main"])).out, "costs")
      const file = join(home, "config.json")
      const { models, ...rest } = JSON.parse(readFileSync(file, "utf8")) as {
        readonly models: { readonly main: object }
      }
      const main = { ...models.main, price: { input: 3, output: 15 } }
      writeFileSync(file, JSON.stringify({ ...rest, models: { ...models, main } }))
      const { code, err, out } = yield* choirctl(home, ["model", "test", "main"])
      assert.strictEqual(code, 0, err)
      // 10,000 tokens of a prompt for 3 cents, and 500 of an answer for 0.75.
      assert.include(out, "; a turn of 10000 tokens, with an answer of 500, costs at most $0.038")
      const { turn_usd } = document(yield* choirctl(home, ["model", "test", "main", "--json"])) as {
        readonly turn_usd: number
      }
      assert.closeTo(turn_usd, 0.0375, 1e-9)
    }).pipe(Effect.scoped)
  )

  it.live("pass for a model that works, and name a bot whose token is wrong", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const endpoint = yield* serveOfflineModel({ host: "127.0.0.1", port: 0 })
      const telegram = yield* makeTelegram
      yield* choirctl(home, ["init", "--model-endpoint", endpoint, "--model-name", "offline-model"])
      const works = yield* choirctl(home, ["model", "test", "main"])
      assert.strictEqual(works.code, 0, works.err)
      assert.match(works.out, /^main works: offline-model called a tool after [\d.]+ s; it streams its answers\n$/u)
      const { loadFiles } = yield* Effect.promise(() => import("#src/shared/config/configFiles.ts"))
      const { config } = yield* loadFiles(home)
      const gateways = { bot: { type: "telegram", secret: "token", api_root: telegram.url } }
      writeFileSync(join(home, "config.json"), JSON.stringify({ ...config, gateways, dms: {} }))
      writeFileSync(join(home, "secrets.json"), JSON.stringify({ token: "1000:wrong" }))
      const doctor = yield* choirctl(home, ["doctor"])
      assert.match(doctor.out, /ok +model main/u)
      assert.match(doctor.out, /fail +gateway bot +Telegram refuses the bot's token/u)
    }).pipe(Effect.scoped)
  )
})

describe("the check of the page of metrics", () => {
  it.live("reads it as a scraper does, and says why that does not work", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const port = 20_000 + (process.pid % 20_000)
      const config = Schema.decodeUnknownSync(Config)({
        ...CONFIG,
        telemetry: { prometheus: { listen: `127.0.0.1:${port}` } }
      })
      const tried = (running: boolean) =>
        Effect.map(metricsChecks(home, config, {}, running), ([found]) => `${found?.status} ${found?.detail}`)
      assert.match(yield* tried(false), /^skip http:.*\/metrics, bearer token in .*metrics\.token, while choird runs$/u)
      assert.match(yield* tried(true), /^fail .*metrics\.token cannot be read$/u)
      writeFileSync(join(home, "metrics.token"), "right\n")
      assert.match(yield* tried(true), /^fail no program answers/u)
      yield* Layer.build(layerPrometheus(`127.0.0.1:${port}`, Redacted.make("right")))
      assert.match(yield* tried(true), /^ok http:/u)
      writeFileSync(join(home, "metrics.token"), "wrong\n")
      assert.match(yield* tried(true), /^fail .* answers 401$/u)
      assert.deepStrictEqual(yield* metricsChecks(home, Schema.decodeUnknownSync(Config)(CONFIG), {}, true), [])
    }).pipe(Effect.scoped)
  )
})

describe("the check of the browser", () => {
  it("says how to install Chromium where there is none, and that agents have no browser then", () => {
    assert.deepStrictEqual(browserResult(chromiumProgram(["/nowhere/chromium"]), undefined, true), {
      name: "browser",
      status: "warn",
      detail: "Chromium is not installed, so agents read pages without a browser",
      fix: "install Chromium, in Debian: apt-get install chromium"
    })
  })

  it("says where Chromium's own sandbox does not work, and what choird does then", () => {
    assert.deepInclude(browserResult("/usr/bin/chromium", 0, false), { status: "ok" })
    assert.match(browserResult("/usr/bin/chromium", 1, true).detail, /choird runs it without one, as a separate user/u)
    assert.match(browserResult("/usr/bin/chromium", undefined, false).detail, /browsing will fail/u)
  })
})
