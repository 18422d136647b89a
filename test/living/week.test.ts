/** docs/week.md is the fortnight as the phones showed it. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"
import type { Day } from "./Day.ts"
import { DAYS } from "./days.ts"
import { expectedOf, headingOf } from "./Diary.ts"

const FILE = join(ROOT, "docs/week.md")
const BEGINNING = `# A fortnight with Choir

Ada sets Choir up on a Monday morning and lives with it. This is what the phones show, word for word: \`test/living/fortnight.test.ts\` lives these days in a
default home, and compares the phones after each step with what follows. The model is a script, and knows of earlier days only what Choir shows it. Behind the names of Telegram, of the
model's provider and of the web are doubles; all else is what you get. A line with ↩ is the message that an answer quotes, and buttons are in brackets. Tokens and prices, which change with every word of
a prompt, are left out.
`

const MARGIN = 7

/** The steps of a day as text: a sentence where the phones do not show what is done, and what they show. */
const dayText = (day: Day): string => {
  const screens = expectedOf(day)
  const blocks: Array<string> = [`## ${day.name}`]
  let lines: Array<string> = []
  const close = () => {
    if (lines.length > 0) blocks.push(["```text", ...lines, "```"].join("\n"))
    lines = []
  }
  for (const step of day.steps) {
    if (step.title !== undefined) {
      close()
      blocks.push(step.title)
    }
    const shown = (screens.get(headingOf(step)) ?? "").split("\n")
    lines.push(...shown.map((line, index) => `${(index === 0 ? step.at : "").padEnd(MARGIN)}${line}`.trimEnd()))
  }
  close()
  return blocks.join("\n\n")
}

describe("docs/week.md", () => {
  it("is the fortnight as the phones showed it", () => {
    const text = `${[BEGINNING.trimEnd(), ...DAYS.map(dayText)].join("\n\n")}\n`
    if (process.env["CHOIR_GOLDEN"] === "write") writeFileSync(FILE, text)
    assert.strictEqual(readFileSync(FILE, "utf8"), text)
  })
})
