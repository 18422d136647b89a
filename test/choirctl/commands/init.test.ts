import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { execFileSync } from "node:child_process"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { asksAboutMemory } from "#src/choirctl/home/initAgent.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { callTools, makeProviderOf } from "../../support/testing/Provider.ts"

const configOf = (home: string) => JSON.parse(readFileSync(join(home, "config.json"), "utf8"))
const mode = (path: string) => statSync(path).mode & 0o777

const files = (folder: string) =>
  execFileSync("git", ["-C", folder, "ls-tree", "-r", "--name-only", "main"]).toString().trim().split("\n")

describe("choirctl init", () => {
  it.effect("makes a private home in which choird starts, without asking", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const ran = yield* choirctl(home, ["init"])
      assert.strictEqual(ran.code, 0)
      assert.strictEqual(mode(home), 0o700)
      assert.strictEqual(mode(join(home, "config.json")), 0o600)
      assert.strictEqual(mode(join(home, "secrets.json")), 0o600)
      const { config, warnings } = yield* loadFiles(home)
      assert.deepStrictEqual(warnings, [])
      assert.strictEqual(config.approvals.confirm_external, "tainted")
      assert.deepStrictEqual(config.dms["terminal" as never], {
        gateway: "terminal",
        user_id: "local",
        admin: true
      } as never)
      assert.include(files(join(home, "sources", "global")), "identity/SOUL.md")
      assert.isTrue(existsSync(join(home, "workspaces", "main")))
      assert.match(ran.out, new RegExp(`^set up ${home}\\n\\nNext:\\n`, "u"))
      assert.include(ran.out, "choirctl agent init")
    })
  )

  it.effect("changes nothing on a second call, and makes what went missing", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      yield* choirctl(home, ["init"])
      const before = readFileSync(join(home, "config.json"), "utf8")
      writeFileSync(join(home, "sources", "global", "mine"), "kept")
      const again = yield* choirctl(home, ["init", "--model-provider", "openai", "--json"])
      assert.deepInclude(document(again), { ok: true, created: [] })
      assert.include(again.err, "ignored")
      assert.strictEqual(readFileSync(join(home, "config.json"), "utf8"), before)
      assert.strictEqual(readFileSync(join(home, "sources", "global", "mine"), "utf8"), "kept")
      rmSync(join(home, "logs", "archive"), { recursive: true })
      const third = yield* choirctl(home, ["init"])
      assert.include(third.out, `added what was missing: ${join(home, "logs", "archive")}\n`)
    })
  )

  it.effect("takes every answer as a flag, and secrets from standard input alone", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      // The address of a request, which people copy, stands for that of the API.
      const copied = "https://llm.example/v1/chat/completions"
      const model = ["--model-endpoint", copied, "--model-name", "m-1", "--model-secret-stdin"]
      const telegram = ["--telegram-user-id", "1234", "--telegram-secret-stdin"]
      const ran = yield* choirctl(home, ["init", ...model, ...telegram], { stdin: "sk-1\n99:token\n" })
      assert.strictEqual(ran.code, 0, ran.err)
      const { models, dms, gateways } = configOf(home)
      assert.deepStrictEqual(models.main, {
        provider: "other",
        model: "m-1",
        endpoint: "https://llm.example/v1",
        secret: "other-key"
      })
      assert.deepStrictEqual(gateways.telegram, { type: "telegram", secret: "telegram-token" })
      assert.deepStrictEqual(dms.phone, { gateway: "telegram", user_id: "1234", admin: true })
      const secrets = JSON.parse(readFileSync(join(home, "secrets.json"), "utf8"))
      assert.deepStrictEqual(secrets, { "other-key": "sk-1", "telegram-token": "99:token" })
      assert.notInclude(readFileSync(join(home, "config.json"), "utf8"), "sk-1")
      assert.strictEqual((yield* choirctl(home, ["config", "validate"])).code, 0)
    })
  )

  it.effect(
    "chooses API, address, model, context and price of a provider by its name alone, and says which model",
    () =>
      Effect.gen(function* () {
        const home = join(yield* temporaryFolder, "home")
        const ran = yield* choirctl(home, ["init", "--model-provider", "anthropic", "--model-secret-stdin"], {
          stdin: "sk-ant-1\n"
        })
        assert.strictEqual(ran.code, 0, ran.err)
        assert.include(ran.err, "The model is claude-sonnet-4-6; --model-name chooses another.")
        assert.deepStrictEqual(configOf(home).models.main, {
          provider: "anthropic",
          model: "claude-sonnet-4-6",
          endpoint: "https://api.anthropic.com/v1",
          api: "messages",
          secret: "anthropic-key",
          max_tokens: 16_000,
          context_window: 200_000,
          price: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
        })
        assert.deepStrictEqual((yield* loadFiles(home)).warnings, [])
      })
  )

  it.live("tests the model at once where it is told to, in words", () =>
    Effect.gen(function* () {
      const provider = yield* makeProviderOf({ dialect: "anthropic", key: "sk-1" })
      yield* provider.otherwise(() => callTools([{ name: "choir_check", input: { word: "ready" } }]))
      const flags = (...more: ReadonlyArray<string>) => [
        "init",
        "--model-endpoint",
        provider.endpoint,
        "--model-name",
        "claude-sonnet-4-6",
        "--model-test",
        "--model-secret-stdin",
        ...more
      ]
      const folder = yield* temporaryFolder
      const ran = yield* choirctl(join(folder, "a"), flags("--model-api", "messages"), { stdin: "sk-1\n" })
      assert.strictEqual(ran.code, 0, ran.err)
      assert.match(ran.err, /It works: claude-sonnet-4-6 called a tool after \d/u)
      const refused = yield* choirctl(join(folder, "b"), flags("--model-api", "messages"), { stdin: "sk-2\n" })
      assert.strictEqual(refused.code, 1)
      assert.match(refused.err, /the home is set up, and its model does not work: .*refuses the key \(401\)/u)
      assert.match(refused.err, /hint: Copy the key again .*, then: choirctl .*secret set other-key\n/u)
      assert.isTrue(existsSync(join(folder, "b", "config.json")))
      assert.deepStrictEqual(
        (yield* provider.takeRefusals).map(({ rule }) => rule),
        ["a request brings the key"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("makes a bot without a person, and says how to pair, where no user id is given", () =>
    Effect.gen(function* () {
      const paired = join(yield* temporaryFolder, "paired")
      const byCode = yield* choirctl(paired, ["init", "--telegram-secret-stdin"], { stdin: "99:token\n" })
      assert.strictEqual(byCode.code, 0, byCode.err)
      assert.include(byCode.out, "choirctl dm pair phone --gateway telegram --admin")
      const written = JSON.parse(readFileSync(join(paired, "config.json"), "utf8"))
      assert.deepStrictEqual(Object.keys(written.dms), ["terminal"])
      assert.deepStrictEqual(written.gateways.telegram, { type: "telegram", secret: "telegram-token" })
    })
  )

  it.effect("names the flag of an answer that is missing, and makes nothing", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const noName = yield* choirctl(home, ["init", "--model-endpoint", "http://127.0.0.1:9/v1"])
      assert.strictEqual(noName.code, 2)
      assert.include(noName.err, "--model-name")
      const noAddress = yield* choirctl(home, ["init", "--model-provider", "local"])
      assert.strictEqual(noAddress.code, 2)
      assert.include(noAddress.err, "--model-endpoint")
      const badUser = yield* choirctl(home, ["init", "--telegram-user-id", "@me"])
      assert.strictEqual(badUser.code, 2)
      const noKey = yield* choirctl(home, [
        "init",
        "--model-name",
        "x",
        "--model-provider",
        "openai",
        "--model-secret-stdin"
      ])
      assert.strictEqual(noKey.code, 2)
      const badUrl = yield* choirctl(home, ["init", "--model-endpoint", "nowhere", "--model-name", "x"])
      assert.strictEqual(badUrl.code, 2)
      assert.match(badUrl.err, /--model-endpoint cannot be used\nhint: Enter an address/u)
      const badName = yield* choirctl(home, ["init", "--model-provider", "openai", "--model-name", "https://a.example"])
      assert.strictEqual(badName.code, 2)
      assert.match(badName.err, /--model-name cannot be used\nhint: This is an address/u)
      assert.isFalse(existsSync(join(home, "config.json")))
    })
  )

  it.effect("leaves a folder alone that others use", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      mkdirSync(join(home, "theirs"), { recursive: true })
      chmodSync(home, 0o755)
      const ran = yield* choirctl(home, ["init"])
      assert.strictEqual(ran.code, 78)
      assert.include(ran.err, `chmod 700 ${home}`)
      assert.strictEqual(mode(home), 0o755)
    })
  )
})

