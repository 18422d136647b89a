import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

/** A home whose operator has config.json in another order than Choir writes it, four blanks deep, with one line for each entry. */
const laidOut = Effect.gen(function* () {
  const home = join(yield* temporaryFolder, "home")
  yield* choirctl(home, ["init"])
  yield* choirctl(home, ["agent", "init", "ada"])
  const file = join(home, "config.json")
  const read = () => readFileSync(file, "utf8")
  const config = JSON.parse(read())
  config.gateways.telegram = { type: "telegram", secret: "telegram-token" }
  config.dms.phone = { gateway: "telegram", user_id: "7", admin: true }
  config.dms.work = { gateway: "telegram", user_id: "9" }
  config.agents.ada.defaults.dm = ["terminal", "phone"]
  const entry = ([name, value]: readonly [string, unknown]) => `        "${name}" : ${JSON.stringify(value)}`
  const section = ([key, value]: readonly [string, unknown]) =>
    typeof value === "object" && value !== null
      ? `    "${key}" : {\n${Object.entries(value).map(entry).join(",\n")}\n    }`
      : `    "${key}" : ${JSON.stringify(value)}`
  writeFileSync(file, `{\n${Object.entries(config).toReversed().map(section).join(",\n")}\n}\n`)
  /** The lines that a command takes away and those that it adds. */
  const changes = (...args: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const before = read().split("\n")
      const ran = yield* choirctl(home, args, { stdin: "sk-of-a-test" })
      assert.strictEqual(ran.code, 0, ran.err)
      const after = read().split("\n")
      return {
        gone: before.filter((line) => !after.includes(line)),
        added: after.filter((line) => !before.includes(line))
      }
    })
  return { home, read, changes }
})

const keysOf = (text: string) =>
  Object.entries(JSON.parse(text)).flatMap(([key, value]) => [key, Object.keys(Object(value))])

const WITHOUT_COMMA = /,$/u

