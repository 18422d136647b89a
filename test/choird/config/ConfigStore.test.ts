import { assert, describe, it as test } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName, SecretName } from "#schema/Ids.ts"
import { agentConfig, boundSecrets } from "#src/choird/config/agentShare.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ConfigVersions } from "#src/choird/config/ConfigVersions.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, CONFIG, makeHome } from "../../support/stores.ts"

const SECRET = SecretName.make("small-key")

describe("an agent's share of the configuration", () => {
  const account = { smtp_host: "h", smtp_port: 1, imap_host: "h", imap_port: 1, secret: "mail" }
  const config = Schema.decodeUnknownSync(Config)({
    ...CONFIG,
    tts: { eleven: { provider: "elevenlabs", model_id: "m", endpoint: "https://h", secret: "voice-key" } },
    voice_profiles: { calm: { tts: "eleven", voice_id: "v" } },
    git_identities: {
      me: { name: "n", email: "e", secret: "git-key" },
      you: { name: "n", email: "e", secret: "other-git" }
    },
    notion_integrations: { wiki: { secret: "notion-key" } },
    email_accounts: { post: account },
    search: { brave: { secret: "brave-key" } },
    embedding: { provider: "openai", model: "e", dimensions: 3, secret: "embed-key" }
  })
  const name = ResourceName.make

  test("holds the bound models and all that their fallbacks lead to, also in a circle", () => {
    const share = agentConfig(config, BINDINGS)
    assert.deepStrictEqual(Object.keys(share.models).sort(), ["large", "small"])
    assert.deepStrictEqual(Object.keys(agentConfig(config, { ...BINDINGS, core_llm: name("other") }).models).length, 3)
    assert.strictEqual<string | undefined>(share.search?.secret, "brave-key")
    assert.notProperty(share, "email")
    assert.notProperty(share, "notion")
    const [[agent_id, agent] = ["", undefined]] = Object.entries(config.agents)
    assert.deepStrictEqual(agentConfig(config, BINDINGS, AgentId.make(agent_id)).repo, agent?.repo)
  })

  test("names the secrets of bound resources and no other", () => {
    assert.deepStrictEqual([...boundSecrets(config, BINDINGS)].sort(), ["brave-key", "large-key", "small-key"])
    const all = {
      ...BINDINGS,
      voice_profile: name("calm"),
      git_identity: name("me"),
      notion: name("wiki"),
      email: name("post")
    }
    assert.deepStrictEqual([...boundSecrets(config, all)].sort(), [
      "brave-key",
      "git-key",
      "large-key",
      "mail",
      "notion-key",
      "small-key",
      "voice-key"
    ])
    const several = {
      ...config,
      search: { ...config.search, own: { secret: SecretName.make("own-key") } }
    }
    assert.include([...boundSecrets(several, { ...BINDINGS, search: name("own") })], SecretName.make("own-key"))
    assert.notInclude([...boundSecrets(several, { ...BINDINGS, search: name("own") })], SecretName.make("brave-key"))
    assert.deepStrictEqual([...boundSecrets(several, BINDINGS)].sort(), ["large-key", "small-key"])
    assert.strictEqual<string | undefined>(
      agentConfig(several, { ...BINDINGS, search: name("own") }).search?.secret,
      "own-key"
    )
    assert.notProperty(agentConfig(several, BINDINGS), "search")
    const unknown = { ...BINDINGS, llm: name("constructor"), core_llm: name("gone"), git_identity: name("constructor") }
    assert.deepStrictEqual([...boundSecrets({ ...config, search: {} }, unknown)], [])
  })
})

describeStores("ConfigStore", (it) => {
  /** The version that a start with this config runs, and a secret's value. */
  const start = (config: unknown, secrets: unknown) =>
    Effect.gen(function* () {
      const store = yield* ConfigStore
      const value = yield* Effect.result(store.secret(SECRET))
      const shown = value._tag === "Success" ? Redacted.value(value.success) : value.failure.hint
      return [(yield* store.current).version, shown] as const
    }).pipe(
      Effect.provide(
        ConfigVersions.layer.pipe(
          Layer.provideMerge(Layer.unwrap(Effect.map(makeHome(config, secrets), (home) => ConfigStore.layer({ home }))))
        )
      )
    )

  it.effect("gives a configuration a new number when its content changed since the last start (R56)", () =>
    Effect.gen(function* () {
      const changed = { ...CONFIG, heartbeat_interval_ms: 1000 }
      assert.deepStrictEqual(yield* start(CONFIG, { "small-key": "a" }), [1, "a"])
      assert.deepStrictEqual(yield* start(CONFIG, { "small-key": "b" }), [1, "b"])
      assert.deepStrictEqual(yield* start(changed, {}), [2, "choirctl secret set small-key && choirctl secret apply"])
      assert.deepStrictEqual(yield* start(changed, { "small-key": "" }), [
        2,
        "choirctl secret set small-key && choirctl secret apply"
      ])
      const reordered = JSON.stringify(Object.fromEntries(Object.entries(changed).toReversed()), undefined, 2)
      assert.strictEqual((yield* start(reordered, {}))[0], 2)
      assert.strictEqual((yield* start(CONFIG, {}))[0], 3)
    })
  )
})
