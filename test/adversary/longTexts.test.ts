/** Texts of agents, pages and strangers in which a pattern would look at the same run of characters again and again: nothing else runs meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { ToolName } from "#schema/Tool.ts"
import { SkillName, type SkillSpec } from "#schema/Skill.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { toBlocks } from "#src/agent/notion/toBlocks.ts"
import { richText } from "#src/agent/notion/toMarkdown.ts"
import { spokenText } from "#src/agent/session/AnswerVoice.ts"
import { isKnownAddress } from "#src/agent/tools/knownAddresses.ts"
import { grantOf } from "#src/choird/approvals/grantWords.ts"
import { markedText } from "#src/choird/telegram/markedText.ts"
import { messageTriggers } from "#src/agent/arbiter/skillTriggers.ts"
import { withoutEnd } from "#src/shared/text/withoutEnd.ts"

/** The shorter text shows what is of the third power, which would not end on the longer one. */
const LENGTHS = [2000, 60_000]
/** Processor time in µs. What looks again and again takes several times as long for one of these lengths, and anything else a tenth. */
const COST_MAX = 500_000

const costOf = (work: () => unknown): number => {
  const before = process.cpuUsage()
  work()
  const { system, user } = process.cpuUsage(before)
  return system + user
}

/** The least of a few readings: what is compiled first, and other work, do not count. */
const leastCost = (work: () => unknown): number => {
  let least = Infinity
  for (let reading = 0; reading < 4 && least > COST_MAX; reading += 1) least = Math.min(least, costOf(work))
  return least
}

const triggered = (text: string) => {
  const trigger = { kind: "tool", match: "mail.send", mode: "suggest" } as const
  const skill = { name: SkillName.make("x"), registry: { triggers: [trigger] } } as unknown as SkillSpec
  return messageTriggers(new Map([["x", skill]]), text)
}

const known = (text: string) => {
  const find = () => ({ event_type: "UserMsg", payload: { text } })
  const log = { oldest: () => 1, head: () => 1, find } as unknown as EventLog["Service"]
  return isKnownAddress(log, { address: "https://b.example/", any_fragment: true })
}

const TEXTS: ReadonlyArray<readonly [what: string, work: (run: (character: string) => string) => unknown]> = [
  ["a fence of code behind blanks", (run) => markedText(`\`\`\`${run(" ")}\``)],
  ["a fence of tildes", (run) => markedText(`${run("~")}\``)],
  ["a heading behind blanks", (run) => markedText(`# a${run(" ")}\u2028b`)],
  ["a heading with marks in it", (run) => markedText(`# ${run("#")} a`)],
  ["blanks where a table has its rule", (run) => markedText(`a|b\n${run(" ")}x`)],
  ["a rule of a table that goes wrong", (run) => markedText(`a|b\n${run("|-")}x`)],
  ["an answer to be spoken that ends in a fence", (run) => spokenText(run("`"))],
  [
    "a text of Notion with blanks in it",
    (run) => richText([{ plain_text: `a${run(" ")}b`, annotations: { bold: true } }])
  ],
  ["brackets for Notion", (run) => toBlocks(run("["))],
  ["a list for Notion", (run) => toBlocks(`- a${run(" ")}\u2028b`)],
  ["a call with half an address", (run) => grantOf({ tool: ToolName.make("x.y"), input: { a: run("<") } }, [])],
  ["an address with many dots", (run) => known(`https://${run(".")}a`)],
  ["a message with many dots", (run) => triggered(`${run(".")}a`)]
]

describe("a long text", () => {
  for (const [what, work] of TEXTS)
    it(`with ${what} costs as much as its length`, () => {
      for (const chars of LENGTHS)
        assert.isAtMost(
          leastCost(() => work((one) => one.repeat(chars))),
          COST_MAX
        )
    })

  it("loses the characters at its end alone", () => {
    assert.strictEqual(withoutEnd("a.b.-.", ".-"), "a.b")
    assert.strictEqual(withoutEnd("...", "."), "")
    assert.strictEqual(withoutEnd("", "."), "")
  })
})