describe("config.json, as its operator laid it out", () => {
  it.live("keeps its order, its blanks and its lines when a model or an agent is added", () =>
    Effect.gen(function* () {
      const { changes, home, read } = yield* laidOut
      const keys = keysOf(read())
      const model = yield* changes(
        "model",
        "add",
        "big",
        "--untested",
        "--endpoint",
        "https://llm.example/v1",
        "--model",
        "m"
      )
      // What stood last gets a comma.
      assert.deepStrictEqual(
        model.added.slice(0, 1).map((line) => line.replace(WITHOUT_COMMA, "")),
        model.gone
      )
      assert.deepStrictEqual(model.added.slice(1), [
        `        "big": {`,
        `            "provider": "other",`,
        `            "model": "m",`,
        `            "endpoint": "https://llm.example/v1",`,
        `            "secret": "big-key"`,
        `        }`
      ])
      const agent = yield* changes("agent", "init", "bob", "--llm", "main", "--dm", "work")
      assert.lengthOf(agent.gone, 2)
      for (const line of agent.gone) assert.include(agent.added, `${line},`)
      assert.include(agent.added, `            "path": "${home}/workspaces/bob"`)
      const named = keysOf(read()).map((key) =>
        Array.isArray(key) ? key.filter((name) => !/^(bob|big)$/u.test(name)) : key
      )
      assert.deepStrictEqual(named, keys)
    })
  )

  it.live("keeps them when a gateway or a DM is removed", () =>
    Effect.gen(function* () {
      const { changes, read } = yield* laidOut
      const before = read()
      const ada = before.split("\n").find((line) => line.includes(`"ada" : `)) ?? ""
      const phone = yield* changes("dm", "remove", "phone", "--yes")
      assert.deepStrictEqual(phone, {
        gone: [ada, `        "phone" : {"gateway":"telegram","user_id":"7","admin":true},`],
        added: [ada.replace(`["terminal","phone"]`, `"terminal"`)]
      })
      const work = yield* changes("dm", "remove", "work", "--yes")
      const gateway = yield* changes("gateway", "remove", "telegram", "--yes")
      for (const { added, gone } of [work, gateway])
        assert.deepStrictEqual(
          gone.slice(0, 1),
          added.map((line) => `${line},`)
        )
      assert.deepStrictEqual(
        [work, gateway].flatMap(({ gone }) => gone.slice(1)),
        [
          `        "work" : {"gateway":"telegram","user_id":"9"}`,
          `        "telegram" : {"type":"telegram","secret":"telegram-token"}`
        ]
      )
    })
  )

  it.live("loses a model that nothing uses, and says who uses another", () =>
    Effect.gen(function* () {
      const { changes, home, read } = yield* laidOut
      const add = ["model", "add", "big", "--untested", "--endpoint", "https://llm.example/v1", "--model", "m"]
      yield* changes(...add, "--fallback-for", "main")
      const used = yield* choirctl(home, ["model", "remove", "big", "--yes"])
      assert.strictEqual(used.code, 1)
      assert.include(used.err, "the model big is used by the model main, as its fallback")
      assert.include(used.err, "remove it from fallback in config.json first")
      assert.notInclude(used.err, "model set")
      const agents = yield* choirctl(home, ["model", "remove", "main", "--yes", "--json"])
      assert.include(agents.out, "the model main is used by the agent ada")
      assert.include(agents.out, "choose another one first: choirctl model set ada --llm <name> --default")
      yield* changes(...add.with(2, "small"))
      const before = read()
      const unsure = yield* choirctl(home, ["model", "remove", "small", "--json"])
      assert.strictEqual(unsure.code, 2)
      assert.strictEqual(read(), before)
      assert.strictEqual((yield* choirctl(home, ["model", "remove", "small", "--yes"])).out, "removed small\n")
      assert.notProperty(JSON.parse(read()).models, "small")
      assert.match(
        (yield* choirctl(home, ["model", "remove", "small", "--yes"])).err,
        /no model small[^]*known: main, big/u
      )
    })
  )

  it.live("gets another default model for an agent", () =>
    Effect.gen(function* () {
      const { changes, home, read } = yield* laidOut
      yield* changes("model", "add", "big", "--untested", "--endpoint", "https://llm.example/v1", "--model", "m")
      const set = yield* choirctl(home, ["model", "set", "ada", "--llm", "big", "--default"])
      assert.deepStrictEqual([set.code, set.out], [0, "big: the default of ada, from its next start\n"])
      assert.strictEqual(JSON.parse(read()).agents.ada.defaults.llm, "big")
      assert.notStrictEqual((yield* choirctl(home, ["model", "set", "ada", "--llm", "none", "--default"])).code, 0)
      assert.strictEqual(JSON.parse(read()).agents.ada.defaults.llm, "big")
    })
  )

  it.live("loses an agent with what only it had, and says what stays", () =>
    Effect.gen(function* () {
      const { home, read } = yield* laidOut
      yield* choirctl(home, ["agent", "init", "scribe", "--llm", "main", "--dm", "work"])
      yield* choirctl(home, ["agent", "init", "third", "--llm", "main"])
      const before = read()
      const asked = yield* choirctl(home, ["agent", "delete", "third"])
      assert.strictEqual(asked.code, 2)
      assert.match(asked.err, /removed or lose third: agents\.third, dms\.third\./u)
      assert.match(
        asked.err,
        /workspace \S+\/workspaces\/third, its repository \S+, its sessions and its memory stay\./u
      )
      assert.strictEqual(read(), before)
      assert.strictEqual((yield* choirctl(home, ["agent", "delete", "third", "--yes"])).out, "deleted third\n")
      assert.strictEqual((yield* choirctl(home, ["agent", "delete", "scribe", "--yes", "--json"])).code, 0)
      const { agents, dms } = JSON.parse(read())
      assert.deepStrictEqual([Object.keys(agents), Object.keys(dms).sort()], [["ada"], ["phone", "terminal", "work"]])
      assert.isTrue(existsSync(join(home, "workspaces/third")) && existsSync(join(home, "sources/agents/third")))
    })
  )
})
