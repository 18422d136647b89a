/** Limits on what it costs to fold a history: choird folds every agent's on its one thread, and keeps the states. */
import { assert, describe, it, vi } from "@effect/vitest"
import { Result } from "effect"
import { CORE_JOBS_MAX } from "#schema/Core.ts"
import type { EventDraft } from "#schema/Event.ts"
import { fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { encodeState, REPETITIONS_REMEMBERED_MAX, SIGNALS_REMEMBERED_MAX } from "#src/shared/session/snapshot.ts"
import { REPORTS_OWED_MAX, type SessionState } from "#src/shared/session/State.ts"
import { placed } from "../../support/history.ts"
import { SNAPSHOT_BYTES_MAX } from "#src/choird/sessions/snapshots.ts"
import { OUTPUT_CALLS_MAX, SEEN_FILES_MAX, SEEN_PATHS_CHARS_MAX } from "#src/shared/session/calls.ts"
import { WINDOW_REVS_MAX } from "#src/shared/session/lanes.ts"

const draft = (event_type: string, lane: string, payload: object) => ({ event_type, lane, payload }) as EventDraft

const userMsg = draft("UserMsg", "edge", { inbox_id: "1", dm: "me", text: "hi", attachments: [] })
const start = {
  task_spec: "t",
  context_bundle: { facts: [], excerpts: [], constraints: [] },
  tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
  verbosity: "normal"
}
const started = (name: string) =>
  draft("CoreStarted", `core:${name}`, {
    job_id: name,
    job_name: name,
    start: { ...start, job_id: name, job_name: name },
    model: "m",
    budgets: { max_steps: 9, max_tool_calls: 9, wall_time_ms: 9, max_injections: 9 }
  })
const stopped = (name: string) =>
  draft("CoreStopped", `core:${name}`, {
    job_id: name,
    job_name: name,
    outcome: "error",
    summary: "s",
    usage: { input_tokens: 0, output_tokens: 0 }
  })
const output = (lane: string, ids: ReadonlyArray<string>) =>
  draft("ModelOutput", lane, {
    call_id: "o",
    purpose: "turn",
    model: "m",
    tool_calls: ids.map((call_id) => ({ call_id, name: "choir-fs-read", input: { call_id } })),
    finish_reason: "tool_calls",
    usage: { input_tokens: 1, output_tokens: 1 },
    latency_ms: 1
  })
const file = (path: string) => ({ path, sha256: "a".repeat(64) })
const ran = (lane: string, call_id: string, reads: ReadonlyArray<string>): ReadonlyArray<EventDraft> => [
  draft("ToolCallRequested", lane, { call_id, tool: "choir.fs.read", input: {}, effect: "none", locks: [] }),
  draft("ToolCallCommitted", lane, { call_id, locks: [] }),
  draft("ToolResultCommitted", lane, {
    call_id,
    status: "success",
    summary: "s",
    duration_ms: 1,
    reads: reads.map(file)
  })
]
const reading = (lane: string, call_id: string, reads: ReadonlyArray<string>) => [
  output(lane, [call_id]),
  ...ran(lane, call_id, reads)
]

const after = (state: SessionState, drafts: ReadonlyArray<EventDraft>): SessionState =>
  Result.getOrThrowWith(foldAll(state, placed(state, drafts)), ({ reason, rev }) => new Error(`${rev}: ${reason}`))
const refusal = (state: SessionState, drafts: ReadonlyArray<EventDraft>) => {
  const folded = foldAll(state, placed(state, drafts))
  return Result.isFailure(folded) ? folded.failure : undefined
}

const jobs = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `j${from + index}`)

/** Entries of lists and maps that a state does not share with the one before it: what an event made somebody copy. */
const copied = (before: unknown, now: unknown): number => {
  if (before === now || typeof now !== "object" || now === null) return 0
  const old = (typeof before === "object" && before !== null ? before : {}) as Record<string, unknown>
  if (now instanceof Map) {
    const known = before instanceof Map ? before : new Map<unknown, unknown>()
    return [...now].reduce((total, [key, value]) => total + copied(known.get(key), value), now.size)
  }
  const own = Array.isArray(now) ? now.length : 0
  return Object.entries(now).reduce((total, [key, value]) => total + copied(old[key], value), own)
}

/** Runs something and counts the entries that were put into maps meanwhile. */
const countingSets = <A>(run: () => A): readonly [A, number] => {
  const spy = vi.spyOn(Map.prototype, "set")
  try {
    return [run(), spy.mock.calls.length]
  } finally {
    spy.mockRestore()
  }
}

