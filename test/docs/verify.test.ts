/** The program of docs/log.md, as a person without Choir runs it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { verifiedByDocs } from "../support/documentedVerifier.ts"
import { goldenLines, histories, RECORDED_SESSION, reducedLine } from "../support/mixedHistory.ts"

const RECORDED = join(import.meta.dirname, "../shared/session/recorded/mixed.jsonl")
const verify = (lines: ReadonlyArray<string>) => verifiedByDocs(RECORDED_SESSION, lines)

type Line = Record<string, unknown> & { readonly payload: Record<string, unknown> }
const changed = (line: string, change: (event: Line) => object): string => {
  const event = JSON.parse(line) as Line
  return JSON.stringify({ ...event, ...change(event) })
}
const headOf = (lines: ReadonlyArray<string>) => (JSON.parse(lines.at(-1) ?? "") as { readonly hash: string }).hash

describe("the verifier of docs/log.md", () => {
  const { both, old, young } = histories()

  it("accepts a history of version 1, one of version 2 and one of both (D52)", () => {
    for (const lines of [old, goldenLines("crash"), young, both])
      assert.strictEqual(verify(lines), `${lines.length} events, head ${headOf(lines)}`)
  })

  it("accepts reduced payloads that a later event lists, and counts them", () => {
    const all = young.map((line, index) => (index < 3 ? reducedLine(line) : line))
    assert.strictEqual(verify(all), `4 events, head ${headOf(young)}, 3 payloads reduced`)
    assert.notInclude(all.join("\n"), "4711")
    const recorded = readFileSync(RECORDED, "utf8").trimEnd().split("\n")
    assert.strictEqual(verify(recorded), `${recorded.length} events, head ${headOf(both)}, 1 payloads reduced`)
  })

  it("names the revision of each planted change", () => {
    const first = old.length
    const at = first + 1
    const changes: ReadonlyArray<readonly [string, (event: Line) => object]> = [
      ["its text", ({ payload }) => ({ payload: { ...payload, text: "My pin is 4712. 🫖" } })],
      ["a payload's key", ({ payload }) => ({ payload: { ...payload, more: 1 } })],
      ["its time", () => ({ created_at: "2026-02-01T00:00:00.001Z" })],
      ["its lane", () => ({ lane: "core:x" })],
      ["its type", () => ({ event_type: "AgentMessage" })],
      ["its version", () => ({ v: 1 })],
      ["its salt", () => ({ salt: "00".repeat(16) })],
      ["its digest", () => ({ hash: "00".repeat(32) })],
      ["the digest of its payload", () => ({ payload_digest: "00".repeat(32) })]
    ]
    for (const [what, change] of changes)
      assert.strictEqual(
        verify(both.with(first, changed(both[first]!, change))),
        `refused: revision ${at} does not hold`,
        what
      )
    const text = changed(both[4]!, ({ payload }) => ({ payload: { ...payload, call_id: "another" } }))
    assert.strictEqual(verify(both.with(4, text)), "refused: revision 5 does not hold", "an event of version 1")
    assert.strictEqual(verify(both.toSpliced(3, 1)), "refused: revision 4 does not hold", "an event less")
    assert.strictEqual(
      verify(both.toSpliced(first, 0, both[first]!)),
      `refused: revision ${at + 1} does not hold`,
      "one more"
    )
    const [one, other] = [both[first]!, both[first + 1]!]
    assert.strictEqual(
      verify(both.with(first, other).with(first + 1, one)),
      `refused: revision ${at} does not hold`,
      "a swap"
    )
  })

  it("refuses a payload that was reduced and is not listed as it is, or not later", () => {
    const refused = (rev: number) => `refused: revision ${rev} was changed, and no later event lists it`
    const unlisted = young.with(0, reducedLine(young[0]!)).slice(0, 3)
    assert.strictEqual(verify(unlisted), refused(1))
    const more = changed(reducedLine(young[0]!), ({ payload }) => ({ payload: { ...payload, text: "something else" } }))
    assert.strictEqual(verify(young.with(0, more)), refused(1))
    const salted = changed(reducedLine(young[0]!), () => ({ salt: "cd".repeat(16) }))
    assert.strictEqual(verify(young.with(0, salted)), refused(1))
    // Who changes the list as well has to say so in an event of its own.
    const listing = changed(young[3]!, ({ payload }) => ({ payload: { ...payload, forgotten: [] } }))
    assert.strictEqual(verify(young.with(3, listing)), "refused: revision 4 does not hold")
  })
})
