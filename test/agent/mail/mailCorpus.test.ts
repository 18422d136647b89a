/** Mails as real programs write them, each with the text that a person would copy. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { mailText, matchesGolden } from "../../support/corpusText.ts"
import { readHere } from "../../support/mailReader.ts"

const FOLDER = join(import.meta.dirname, "../../corpus/mail")
const names = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".eml"))
  .map((name) => name.slice(0, -4))

describe("a mail of the corpus", () => {
  it("is one of at least 34", () => assert.isAtLeast(names.length, 34))

  for (const name of names)
    it(`is read as a person would copy it: ${name}`, async () =>
      matchesGolden(join(FOLDER, `${name}.txt`), mailText(await readHere(readFileSync(join(FOLDER, `${name}.eml`))))))
})
