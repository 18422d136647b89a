import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { openDraft } from "#src/choirctl/home/setupDraft.ts"
import { addressProblem, type Given, nameProblem } from "#src/choirctl/home/setupAnswers.ts"
import { apiAddress, apiNamedBy } from "#src/shared/wire/apiAddress.ts"
import { FORGOTTEN, takeFlags } from "#src/choirctl/setup/wizard.ts"
import { waysOn } from "#src/choirctl/setup/wizardQuestions.ts"
import { Obstacle } from "#src/choirctl/doctor/checkHttp.ts"
import { temporaryFolder } from "../../support/engines.ts"

const NOTHING: Given = {
  provider: undefined,
  endpoint: undefined,
  name: undefined,
  price: undefined,
  telegram_user_id: undefined,
  telegram_api_root: undefined,
  timezone: undefined,
  runtime: undefined,
  allow_unmapped_root: false
}

describe("the wizard", () => {
  it("offers another address only for an API of one's own", () => {
    for (const provider of ["other", "local"] as const)
      assert.strictEqual(waysOn(provider, "unreachable").best, "endpoint")
    assert.strictEqual(waysOn("openai", "unreachable").best, "again")
    assert.notInclude(waysOn("openai", "unreachable").ways, "endpoint")
  })

  it("lists the ways on in the same order after each failure", () => {
    const orders = Obstacle.literals.map((obstacle) => waysOn("other", obstacle).ways.join())
    assert.strictEqual(new Set(orders).size, 1)
  })

  it("takes the address of a request for that of the API, and nothing else for an address", () => {
    for (const tail of ["", "/", "/chat/completions", "/chat/completions/"])
      assert.strictEqual(apiAddress(` https://llm.example.org/v1${tail} `), "https://llm.example.org/v1")
    assert.isUndefined(addressProblem("http://127.0.0.1:11434/v1/chat/completions"))
    for (const text of ["", "localhost:1234", "https://", "https://a.example/v1?key=1", "https://a b/v1"])
      assert.match(addressProblem(text) ?? "", /Enter an address/u, text)
  })

  it("learns the API from the path of a request", () => {
    const of = (tail: string) => apiNamedBy(`https://llm.example.org/v1${tail}`)
    assert.deepStrictEqual(
      ["/chat/completions", "/responses/", " /messages "].map((tail) => of(tail.trim())),
      ["chat", "responses", "messages"]
    )
    assert.deepStrictEqual(["", "/", "/messages/1", "/models"].map(of), [undefined, undefined, undefined, undefined])
  })

  it("takes no address and no sentence for the name of a model", () => {
    for (const name of ["gpt-4.1", "anthropic/claude-sonnet-4", "llama3.1:8b", "qwen/qwen3:free"])
      assert.isUndefined(nameProblem("other", name))
    assert.match(
      nameProblem("openrouter", "https://openrouter.ai/openai/gpt-4o") ?? "",
      /This is an address.*such as anthropic/u
    )
    assert.match(nameProblem("openai", "gpt 4.1") ?? "", /no spaces.*such as gpt-5\.4/u)
    assert.match(nameProblem("openai", "") ?? "", /Enter the provider's name/u)
  })

  it.each(["price", "fallback"] as const)("forgets the %s with the model that it belongs to", (answer) => {
    for (const next of ["name", "endpoint", "all", "offline"] as const) assert.include(FORGOTTEN[next], answer)
    for (const next of ["key", "again", "keep"] as const) assert.notInclude(FORGOTTEN[next], answer)
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
