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
