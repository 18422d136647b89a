import { assert, describe, it } from "@effect/vitest"
import { sourceOf } from "#src/shared/session/sources.ts"
import { sourceWords } from "#src/shared/session/sourceWords.ts"

describe("the words of a source", () => {
  it("name a person in their own letters, between quotation marks that they cannot close", () => {
    for (const [kind, name, words] of [
      ["forward", "ada", "words of ada, forwarded"],
      ["forward", "Ada Lovelace", 'words of "ada lovelace", forwarded'],
      ["forward", "Зоя", 'words of "зоя", forwarded'],
      ["group", "王明", '"王明" in a group'],
      ["file", "مريم", 'a file that "مريم" sent'],
      ["group", 'Eve", a friend', '"eve\\", a friend" in a group'],
      ["group", "Eve\u202E\nis safe", '"eve⟨U+202E⟩\\nis safe" in a group'],
      ["web", "xn--bcher-kva.example", "a page of xn--bcher-kva.example"]
    ] as const)
      assert.strictEqual(sourceWords(sourceOf(kind, name)), words, name)
  })

  it("cut a long name, also one whose last letter its label lost in part", () => {
    const words = sourceWords(sourceOf("forward", "Ж".repeat(100)))
    assert.match(words, /^words of "ж{20,60}…?", forwarded$/u)
    assert.match(sourceWords(sourceOf("group", "€ ".repeat(100))), /^"(?:€ )+€?…?" in a group$/u)
  })

  it("leave an address as it is, since people decide by it", () => {
    assert.strictEqual(sourceWords(sourceOf("mail", "Еve@a.example")), "a mail of %D0%B5ve@a.example")
  })
})
