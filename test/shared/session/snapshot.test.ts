import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { namedRevs, oldestNamed, windowsOf } from "#src/shared/session/namedRevs.ts"
import { decodeState, encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeHistory } from "../../support/history.ts"
import { historiesOf } from "../../support/size.ts"

/** A state whose maps of files are lists: what a HashMap is made of depends on how it came about. */
const listed = (state: SessionState) => {
  const lane = <
    L extends SessionState["edge"] | (SessionState["cores"] extends ReadonlyMap<unknown, infer C> ? C : never)
  >(
    memory: L
  ) => ({ ...memory, seen: [...memory.seen].sort(([a], [b]) => (a < b ? -1 : 1)) })
  return { ...state, edge: lane(state.edge), cores: [...state.cores].map(([name, core]) => [name, lane(core)]) }
}

const HISTORIES = historiesOf(25)

const text = (state: SessionState): string => Result.getOrThrow(encodeState(state))

const restored = (state: SessionState): SessionState =>
  Result.getOrThrowWith(decodeState(state.rev, FOLD_VERSION, JSON.parse(text(state))), (reason) => new Error(reason))

const folded = (state: SessionState, events: ReadonlyArray<ChoirEvent>): SessionState =>
  Result.getOrThrowWith(foldAll(state, events), ({ reason }) => new Error(reason))

describe("a snapshot of a state", () => {
  it(`is the same state again, at every revision of ${HISTORIES} histories (R5)`, () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= HISTORIES; seed++) {
      let state = initialState
      for (const event of makeHistory(seed, 120).events) {
        state = folded(state, [event])
        assert.deepStrictEqual(listed(restored(state)), listed(state), `seed ${seed}, revision ${state.rev}`)
        seen.add(state.edge.turn?.kind ?? "idle")
        for (const core of state.cores.values()) seen.add(core.state)
        if (state.edge.calls.some(({ stage }) => stage === "committed")) seen.add("committed")
        if (state.reports.length > 0) seen.add("report owed")
        if (state.edge.seen.size > 0) seen.add("files")
      }
    }
    for (const what of ["idle", "turn", "report", "CORE_WAITING_TOOL", "committed", "report owed", "files"])
      assert.isTrue(seen.has(what), `no history had ${what}`)
  })

  it("gives with the tail what all events give, for every k (R5)", () => {
    for (let seed = 101; seed <= 100 + historiesOf(12); seed++) {
      const { events, state } = makeHistory(seed, 100)
      let prefix = initialState
      for (let k = 0; k <= events.length; k++) {
        if (k > 0) prefix = folded(prefix, events.slice(k - 1, k))
        const whole = folded(restored(prefix), events.slice(k))
        assert.deepStrictEqual(listed(whole), listed(state), `seed ${seed}, k ${k}`)
      }
    }
  })

  it("needs no event before the oldest that it names, windows included", () => {
    for (let seed = 1; seed <= historiesOf(20); seed++) {
      let state = initialState
      for (const event of makeHistory(seed, 100).events) {
        state = folded(state, [event])
        const named = [...namedRevs(state), ...windowsOf(state).flat()]
        const oldest = oldestNamed(state)
        assert.strictEqual(oldest, Math.min(state.rev + 1, ...named))
      }
    }
    assert.strictEqual(oldestNamed({ ...initialState, rev: 7 }), 8)
  })

  it("holds whatever a path, a summary or an amount may be", () => {
    const { state } = makeHistory(3, 60)
    const odd: SessionState = {
      ...state,
      spent: { tokens: 2 ** 53 - 1, cost_usd: 0.1 + 0.2, tool_calls: 0 },
      last_inbox_id: 10n ** 18n - 1n,
      ended: "",
      edge: {
        ...state.edge,
        seen: new Map([
          ["__proto__", "a".repeat(64)],
          ["constructor", ""],
          ['é 漢字 🙂\n"\\', "x"]
        ]),
        summary: { ...state.edge.summary, summary: "\u2028 \u0001 🙂" }
      }
    }
    assert.deepStrictEqual(listed(restored(odd)), listed(odd))
  })

  it("is refused when it has another fold or revision, or is not wholly a state", () => {
    const { state } = makeHistory(5, 60)
    const value = JSON.parse(text(state)) as Record<string, unknown> & { readonly edge: Record<string, unknown> }
    const { ended: _, ...lacking } = value
    const wrong: ReadonlyArray<readonly [number, number, unknown]> = [
      [state.rev, FOLD_VERSION + 1, value],
      [state.rev + 1, FOLD_VERSION, value],
      [state.rev, FOLD_VERSION, { ...value, more: 1 }],
      [state.rev, FOLD_VERSION, lacking],
      [state.rev, FOLD_VERSION, { ...value, last_inbox_id: "x" }],
      [state.rev, FOLD_VERSION, { ...value, edge: { ...value.edge, state: "EDGE_LOST" } }],
      [state.rev, FOLD_VERSION, { ...value, edge: { ...value.edge, window: [-1] } }],
      [state.rev, FOLD_VERSION, { ...value, cores: { a: {} } }],
      [state.rev, FOLD_VERSION, null],
      [state.rev, FOLD_VERSION, []]
    ]
    for (const [rev, version, given] of wrong) assert.isTrue(Result.isFailure(decodeState(rev, version, given)))
    assert.isTrue(Result.isSuccess(decodeState(state.rev, FOLD_VERSION, value)))
  })
})
