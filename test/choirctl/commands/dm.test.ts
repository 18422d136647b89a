import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

const home = Effect.tap(temporaryFolder, (folder) => fakeChoird(folder))

describe("choirctl dm and gateway", () => {
  it.effect("list who may talk to which agent, and through which bot", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const dms = (yield* choirctl(folder, ["dm", "list"])).out
      assert.match(
        dms,
        /^NAME +GATEWAY +USER +ADMIN +AGENT\nphone +telegram +7 +yes +ada\nfamily +telegram +-100 +no +-\n$/u
      )
      const bots = (yield* choirctl(folder, ["gateway", "list"])).out
      assert.match(
        bots,
        /^NAME +TYPE +BOT +STATE +DMS\ntelegram +telegram +@double_bot +failed, not reached for 90 s +phone, family\n/u
      )
      assert.match(bots, /\nterminal +console +- +ok, here +-\n$/u)
    })
  )

  it.effect("give the same as JSON", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const dms = document(yield* choirctl(folder, ["dm", "list", "--json"]))
      assert.deepInclude((dms as ReadonlyArray<object>)[1], { name: "family", admin: false, agent_id: null })
      const bots = document(yield* choirctl(folder, ["gateway", "list", "--json"]))
      assert.deepInclude((bots as ReadonlyArray<object>)[0], { name: "telegram", bot: "double_bot", ok: false })
    })
  )
})

describe("choirctl dm pair", () => {
  it.effect("says how a code gets its agent where there are several, and takes no DM from one", () =>
    Effect.gen(function* () {
      const folder = yield* home
      const pair = ["dm", "pair", "guest", "--gateway", "telegram", "--admin"]
      const { out } = yield* choirctl(folder, pair)
      assert.match(
        out,
        /more than one agent.*\. For a code that lets .*dm pair guest --gateway telegram --admin --agent <agent-id>$/mu
      )
      assert.notInclude(out, "restart")
      assert.include((yield* choirctl(folder, [...pair, "--agent", "ada"])).out, "talks to ada")
    })
  )
})

/** A home with a bot, two people at it, and an agent at one of them. */
const written = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  yield* choirctl(folder, ["init"])
  yield* choirctl(folder, ["agent", "init", "ada"])
  const file = join(folder, "config.json")
  const read = () => JSON.parse(readFileSync(file, "utf8"))
  const config = read()
  config.gateways.telegram = { type: "telegram", secret: "telegram-token" }
  config.dms.phone = { gateway: "telegram", user_id: "7", admin: true }
  config.dms.family = { gateway: "telegram", user_id: "-100" }
  config.agents.ada.defaults.dm = ["terminal", "phone"]
  writeFileSync(file, JSON.stringify(config))
  return { folder, read }
})

describe("choirctl dm remove and gateway remove", () => {
  it.effect("take a bot out once nobody is left at it, and name the secret that nothing needs any longer", () =>
    Effect.gen(function* () {
      const { folder, read } = yield* written
      const used = yield* choirctl(folder, ["gateway", "remove", "telegram", "--yes"])
      assert.strictEqual(used.code, 1)
      assert.include(used.err, "the gateway telegram is still used by the DMs phone, family")
      assert.include(used.err, "dm remove phone && ")
      const asked = yield* choirctl(folder, ["dm", "remove", "phone"])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, "ada has phone as one of its DMs and will lose it.")
      assert.property(read().dms, "phone")
      for (const dm of ["phone", "family"])
        assert.strictEqual((yield* choirctl(folder, ["dm", "remove", dm, "--yes"])).code, 0)
      assert.strictEqual(read().agents.ada.defaults.dm, "terminal")
      const gone = yield* choirctl(folder, ["gateway", "remove", "telegram", "--yes"])
      assert.match(gone.out, /^removed telegram\n\nNext:\n {2}choirctl .*secret delete telegram-token\n$/u)
      assert.notProperty(read().gateways, "telegram")
      assert.strictEqual((yield* choirctl(folder, ["config", "validate"])).code, 0)
    })
  )

  it.effect("refuse what is not there, and the only DM of an agent", () =>
    Effect.gen(function* () {
      const { folder, read } = yield* written
      const before = read()
      const unknown = yield* choirctl(folder, ["gateway", "remove", "nosuch"])
      assert.include(unknown.err, "config.json has no gateway nosuch\nhint: known: terminal, telegram")
      yield* choirctl(folder, ["dm", "remove", "phone", "--yes"])
      const only = yield* choirctl(folder, ["dm", "remove", "terminal", "--yes"])
      assert.strictEqual(only.code, 1)
      assert.include(only.err, "terminal is the only DM of ada")
      assert.deepStrictEqual(read().dms.terminal, before.dms.terminal)
    })
  )
})