describe("a history of an agent that means harm", () => {
  it("is refused at the first job too many, so that what it asks of the folder does not grow with its jobs", () => {
    const drafts = [userMsg, ...jobs(1500).map(started)]
    const [refused, sets] = countingSets(() => refusal(initialState, drafts))
    assert.deepStrictEqual(refused, {
      rev: CORE_JOBS_MAX + 2,
      reason: `CoreStarted: ${CORE_JOBS_MAX} jobs are already running`
    })
    assert.isBelow(sets, 4 * CORE_JOBS_MAX * CORE_JOBS_MAX)
  })

  it("makes no event copy more than what the limits allow, with everything as full as it may be", () => {
    let state = after(initialState, [userMsg])
    for (let batch = 0; state.reports.length + 2 * CORE_JOBS_MAX < REPORTS_OWED_MAX; batch++)
      state = after(
        state,
        jobs(CORE_JOBS_MAX, batch * CORE_JOBS_MAX).flatMap((name) => [started(name), stopped(name)])
      )
    const last = jobs(CORE_JOBS_MAX, 1_000_000)
    state = after(state, last.map(started))
    const lanes = ["edge", ...last.slice(0, 2).map((name) => `core:${name}`)]
    for (const [index, lane] of lanes.entries())
      for (let file = 0; file < SEEN_FILES_MAX + 50; file++)
        state = after(state, reading(lane, `${index}-${file}`, [`${lane}/${file}`]))
    for (let signal = 0; signal < 2 * SIGNALS_REMEMBERED_MAX; signal++)
      state = after(state, [
        draft("InjectedInstruction", "edge", { signal_id: `${signal}`, target: "edge", source: "user", content: "c" })
      ])
    assert.lengthOf(state.signals, SIGNALS_REMEMBERED_MAX)
    for (const { repetitions, seen, window } of [state.edge, ...state.cores.values()]) {
      assert.isAtMost(window.length, WINDOW_REVS_MAX)
      assert.isAtMost(seen.size, SEEN_FILES_MAX)
      assert.isAtMost(repetitions.length, REPETITIONS_REMEMBERED_MAX)
    }
    const ids = jobs(OUTPUT_CALLS_MAX, 5000)
    const dear = [
      output("core:j1000000", ids),
      ...ids.flatMap((id) => ran("core:j1000000", id, jobs(400))),
      draft("InjectedInstruction", "edge", { signal_id: "x", target: "edge", source: "user", content: "c" }),
      ...last.slice(1).map(stopped)
    ]
    const most =
      REPORTS_OWED_MAX +
      WINDOW_REVS_MAX +
      SIGNALS_REMEMBERED_MAX +
      SEEN_FILES_MAX +
      OUTPUT_CALLS_MAX +
      REPETITIONS_REMEMBERED_MAX +
      2 * CORE_JOBS_MAX
    for (const event of placed(state, dear)) {
      const [folded, sets] = countingSets(() => fold(state, event))
      const next = Result.getOrThrowWith(folded, ({ reason }) => new Error(reason))
      assert.isAtMost(copied(state, next), most, event.event_type)
      assert.isAtMost(sets, 2 * SEEN_FILES_MAX + 8 * CORE_JOBS_MAX, event.event_type)
      state = next
    }
  })

  it("proposes no more calls in one output than a lane may hold open", () => {
    const state = after(initialState, [userMsg])
    assert.match(refusal(state, [output("edge", jobs(OUTPUT_CALLS_MAX + 1))])?.reason ?? "", /128 calls at most/u)
    assert.isUndefined(refusal(state, [output("edge", jobs(OUTPUT_CALLS_MAX))]))
  })

  it("owes the user no more reports than the limit", () => {
    let state = after(initialState, [userMsg])
    for (const name of jobs(REPORTS_OWED_MAX)) state = after(state, [started(name), stopped(name)])
    assert.match(refusal(state, [started("one"), stopped("one")])?.reason ?? "", /1000 reports are already owed/u)
  })
})

describe("the files that a lane has seen", () => {
  it("are the newest, so that the state of a session that reads 10,000 of them can be handed to its agent", () => {
    let state = after(initialState, [userMsg, ...jobs(8).map(started)])
    const lanes = ["edge", ...jobs(8).map((name) => `core:${name}`)]
    for (let index = 1; index <= 10_000; index++) {
      const lane = lanes[index % lanes.length] ?? "edge"
      state = after(state, reading(lane, `c${index}`, [`src/components/module-${index}/index.ts`]))
    }
    assert.strictEqual(state.edge.seen.size, SEEN_FILES_MAX)
    assert.isTrue(state.edge.seen.has("src/components/module-9999/index.ts"))
    assert.isBelow(Buffer.byteLength(Result.getOrThrow(encodeState(state))), SNAPSHOT_BYTES_MAX)
  })

  it("stay while they are looked at, and go by the length of their paths as well", () => {
    const turn = after(initialState, [userMsg])
    const touched = after(turn, [
      ...reading("edge", "a", ["kept"]),
      ...reading("edge", "b", jobs(SEEN_FILES_MAX - 1)),
      ...reading("edge", "c", ["kept"]),
      ...reading("edge", "d", ["one more"])
    ])
    assert.isTrue(touched.edge.seen.has("kept"))
    assert.isFalse(touched.edge.seen.has("j0"))
    const long = after(
      turn,
      reading(
        "edge",
        "a",
        jobs(40).map((name) => `${name}${"x".repeat(4000)}`)
      )
    )
    assert.isAtMost([...long.edge.seen.keys()].join("").length, SEEN_PATHS_CHARS_MAX)
    assert.isAbove(long.edge.seen.size, 1)
  })
})
