import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { foldGolden, type GoldenRecord, readGolden, stateOf } from "../../support/golden.ts"
import { historyProblems } from "../../support/verifyHistory.ts"

const FOLDER = join(import.meta.dirname, "golden")
const names = readdirSync(FOLDER)
  .filter((file) => file.endsWith(".jsonl"))
  .map((file) => file.slice(0, -".jsonl".length))

const lines = (name: string): string => readFileSync(join(FOLDER, `${name}.jsonl`), "utf8")
const record = (name: string) => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as GoldenRecord

describe("golden histories", () => {
  for (const name of names) {
    it(`${name} folds to the recorded state, or FOLD_VERSION has to grow (R69)`, () => {
      const { events, fold_version, head, session_id, state } = record(name)
      for (const form of ["old", "new"] as const) {
        const at = foldGolden(session_id, readGolden(lines(name), form))
        assert.deepStrictEqual([at.state.rev, at.hash.toString("hex")], [events, head])
        assert.deepStrictEqual(stateOf(at.state), state)
      }
      assert.strictEqual(fold_version, FOLD_VERSION, "record the states anew, and look at what changed in them")
    })

    it(`${name} has a sound chain by a verifier of its own (D5)`, () => {
      const printed = lines(name)
        .trimEnd()
        .split("\n")
        .map((line) => {
          const { hash, ...event } = JSON.parse(line)
          return { event, hash }
        })
      assert.deepStrictEqual(historyProblems(record(name).session_id, printed), [])
    })
  }

  it("hold all thirteen types of events, and each way in which a call or a job ends", () => {
    const all = names.map(lines).join("")
    const found = (key: string) => [
      ...new Set([...all.matchAll(new RegExp(`"${key}":"([^"]*)"`, "gu"))].map(([, value]) => value))
    ]
    assert.lengthOf(found("event_type"), 13)
    assert.includeMembers(found("status"), [
      "success",
      "error",
      "timeout",
      "rejected",
      "cancelled",
      "unknown_after_crash"
    ])
    assert.includeMembers(found("outcome"), ["completed", "cancelled", "budget"])
    assert.includeMembers(found("purpose"), ["turn", "report", "compaction", "summary"])
  })
})
