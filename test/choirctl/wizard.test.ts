import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { openDraft } from "#src/choirctl/setupDraft.ts"
import type { Given } from "#src/choirctl/setupGiven.ts"
import { takeFlags, waysOn } from "#src/choirctl/wizard.ts"
import { temporaryFolder } from "../support/engines.ts"

const NOTHING: Given = {
  provider: undefined,
  endpoint: undefined,
  name: undefined,
  price: undefined,
  telegram_user_id: undefined,
  telegram_api_root: undefined,
  runtime: undefined,
  allow_unmapped_root: false
}

describe("the wizard", () => {
  it("offers another address only for an API of one's own", () => {
    assert.strictEqual(waysOn("other", "unreachable")[0], "endpoint")
    assert.strictEqual(waysOn("openai", "unreachable")[0], "again")
    assert.notInclude(waysOn("openai", "unreachable"), "endpoint")
  })

  it.live("forgets what a draft says of another model than the flags name", () =>
    Effect.gen(function* () {
      const draft = yield* openDraft(yield* temporaryFolder)
      yield* draft.keep({ provider: "openai", endpoint: "https://a.example/v1", name: "a", key_asked: true })
      yield* draft.keep({ model_accepted: true, price: null, telegram_user_id: "1" })
      yield* takeFlags(draft, { ...NOTHING, provider: "openai" })
      assert.strictEqual(draft.answers().name, "a")
      yield* takeFlags(draft, { ...NOTHING, provider: "openrouter" })
      assert.deepStrictEqual(draft.answers(), { provider: "openrouter", telegram_user_id: "1" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
