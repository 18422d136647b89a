/** Lists that pages give by hand, against the tables of the sources that they repeat. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { CHAT_COMMANDS } from "#schema/ChatCommand.ts"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { ROOT } from "../support/installation.ts"

/** Offered by Choir only where it asks for an answer of that form; no model begins a call of one by itself. */
const ANSWERS: ReadonlySet<string> = new Set(["choir.memory.delta"])

/** The first cells of the tables in a section of a page. */
const firstCells = (path: string, heading: string): ReadonlyArray<string> => {
  const [, from = ""] = readFileSync(join(ROOT, path), "utf8").split(`\n## ${heading}\n`)
  const [section = ""] = from.split("\n## ")
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|")[1] ?? "")
}

const quoted = (cell: string) => Array.from(cell.matchAll(/`([^`]+)`/gu), ([, text = ""]) => text)

/** The tools of a cell: `choir.core.spawn`, `inject` names two, and `choir.email.*` all of the group. */
const toolsOf = (cell: string): ReadonlyArray<string> => {
  let group = ""
  return quoted(cell).flatMap((text) => {
    if (text.startsWith("choir.")) group = text.slice(0, text.lastIndexOf(".") + 1)
    const name = text.startsWith("choir.") ? text : group + text
    return name.endsWith(".*") ? [...BUILT_IN_CAPABILITIES.keys()].filter((tool) => tool.startsWith(group)) : [name]
  })
}

describe("docs/tools.md", () => {
  it("has each built-in tool, and no other", () => {
    const named = new Set(firstCells("docs/tools.md", "Built-in tools").flatMap(toolsOf))
    assert.sameMembers(
      [...named],
      [...BUILT_IN_CAPABILITIES.keys()].filter((tool) => !ANSWERS.has(tool))
    )
  })
})

describe("docs/telegram.md", () => {
  it("has each command of a chat, and no other", () => {
    // The longest words that fit come last: "model llm" behind "model".
    const commands = Object.keys(CHAT_COMMANDS).toSorted()
    const typed = firstCells("docs/telegram.md", "Commands")
      .flatMap(quoted)
      .filter((text) => text.startsWith("/"))
      .map((text) => text.slice(1))
    const wordsOf = (text: string) =>
      commands.findLast((words) => text === words || text.startsWith(`${words} `)) ?? `none of the table: ${text}`
    assert.sameMembers([...new Set(typed.map(wordsOf))], commands)
  })
})