describe("choirctl agent init", () => {
  const made = Effect.gen(function* () {
    const home = join(yield* temporaryFolder, "home")
    yield* choirctl(home, ["init"])
    return home
  })

  it.effect("adds an agent that validates, with its repository, and keeps every other key", () =>
    Effect.gen(function* () {
      const home = yield* made
      const before = configOf(home)
      const ran = yield* choirctl(home, ["agent", "init", "agent-1", "--json"])
      assert.deepInclude(document(ran), {
        ok: true,
        agent_id: "agent-1",
        workspace: "main",
        llm: "main",
        dm: "terminal"
      })
      const { agents, ...rest } = configOf(home)
      assert.deepStrictEqual({ ...rest, agents: {} }, before)
      const repo = join(home, "sources", "agents", "agent-1")
      assert.deepStrictEqual(agents["agent-1"], {
        repo: { url: repo, ref: "main" },
        defaults: { workspace: "main", llm: "main", dm: "terminal" }
      })
      assert.include(files(repo), "Dockerfile")
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(loadFiles(home))))
      assert.strictEqual(mode(join(home, "config.json")), 0o600)
    })
  )

  it.effect("gives a second agent a workspace and a console DM of its own", () =>
    Effect.gen(function* () {
      const home = yield* made
      yield* choirctl(home, ["agent", "init", "agent-1"])
      yield* choirctl(home, ["agent", "init", "second"])
      const { agents, dms, workspaces } = configOf(home)
      assert.deepStrictEqual(agents.second.defaults, { workspace: "second", llm: "main", dm: "second" })
      assert.deepStrictEqual(dms.second, { gateway: "terminal", user_id: "second", admin: true })
      assert.deepStrictEqual(workspaces.second, { path: join(home, "workspaces", "second") })
      assert.isTrue(existsSync(join(home, "workspaces", "second")))
    })
  )

  it.effect("lets agents read each other's memory only where the operator says so", () =>
    Effect.gen(function* () {
      const home = yield* made
      const asks = (id: string) => asksAboutMemory(home, AgentId.make(id)).pipe(Effect.provide(NodeServices.layer))
      assert.isFalse(yield* asks("agent-1"))
      yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.isFalse(yield* asks("agent-1"))
      assert.isTrue(yield* asks("second"))
      yield* choirctl(home, ["agent", "init", "second"])
      assert.strictEqual((yield* loadFiles(home)).config.memory.cross_read, "none")
      yield* choirctl(home, ["agent", "init", "third", "--share-memory"])
      assert.strictEqual((yield* loadFiles(home)).config.memory.cross_read, "all")
      assert.isFalse(yield* asks("fourth"))
    })
  )

  it.effect("refuses the reserved id, an id that is taken, and names that config.json lacks", () =>
    Effect.gen(function* () {
      const home = yield* made
      assert.strictEqual((yield* choirctl(home, ["agent", "init", "control"])).code, 2)
      yield* choirctl(home, ["agent", "init", "agent-1"])
      const taken = yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.strictEqual(taken.code, 1)
      const unknown = yield* choirctl(home, ["agent", "init", "other", "--llm", "nope"])
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "known there: main")
    })
  )

  it.effect("names --llm when there are several models", () =>
    Effect.gen(function* () {
      const home = yield* made
      const config = configOf(home)
      config.models.other = config.models.main
      writeFileSync(join(home, "config.json"), JSON.stringify(config))
      const several = yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.strictEqual(several.code, 2)
      assert.include(several.err, "--llm: main, other")
      assert.strictEqual((yield* choirctl(home, ["agent", "init", "agent-1", "--llm", "other"])).code, 0)
    })
  )

  it.effect("takes the one model that stands in for no other", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      const model = ["--model-provider", "local", "--model-endpoint", "http://127.0.0.1:9/v1", "--model-name", "m"]
      yield* choirctl(home, ["init", ...model, "--model-fallback", "m"])
      assert.deepStrictEqual(Object.keys(configOf(home).models), ["main", "fallback"])
      const made = yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.strictEqual(made.code, 0, made.err)
      assert.strictEqual(configOf(home).agents["agent-1"].defaults.llm, "main")
    }).pipe(Effect.scoped)
  )

  it.effect("takes every free DM, the phone first, and leaves the next agent one of its own", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      yield* choirctl(home, ["init", "--telegram-user-id", "4711"])
      const first = yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.strictEqual(first.code, 0, first.err)
      assert.include(first.out, "DMs phone, terminal")
      yield* choirctl(home, ["agent", "init", "second"])
      const { agents } = configOf(home)
      assert.deepStrictEqual(agents["agent-1"].defaults.dm, ["phone", "terminal"])
      assert.deepStrictEqual(agents.second.defaults.dm, "second")
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(loadFiles(home))))
    })
  )

  it.effect("makes a console where config.json has none, so that no agent is without a DM", () =>
    Effect.gen(function* () {
      const home = yield* made
      writeFileSync(join(home, "config.json"), JSON.stringify({ ...configOf(home), gateways: {}, dms: {} }))
      assert.strictEqual((yield* choirctl(home, ["agent", "init", "agent-1"])).code, 0)
      const { agents, dms, gateways } = configOf(home)
      assert.deepStrictEqual(gateways, { terminal: { type: "console" } })
      assert.deepStrictEqual(dms, { "agent-1": { gateway: "terminal", user_id: "agent-1", admin: true } })
      assert.strictEqual(agents["agent-1"].defaults.dm, "agent-1")
    })
  )

  it.effect("goes on from a call that died after it made the repository", () =>
    Effect.gen(function* () {
      const home = yield* made
      const config = readFileSync(join(home, "config.json"), "utf8")
      yield* choirctl(home, ["agent", "init", "agent-1"])
      writeFileSync(join(home, "config.json"), config)
      assert.strictEqual((yield* choirctl(home, ["agent", "init", "agent-1"])).code, 0)
    })
  )

  it.effect("makes the repository in an empty folder, and adds no agent whose folder holds something else", () =>
    Effect.gen(function* () {
      const home = yield* made
      const folder = (id: string) => join(home, "sources", "agents", id)
      for (const id of ["empty", "full"]) mkdirSync(folder(id), { recursive: true })
      writeFileSync(join(folder("full"), "letter"), "mine")
      assert.strictEqual((yield* choirctl(home, ["agent", "init", "empty"])).code, 0)
      assert.include(files(folder("empty")), "Dockerfile")
      const config = configOf(home)
      const refused = yield* choirctl(home, ["agent", "init", "full"])
      assert.deepStrictEqual([refused.code, refused.err.includes("is not a git repository")], [1, true])
      assert.deepStrictEqual(configOf(home), config)
    })
  )

  it.effect("changes no configuration that is not valid", () =>
    Effect.gen(function* () {
      const home = yield* made
      const text = '{"global_repo": {"url": "/x"}, "nonsense": 1}'
      writeFileSync(join(home, "config.json"), text)
      const ran = yield* choirctl(home, ["agent", "init", "agent-1"])
      assert.strictEqual(ran.code, 78)
      assert.strictEqual(readFileSync(join(home, "config.json"), "utf8"), text)
    })
  )
})

