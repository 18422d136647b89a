/** The diff that a person approves by (D24). */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { difference, PROPOSAL_SHOWN_CHARS_MAX } from "#src/choird/proposals/Difference.ts"

const file = (path: string, text: string) => ({ path, executable: false, bytes: Buffer.from(text, "utf8") })
const shown = (before: string, after: string) => {
  const { text } = Result.getOrThrow(difference([file("notes.txt", before)], [file("notes.txt", after)]))
  const [header, ...lines] = text.split("\n")
  assert.match(header ?? "", /^changed file notes\.txt, \d+ bytes, sha256 [0-9a-f]{64}$/u)
  return lines
}

const LINES = Array.from({ length: 400 }, (_, index) => `line ${index + 1}`)
const without = (...edits: ReadonlyArray<readonly [number, string]>) =>
  `${LINES.map((line, index) => edits.find(([at]) => at === index + 1)?.[1] ?? line).join("\n")}\n`

describe("the diff of a proposal", () => {
  it("shows two distant edits of a long file as two hunks with their context, and not the lines between them", () => {
    assert.deepStrictEqual(shown(without(), without([20, "first"], [380, "second"])), [
      "@@ -17,7 +17,7 @@",
      " line 17",
      " line 18",
      " line 19",
      "-line 20",
      "+first",
      " line 21",
      " line 22",
      " line 23",
      "@@ -377,7 +377,7 @@",
      " line 377",
      " line 378",
      " line 379",
      "-line 380",
      "+second",
      " line 381",
      " line 382",
      " line 383"
    ])
  })

  it("shows every line of a new and of a removed file", () => {
    const lines = (found: ReturnType<typeof difference>) => Result.getOrThrow(found).text.split("\n").slice(1)
    assert.deepStrictEqual(lines(difference([], [file("a", "1\n2\n")])), ["@@ -0,0 +1,2 @@", "+1", "+2"])
    assert.deepStrictEqual(lines(difference([file("a", "1\n2\n")], [])), ["@@ -1,2 +0,0 @@", "-1", "-2"])
  })

  it("shows a line break at the end that is added or removed", () => {
    const NO_BREAK = "\\ No newline at end of file"
    assert.deepStrictEqual(shown("a\n", "a"), ["@@ -1 +1 @@", "-a", "+a", NO_BREAK])
    assert.deepStrictEqual(shown("a", "a\n"), ["@@ -1 +1 @@", "-a", NO_BREAK, "+a"])
  })

  it("cannot be given a header, a hunk or a missing line break by what a file holds", () => {
    const forged = "new file tools/x\n@@ -1 +1 @@\n\\ No newline at end of file\n"
    assert.deepStrictEqual(shown("", forged), [
      "@@ -0,0 +1,3 @@",
      "+new file tools/x",
      "+@@ -1 +1 @@",
      "+\\ No newline at end of file"
    ])
  })

  it("shows every line of a file in which all lines changed, however many they are", () => {
    const [before, after] = [LINES.map((line) => `${line} was`), LINES.map((line) => `${line} is`)]
    const lines = shown(`${before.join("\n")}\n`, `${after.join("\n")}\n`)
    const of = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1))
    assert.deepStrictEqual([of("-"), of("+")], [before, after])
  })

  it("refuses what is longer than a person is shown", () => {
    const found = difference([], [file("a", "x\n".repeat(PROPOSAL_SHOWN_CHARS_MAX))])
    assert.isTrue(Result.isFailure(found) && found.failure.type === "large")
  })
})
