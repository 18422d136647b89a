import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { callTools, failing, makeProviderOf, type Provider } from "../../support/testing/Provider.ts"

const KEY = "sk-of-a-test-0123456789"

const text = (home: string, file: string): string => readFileSync(join(home, file), "utf8")
const configOf = (home: string) => JSON.parse(text(home, "config.json"))

const newHome = Effect.gen(function* () {
  const home = join(yield* temporaryFolder, "home")
  yield* choirctl(home, ["init"])
  yield* choirctl(home, ["agent", "init", "choir"])
  return home
})

const ready = Effect.gen(function* () {
  const provider = yield* makeProviderOf({ key: KEY })
  yield* provider.script(callTools([{ name: "choir_check", input: { word: "ready" } }]))
  return provider
})

const adds = (home: string, { endpoint }: Pick<Provider, "endpoint">, ...more: ReadonlyArray<string>) =>
  choirctl(
    home,
    ["model", "add", "sonnet", "--provider", "other", "--endpoint", endpoint, "--model", "claude", ...more],
    { stdin: `${KEY}\n` }
  )

/** A second model of the same provider, whose key is there already. */
const addsSecond = (
  home: string,
  { endpoint }: Pick<Provider, "endpoint">,
  name: string,
  ...more: ReadonlyArray<string>
) => choirctl(home, ["model", "add", name, "--provider", "other", "--endpoint", endpoint, "--model", "claude", ...more])

describe("choirctl model add", () => {
  it.live("tries a model, and then writes it, its key and the agent's default", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const provider = yield* ready
      const ran = yield* adds(home, provider, "--price-in", "3", "--price-out", "15", "--agent", "choir")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.include(ran.err, "It works: claude called a tool")
      assert.match(ran.out, /^added claude as sonnet\n\nNext:\n {2}choirctl .*daemon start\n$/u)
      assert.notInclude(ran.out + ran.err, KEY)
      const { config, secrets } = yield* loadFiles(home)
      assert.deepInclude(configOf(home).models.sonnet, {
        provider: "other",
        model: "claude",
        endpoint: provider.endpoint,
        secret: "other-key",
        price: { input: 3, output: 15 }
      })
      assert.strictEqual(config.agents["choir" as never]?.["defaults"]["llm"], "sonnet")
      assert.include(text(home, "secrets.json"), KEY)
      assert.property(secrets, "other-key")
    }).pipe(Effect.scoped)
  )

  it.live("makes it the fallback of another model, after those that it has", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const provider = yield* ready
      const ran = yield* adds(home, provider, "--fallback-for", "main")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.out, /^added claude as sonnet, for when main fails\n\nNext:\n {2}choirctl .*daemon start\n$/u)
      yield* provider.script(callTools([{ name: "choir_check", input: { word: "ready" } }]))
      const second = yield* addsSecond(home, provider, "opus", "--fallback-for", "main", "--json")
      const { fallback_for } = document(second) as { fallback_for: string }
      assert.strictEqual(fallback_for, "main")
      assert.deepStrictEqual(configOf(home).models.main.fallback, ["sonnet", "opus"])
      const unknown = yield* addsSecond(home, provider, "third", "--fallback-for", "mian", "--untested")
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "there is no model mian in config.json")
      assert.notProperty(configOf(home).models, "third")
    }).pipe(Effect.scoped)
  )

  it.live("leaves both files as they were when the model refuses, and says what helps", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const provider = yield* makeProviderOf({ key: KEY })
      yield* provider.script(failing(401, "no such key"))
      const before = [text(home, "config.json"), text(home, "secrets.json")]
      const ran = yield* adds(home, provider, "--json")
      assert.strictEqual(ran.code, 1)
      const { error } = document(ran) as { error: { type: string; message: string; hint: string } }
      assert.strictEqual(error.type, "MODEL_KEY")
      assert.match(error.message, /refuses the key \(401\)/u)
      assert.notInclude(ran.out + ran.err, KEY)
      assert.deepStrictEqual([text(home, "config.json"), text(home, "secrets.json")], before)
    }).pipe(Effect.scoped)
  )

  it.live("uses the key that the provider has already, and asks for none", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const provider = yield* ready
      yield* adds(home, provider)
      yield* provider.script(callTools([{ name: "choir_check", input: { word: "ready" } }]))
      const ran = yield* addsSecond(home, provider, "opus")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.err, /The key is the secret other-key; choirctl .*secret set other-key replaces it/u)
      assert.strictEqual(configOf(home).models.opus.secret, "other-key")
      assert.include(ran.err, "its price is unknown")
    }).pipe(Effect.scoped)
  )

  it.live("refuses a name that is taken, an agent that is not there and half a price, and writes nothing", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const before = [text(home, "config.json"), text(home, "secrets.json")]
      const untested = (name: string, ...more: ReadonlyArray<string>) =>
        choirctl(
          home,
          ["model", "add", name, "--untested", "--endpoint", "https://llm.example/v1", "--model", "m", ...more],
          { stdin: KEY }
        )
      const taken = yield* untested("main")
      assert.match(taken.err, /config\.json already has a model main/u)
      const stranger = yield* untested("m2", "--agent", "nobody")
      assert.match(stranger.err, /there is no agent nobody in config\.json.*\n?.*known: choir/u)
      const half = yield* untested("m2", "--price-in", "3")
      assert.match(half.err, /give both --price-in and --price-out/u)
      const clear = yield* choirctl(
        home,
        ["model", "add", "m2", "--untested", "--endpoint", "http://llm.example/v1", "--model", "m"],
        { stdin: KEY }
      )
      assert.notStrictEqual(clear.code, 0)
      assert.match(clear.err, /endpoint/u)
      const nothing = yield* choirctl(home, ["model", "add", "m2"], { stdin: KEY })
      assert.strictEqual(nothing.code, 2)
      assert.match(nothing.err, /--provider is missing/u)
      assert.deepStrictEqual([text(home, "config.json"), text(home, "secrets.json")], before)
    })
  )
})
