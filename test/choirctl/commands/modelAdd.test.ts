import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { modelUse } from "#src/choirctl/home/modelUse.ts"
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
        secret: "sonnet-key",
        price: { input: 3, output: 15 }
      })
      assert.strictEqual(config.agents["choir" as never]?.["defaults"]["llm"], "sonnet")
      assert.include(text(home, "secrets.json"), KEY)
      assert.property(secrets, "sonnet-key")
    }).pipe(Effect.scoped)
  )

  it.live("names the only agent and --default in its advice", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      assert.strictEqual(
        yield* modelUse(home, ResourceName.make("sonnet")),
        "choirctl model set choir --llm sonnet --default"
      )
      yield* choirctl(home, ["agent", "init", "second"])
      assert.strictEqual(
        yield* modelUse(home, ResourceName.make("sonnet")),
        "choirctl model set <agent-id> --llm sonnet --default"
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
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

  it.live("uses the key that the server gets already, and asks for none", () =>
    Effect.gen(function* () {
      const home = yield* newHome
      const provider = yield* ready
      yield* adds(home, provider)
      yield* provider.script(callTools([{ name: "choir_check", input: { word: "ready" } }]))
      const ran = yield* addsSecond(home, provider, "opus")
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.err, /The key is the secret sonnet-key, which goes to http:\/\/127\.0\.0\.1:\d+ already/u)
      assert.notInclude(ran.err, "secret set")
      assert.strictEqual(configOf(home).models.opus.secret, "sonnet-key")
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

const KEY_A = "sk-of-the-server-a-0123"
const KEY_B = "sk-of-the-server-b-4567"

/** Two servers with a key each, and a home whose model `a` is at the first one. */
const twoServers = Effect.gen(function* () {
  const home = yield* newHome
  const [a, b] = [yield* makeProviderOf({ key: KEY_A }), yield* makeProviderOf({ key: KEY_B })]
  for (const each of [a, b]) yield* each.otherwise(() => callTools([{ name: "choir_check", input: { word: "ready" } }]))
  const add = (name: string, { endpoint }: Provider, stdin: string, ...more: ReadonlyArray<string>) =>
    choirctl(
      home,
      ["model", "add", name, "--provider", "other", "--endpoint", endpoint, "--model", "m", "--json", ...more],
      { stdin }
    )
  const first = yield* add("a", a, KEY_A)
  assert.strictEqual(first.code, 0, first.err)
  /** The keys that a server has seen. */
  const keysAt = ({ requests }: Provider) =>
    Effect.map(requests.all, (all) => [...new Set(all.map(({ headers }) => headers["authorization"]))])
  const secrets = () => JSON.parse(text(home, "secrets.json")) as Record<string, string>
  return { home, a, b, add, keysAt, secrets }
})

describe("the key of one server", () => {
  it.live("never goes to another one, and the key that is given for that one is kept under a name of its own", () =>
    Effect.gen(function* () {
      const { a, add, b, home, keysAt, secrets } = yield* twoServers
      const none = yield* add("b", b, "")
      assert.nestedPropertyVal(document(none), "error.type", "MODEL_KEY")
      assert.deepStrictEqual(yield* keysAt(b), [undefined])
      yield* b.takeRefusals
      const ran = yield* add("b", b, `${KEY_B}\n`)
      assert.strictEqual(ran.code, 0, ran.err)
      assert.notInclude(ran.out + ran.err, "secret set")
      assert.deepStrictEqual(secrets(), { "a-key": KEY_A, "b-key": KEY_B })
      assert.strictEqual(configOf(home).models.b.secret, "b-key")
      assert.deepStrictEqual(yield* keysAt(a), [`Bearer ${KEY_A}`])
      assert.notInclude(yield* keysAt(b), `Bearer ${KEY_A}`)
      // Another name for the same host is another server.
      const named = yield* add("c", { ...a, endpoint: a.endpoint.replace("127.0.0.1", "localhost") }, "")
      assert.strictEqual(named.code, 1, named.out)
      yield* a.takeRefusals
    }).pipe(Effect.scoped)
  )

  it.live("replaces no secret of the same name, and is stored once where the server gets it already", () =>
    Effect.gen(function* () {
      const { a, add, b, home, secrets } = yield* twoServers
      yield* choirctl(home, ["secret", "set", "b-key"], { stdin: "mine" })
      yield* add("b", b, KEY_B)
      assert.deepStrictEqual(secrets(), { "a-key": KEY_A, "b-key": "mine", "b-key-2": KEY_B })
      yield* add("a2", a, KEY_A)
      assert.strictEqual(configOf(home).models.a2.secret, "a-key")
      assert.lengthOf(Object.keys(secrets()), 3)
    }).pipe(Effect.scoped)
  )

  it.live("goes to another server only when --secret names it and the operator confirms", () =>
    Effect.gen(function* () {
      const { add, b, home, keysAt, secrets } = yield* twoServers
      const plain = ["--provider", "other", "--endpoint", b.endpoint, "--model", "m", "--secret", "a-key"]
      const asked = yield* choirctl(home, ["model", "add", "b", ...plain])
      assert.strictEqual(asked.code, 2)
      assert.match(asked.err, /The secret a-key goes to http:\/\/127\.0\.0\.1:\d+ \(models\.a\)/u)
      assert.include(asked.err, `It would also be sent to ${new URL(b.endpoint).origin}`)
      assert.deepStrictEqual(yield* keysAt(b), [])
      const other = yield* add("b", b, KEY_B, "--secret", "a-key", "--yes")
      assert.strictEqual(other.code, 2)
      assert.include(other.out, "another value")
      assert.notProperty(configOf(home).models, "b")
      const told = yield* add("b", b, "", "--secret", "a-key", "--yes")
      assert.nestedPropertyVal(document(told), "error.type", "MODEL_KEY")
      assert.match(told.out, /give this model a key of its own/u)
      yield* b.takeRefusals
      const own = yield* add("b", b, KEY_B, "--secret", "mine")
      assert.strictEqual(own.code, 0, own.err)
      assert.deepStrictEqual(secrets(), { "a-key": KEY_A, mine: KEY_B })
    }).pipe(Effect.scoped)
  )

  it.live("is named by config validate when an address that it goes to has changed since choird worked with it", () =>
    Effect.gen(function* () {
      const { b, home, keysAt } = yield* twoServers
      const before = text(home, "config.json")
      writeFileSync(join(home, "config.last-good.json"), before, { mode: 0o600 })
      const same = yield* choirctl(home, ["config", "validate"])
      assert.notInclude(same.out, "would go to")
      const config = JSON.parse(before)
      config.models.a.endpoint = b.endpoint
      writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 })
      const moved = yield* choirctl(home, ["config", "validate"])
      assert.include(
        moved.out,
        `models.a.secret: the secret "a-key" would go to ${new URL(b.endpoint).origin}, which does not get it today`
      )
      const asked = yield* choirctl(home, ["model", "test", "a"])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, "model test a --yes")
      const doctor = yield* choirctl(home, ["doctor", "--json"])
      assert.include(doctor.out, "which does not get it today; it goes to")
      assert.deepStrictEqual(yield* keysAt(b), [])
      yield* choirctl(home, ["model", "test", "a", "--yes"])
      assert.deepStrictEqual(yield* keysAt(b), [`Bearer ${KEY_A}`])
      yield* b.takeRefusals
    }).pipe(Effect.scoped)
  )
})
