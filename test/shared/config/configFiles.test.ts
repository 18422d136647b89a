import { assert, describe, it } from "@effect/vitest"
import { Effect, Runtime } from "effect"
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { CONFIG_BYTES_MAX, hasValue, loadFiles } from "#src/shared/config/configFiles.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { SecretName } from "#schema/Ids.ts"
import { whyNotRoot } from "../../support/packages.ts"
import { CONFIG, makeHome, SECRETS } from "../../support/stores.ts"

const SECRET = "hunter2-correct-horse"
const notRoot = whyNotRoot("homes of another user")

/** The refusal of a home that was changed in some way. */
const refusal = (change: (home: string) => unknown, config: unknown = CONFIG, secrets: unknown = SECRETS) =>
  Effect.gen(function* () {
    const home = yield* makeHome(config, secrets)
    change(home)
    const error = yield* Effect.flip(loadFiles(home))
    assert.strictEqual(error[Runtime.errorExitCode], 78)
    return {
      file: error.file.slice(home.length + 1),
      problems: error.problems,
      hint: error.hint,
      message: error.message
    }
  })

describe("configFiles", () => {
  it.effect("reads both files with their defaults, and warns of what is missing or a placeholder", () =>
    Effect.gen(function* () {
      const secrets = { "small-key": SECRET, "large-key": "", "bot-token": "<token>", unused: "x" }
      const model = { provider: "...", model: "m", endpoint: "https://h", secret: "toString" }
      const home = yield* makeHome(
        {
          ...CONFIG,
          models: { ...CONFIG.models, third: { ...model, secret: "constructor" } },
          workspaces: { ...CONFIG.workspaces, inner: { path: "/srv/main/a/b" }, beside: { path: "/srv/main-2" } }
        },
        secrets
      )
      const files = yield* loadFiles(home)
      assert.strictEqual(files.home, home)
      assert.strictEqual(files.config.heartbeat_interval_ms, 5000)
      assert.deepStrictEqual(
        files.warnings.map(({ message, path }) => `${path}: ${message}`),
        [
          'models.large.secret: the secret "large-key" has no value yet: choirctl secret set large-key',
          'models.other.secret: the secret "other-key" has no value yet: choirctl secret set other-key',
          'models.third.secret: the secret "constructor" has no value yet: choirctl secret set constructor',
          'bot-token: the secret "bot-token" is a placeholder',
          'models.third.provider: "..." is a placeholder',
          'workspaces.inner.path: is inside the workspace "main": no agent can be started there'
        ]
      )
      assert.isTrue(hasValue(files.secrets, SecretName.make("small-key")))
      assert.notInclude(JSON.stringify(files), SECRET)
    })
  )

  it.effect(
    "warns of a bot's chat that is not a number, of a key that nothing fills in, and of bytes that are not UTF-8",
    () =>
      Effect.gen(function* () {
        const dms = { phone: { gateway: "bot", user_id: "@ada" } }
        const gateways = { bot: { type: "telegram", secret: "bot-token" } }
        const home = yield* makeHome(
          { ...CONFIG, gateways, dms },
          { "small-key": "${OPENAI_API_KEY}", "bot-token": "$TOKEN" }
        )
        const file = join(home, "config.json")
        const bytes = Buffer.from(readFileSync(file, "utf8").replace("/srv/main", "/srv/m\u0001"))
        bytes[bytes.indexOf(1)] = 0xe4
        const warned = (yield* loadFiles(home)).warnings.map(({ message, path }) => `${path}: ${message}`).join("\n")
        assert.match(warned, /dms\.phone\.user_id: is not a number.*choirctl dm pair phone --gateway bot/u)
        assert.match(warned, /the secret "small-key" is a placeholder/u)
        assert.match(warned, /the secret "bot-token" is a placeholder/u)
        writeFileSync(file, bytes)
        const [first] = (yield* loadFiles(home)).warnings
        assert.match(first?.message ?? "", /bytes that are not UTF-8 in line 1/u)
      })
  )

  it.effect("warns of a cost limit that an unpriced model escapes, and of a model that Docker cannot reach", () =>
    Effect.gen(function* () {
      const entry = { provider: "p", model: "m", endpoint: "http://127.0.0.1:1/v1" }
      const config = {
        ...CONFIG,
        models: {
          paid: { ...entry, price: { input: 1, output: 2 }, fallback: ["free", "spare"] },
          free: { ...entry, provider: "offline" },
          spare: entry
        },
        agents: { ada: { repo: { url: "/srv/ada" }, defaults: { workspace: "main", llm: "paid" } } },
        runtime: { type: "docker" },
        budgets: { max_cost_usd: 5 }
      }
      const { warnings } = yield* loadFiles(yield* makeHome(config, SECRETS))
      const at = (path: string) => warnings.filter((warning) => warning.path === path)
      assert.lengthOf(at("models.spare.price"), 1)
      assert.lengthOf([...at("models.paid.price"), ...at("models.free.price")], 0)
      assert.lengthOf(at("runtime.type"), 3)
    })
  )

  it.effect("warns of what the table of providers knows of a model, at the key that is wrong", () =>
    Effect.gen(function* () {
      const models = {
        claude: { provider: "p", model: "claude-sonnet-4-5", endpoint: "https://api.anthropic.com/v1" },
        thinker: { provider: "p", model: "gpt-5.6", endpoint: "https://api.openai.com/v1" },
        plain: { provider: "p", model: "m", endpoint: "https://llm.example.org/v1" }
      }
      const { warnings } = yield* loadFiles(yield* makeHome({ ...CONFIG, models, agents: {} }, SECRETS))
      const [claude, thinker, ...others] = warnings.filter(({ path }) => path.startsWith("models."))
      assert.deepStrictEqual([claude?.path, thinker?.path, others], ["models.claude.api", "models.thinker.api", []])
      assert.match(claude?.message ?? "", /neither a cache nor thinking.*set it to "messages"$/u)
      assert.match(thinker?.message ?? "", /does not think when it has tools.*set it to "responses"$/u)
    })
  )

  it.effect("warns of an address that has the path of a request, with the one to use", () =>
    Effect.gen(function* () {
      const entry = { provider: "p", model: "m" }
      const endpoint = "https://llm.example.org/v1"
      const models = {
        long: { ...entry, endpoint: `${endpoint}/chat/completions` },
        short: { ...entry, endpoint }
      }
      const { warnings } = yield* loadFiles(yield* makeHome({ ...CONFIG, models, agents: {} }, SECRETS))
      assert.deepStrictEqual(
        warnings.filter(({ path }) => path.endsWith(".endpoint")),
        [
          {
            path: "models.long.endpoint",
            message: `Choir adds /chat/completions to it, so every request fails: use ${endpoint}`
          }
        ]
      )
    })
  )

  it.effect("refuses a duplicate key, of which one would win silently, and a byte order mark (R57)", () =>
    Effect.gen(function* () {
      const text = JSON.stringify(CONFIG)
      const written = (name: string, content: string) =>
        refusal((home) => writeFileSync(join(home, name), content, { mode: 0o600 }))
      const twice = yield* written("config.json", `${text.slice(0, -1)}, "models": {}}`)
      assert.strictEqual(twice.file, "config.json")
      assert.deepStrictEqual(problemsOf(twice.problems), [
        { path: "models", line: 1, reason: "duplicate key; only the last one would take effect" }
      ])
      const secret = yield* written("secrets.json", `{"key": "${SECRET}", "key": "${SECRET}"}`)
      assert.deepStrictEqual([secret.file, problemsOf(secret.problems)[0]?.path], ["secrets.json", "key"])
      assert.notInclude(secret.message, SECRET)
      const marked = yield* written("config.json", `\u{feff}${text}`)
      assert.match(marked.message, /byte order mark: save it as UTF-8 without one/u)
    })
  )

  it.effect("tells all problems of a config by their paths (R57)", () =>
    Effect.gen(function* () {
      const { file, hint, problems } = yield* refusal(() => undefined, {
        ...CONFIG,
        heartbeat_interval_ms: "x",
        surprise: 1
      })
      assert.strictEqual(file, "config.json")
      for (const part of ['["heartbeat_interval_ms"]', '["surprise"]']) assert.include(problems.join("\n"), part)
      assert.include(hint, "choirctl config validate")
    })
  )

  it.effect("never repeats a secret when secrets.json is wrong (R32)", () =>
    Effect.gen(function* () {
      for (const secrets of [
        `{"key": "${SECRET}"`,
        `"${SECRET}`,
        SECRET,
        { key: 1, other: [SECRET] },
        { key: SECRET.repeat(10_000) },
        [SECRET]
      ]) {
        const { file, message } = yield* refusal(() => undefined, CONFIG, secrets)
        assert.strictEqual(file, "secrets.json")
        assert.notInclude(message, SECRET.slice(0, 7))
      }
    })
  )

  it.effect("refuses files and homes that others could have read or written (R34)", () =>
    Effect.gen(function* () {
      const moved = (home: string) => {
        mkdirSync(join(home, "real"))
        renameSync(join(home, "secrets.json"), join(home, "real/secrets.json"))
        symlinkSync(join(home, "real/secrets.json"), join(home, "secrets.json"))
      }
      const cases: ReadonlyArray<readonly [(home: string) => unknown, string, string]> = [
        [(home) => chmodSync(join(home, "secrets.json"), 0o640), "secrets.json", "chmod 600"],
        [(home) => chmodSync(join(home, "secrets.json"), 0o400), "secrets.json", "chmod 600"],
        [(home) => chmodSync(home, 0o755), "", "chmod 700"],
        [moved, "secrets.json", "put the file itself"],
        [(home) => rmSync(join(home, "secrets.json")), "secrets.json", " init makes it"],
        [(home) => rmSync(join(home, "config.json")), "config.json", " init makes it"],
        [(home) => rmSync(home, { recursive: true }), "", " init makes it"],
        [
          (home) => {
            rmSync(join(home, "secrets.json"))
            mkdirSync(join(home, "secrets.json"), { mode: 0o600 })
          },
          "secrets.json",
          " init makes it"
        ],
        [(home) => writeFileSync(join(home, "config.json"), " ".repeat(CONFIG_BYTES_MAX + 1)), "config.json", "shorten"]
      ]
      for (const [change, expected, fix] of cases) {
        const { file, hint } = yield* refusal(change)
        assert.strictEqual(file, expected)
        assert.include(hint, fix)
      }
      const home = yield* makeHome()
      symlinkSync(home, `${home}-link`)
      const { message } = yield* Effect.flip(loadFiles(`${home}-link`))
      rmSync(`${home}-link`)
      assert.include(message, "symbolic link")
    })
  )

  it.effect.skipIf(notRoot !== undefined)("refuses what belongs to another user (R34)", () =>
    Effect.gen(function* () {
      const nobody = 65_534
      const { chownSync } = yield* Effect.promise(() => import("node:fs"))
      assert.include((yield* refusal((home) => chownSync(join(home, "secrets.json"), nobody, nobody))).hint, "chown")
      assert.include((yield* refusal((home) => chownSync(home, nobody, nobody))).hint, "chown")
    })
  )
})
