import { assert, describe, it } from "@effect/vitest"
import { Redacted } from "effect"
import { shownWords, withLastWords } from "#src/choird/agents/epochOfRun.ts"

const SECRETS = { key: Redacted.make("sk-very-secret"), long: Redacted.make("sk-very-secret-and-longer") } as never

describe("an agent's last words", () => {
  it.each([
    ["the tool a.json cannot be used", "the tool a.json cannot be used"],
    ["two\n  lines\u001b[2J\u202eand more\u2028", "two lines [2J and more"],
    ["401 for sk-very-secret and sk-very-secret-and-longer", "401 for *** and ***"],
    ["\n\t", ""]
  ])("shown of %j: %j", (words, shown) => assert.strictEqual(shownWords(words, SECRETS), shown))

  it("are short, and hide half of no secret at their end", () => {
    assert.isAtMost(shownWords("x".repeat(100_000), SECRETS).length, 400)
    assert.notInclude(shownWords(`${"x".repeat(390)}sk-very-secret`, SECRETS), "sk-")
  })

  it("are the cause of a crash, and of nothing else", () => {
    const crashed = { type: "crashed", reason: "it exited with code 1", ready: false, last_words: "no tools" } as const
    assert.deepInclude(withLastWords(crashed, {}), { reason: "it exited with code 1: no tools" })
    assert.deepInclude(withLastWords({ ...crashed, last_words: undefined }, {}), { reason: "it exited with code 1" })
    assert.deepStrictEqual(withLastWords({ type: "stopped" }, {}), { type: "stopped" })
  })
})
