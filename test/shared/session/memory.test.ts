import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { MemoryDelta } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { compactionLimit, passedOutputs } from "#src/shared/session/compactWindow.ts"
import { fold } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import {
  applyDelta,
  emptySummary,
  isEmpty,
  SUMMARY_CHARS_MAX,
  SUMMARY_FACT_CHARS_MAX,
  SUMMARY_FACTS_MAX,
  SUMMARY_REFERENCES_MAX
} from "#src/shared/session/memory.ts"
import { namedRevs } from "#src/shared/session/namedRevs.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { makeHistory, makeRandom, pick, placed } from "../../support/history.ts"

const HASH = "ab".repeat(32)
const append = (more: Omit<MemoryDelta, "mode">): MemoryDelta => ({ mode: "append", ...more })

describe("applyDelta", () => {
  it("adds to the text or replaces it, and an empty update wipes nothing", () => {
    const one = applyDelta(emptySummary, append({ summary_update: "One." }))
    assert.strictEqual(applyDelta(one, append({ summary_update: "Two." })).summary, "One.\nTwo.")
    assert.strictEqual(applyDelta(one, { mode: "overwrite", summary_update: "New." }).summary, "New.")
    assert.strictEqual(applyDelta(one, { mode: "overwrite", summary_update: "" }).summary, "One.")
    assert.strictEqual(applyDelta(one, { mode: "overwrite" }).summary, "One.")
  })

  it("knows facts by their key, and keeps them when the text is overwritten", () => {
    const one = applyDelta(emptySummary, append({ add_fact: { key: "cat", value: "Tom" } }))
    const two = applyDelta(one, { mode: "overwrite", summary_update: "x", add_fact: { key: "cat", value: "Kit" } })
    assert.deepStrictEqual(two.facts, [{ key: "cat", value: "Kit" }])
    assert.deepStrictEqual(applyDelta(two, append({ remove_fact: { key: "cat", value: "" } })).facts, [])
  })

  it("sorts references into sessions and events, once each, and drops what is neither", () => {
    const added = applyDelta(emptySummary, append({ add_references: [HASH, HASH, SESSION, "../etc/passwd"] }))
    assert.deepStrictEqual([added.referenced_events, added.referenced_sessions], [[HASH], [SESSION]])
    assert.isTrue(isEmpty(applyDelta(added, append({ remove_references: [HASH, SESSION] }))))
  })

  it("stays within its limits whatever the deltas are, and keeps the newest", () => {
    const random = makeRandom(3)
    let summary = emptySummary
    for (let round = 0; round < 500; round++)
      summary = applyDelta(summary, {
        mode: pick(random, ["append", "append", "overwrite"]),
        summary_update: "🙂".repeat(Math.floor(random() * SUMMARY_CHARS_MAX)),
        add_fact: { key: `k${round}${"x".repeat(1000)}`, value: `${round}` },
        add_references: [round.toString(16).padStart(64, "0")]
      })
    assert.isAtMost(summary.summary.length, SUMMARY_CHARS_MAX)
    assert.isTrue(summary.summary.isWellFormed())
    assert.strictEqual(summary.facts.length, SUMMARY_FACTS_MAX)
    assert.strictEqual(summary.facts.at(-1)?.value, "499")
    assert.isAtMost(summary.facts[0]?.key.length ?? 0, SUMMARY_FACT_CHARS_MAX)
    assert.strictEqual(summary.referenced_events.length, SUMMARY_REFERENCES_MAX)
  })
})

describe("CompactionCommitted", () => {
  it("is refused where it would take what is open, or go back (hostile agents send anything)", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const { state } = makeHistory(seed, 60)
      for (const lane of [EDGE, ...[...state.cores.values()].map((core) => core.lane)]) {
        const limit = compactionLimit(state, lane)
        const memory = laneOf(state, lane)
        const folded = (boundary_rev: number, kept: ReadonlyArray<number> = []) => {
          const payload = { boundary_rev, kept, delta: append({ summary_update: "x" }) }
          return fold(state, placed(state, [{ event_type: "CompactionCommitted", lane, payload } as never])[0] as never)
        }
        assert.isTrue(Result.isFailure(folded(limit + 1)), `seed ${seed}`)
        assert.isTrue(Result.isFailure(folded(state.rev + 1)), `seed ${seed}`)
        if ((memory?.boundary ?? 0) > 0) assert.isTrue(Result.isFailure(folded((memory?.boundary ?? 0) - 1)))
        const held = memory === undefined ? [] : passedOutputs(memory, limit)
        const most = folded(Math.max(limit, memory?.boundary ?? 0), held)
        if (held.length > 0) assert.isTrue(Result.isFailure(folded(limit, held.slice(1))), `seed ${seed}`)
        if (limit >= (memory?.boundary ?? 0)) {
          assert.isTrue(Result.isSuccess(most), `seed ${seed}`)
          const after = Result.isSuccess(most) ? laneOf(most.success, lane) : undefined
          assert.isTrue(after?.window.every((rev) => rev > limit || held.includes(rev)))
          assert.deepStrictEqual(after?.calls, memory?.calls)
          if (Result.isSuccess(most)) assert.deepStrictEqual(namedRevs(most.success), namedRevs(state))
        }
      }
    }
  })
})