describe("choirctl agent base init", () => {
  const configured = Effect.fnUntraced(function* (global_repo: { readonly url: string; readonly ref?: string }) {
    const home = join(yield* temporaryFolder, "home")
    yield* choirctl(home, ["init"])
    writeFileSync(join(home, "config.json"), JSON.stringify({ ...configOf(home), global_repo }))
    return home
  })

  it.effect("makes the global repository where config.json names a folder, and keeps one that is there", () =>
    Effect.gen(function* () {
      const repo = join(yield* temporaryFolder, "deep", "global")
      const home = yield* configured({ url: repo })
      const made = document(yield* choirctl(home, ["agent", "base", "init", "--json"]))
      assert.deepStrictEqual(made, { ok: true, repo, created: true, next: ["choirctl agent build <agent-id>"] })
      assert.includeMembers(files(repo), ["Dockerfile.base", "identity/SOUL.md"])
      const commit = execFileSync("git", ["-C", repo, "rev-parse", "main"]).toString()
      const again = yield* choirctl(home, ["agent", "base", "init"])
      assert.include(again.out, `${repo} already exists`)
      assert.strictEqual(execFileSync("git", ["-C", repo, "rev-parse", "main"]).toString(), commit)
    })
  )

  it.effect("makes one without a work tree, and names the commands for another branch or another host", () =>
    Effect.gen(function* () {
      const repo = join(yield* temporaryFolder, "global.git")
      const home = yield* configured({ url: repo, ref: "trunk" })
      const bare = yield* choirctl(home, ["agent", "base", "init", "--bare"])
      assert.include(bare.out, `git -C ${repo} branch -m main trunk`)
      assert.isTrue(existsSync(join(repo, "HEAD")))
      const url = "git@git.example.org:me/global.git"
      const remote = yield* configured({ url })
      const { next, repo: folder } = document(yield* choirctl(remote, ["agent", "base", "init", "--json"])) as {
        readonly next: ReadonlyArray<string>
        readonly repo: string
      }
      assert.strictEqual(folder, join(remote, "sources", "global"))
      assert.deepStrictEqual(next.slice(0, 2), [
        `git -C ${folder} remote add origin ${url}`,
        `git -C ${folder} push origin main:refs/heads/main`
      ])
    })
  )

  it.effect("writes into no folder that holds something else", () =>
    Effect.gen(function* () {
      const folder = join(yield* temporaryFolder, "things")
      mkdirSync(folder)
      writeFileSync(join(folder, "letter"), "mine")
      const home = yield* configured({ url: folder })
      const ran = yield* choirctl(home, ["agent", "base", "init"])
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err, "is not a git repository")
      assert.isFalse(existsSync(join(folder, ".git")))
    })
  )
})
