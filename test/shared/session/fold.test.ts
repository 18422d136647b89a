import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { JobName } from "#schema/Ids.ts"
import { foldAll, fold, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { makeHistory, placed } from "../../support/history.ts"
import { historiesOf } from "../../support/size.ts"

const HISTORIES = historiesOf(100)

const draft = (event_type: string, lane: string, payload: object) => ({ event_type, lane, payload }) as EventDraft

const userMsg = (inbox_id = "1") => draft("UserMsg", "edge", { inbox_id, dm: "me", text: "hi", attachments: [] })
const output = (lane: string, more: object = {}) =>
  draft("ModelOutput", lane, {
    call_id: "o",
    purpose: "turn",
    model: "small",
    tool_calls: [],
    finish_reason: "stop",
    usage: { input_tokens: 7, output_tokens: 3, cost_usd: 0.5 },
    latency_ms: 1,
    ...more
  })
const calling = (lane: string, ...ids: ReadonlyArray<string>) =>
  output(lane, { tool_calls: ids.map((call_id) => ({ call_id, name: "t", input: {} })) })
const requested = (lane: string, call_id: string, effect = "workspace") =>
  draft("ToolCallRequested", lane, { call_id, tool: "t", input: {}, effect, locks: [] })
const committed = (lane: string, call_id: string) => draft("ToolCallCommitted", lane, { call_id, locks: [] })
const result = (lane: string, call_id: string, more: object = {}) =>
  draft("ToolResultCommitted", lane, { call_id, status: "success", summary: "s", duration_ms: 1, ...more })
const called = (lane: string, call_id: string, more: object = {}) => [
  calling(lane, call_id),
  requested(lane, call_id),
  committed(lane, call_id),
  result(lane, call_id, more)
]
const started = (job_name = "a", job_id = "j", lane = `core:${job_name}`) =>
  draft("CoreStarted", lane, {
    job_id,
    job_name,
    start: { context_bundle: {} },
    model: "small",
    budgets: { max_steps: 9, max_tool_calls: 9, wall_time_ms: 9, max_injections: 9 }
  })
const stopped = (outcome = "completed", job_id = "j", job_name = "a") =>
  draft("CoreStopped", `core:${job_name}`, {
    job_id,
    job_name,
    outcome,
    summary: "s",
    usage: { input_tokens: 0, output_tokens: 0 }
  })
const injected = (target: string, more: object = {}, lane = target) =>
  draft("InjectedInstruction", lane, { target, source: "edge", content: "c", ...more })
const cancelled = (target: string, more: object = {}, lane = target) =>
  draft("Cancelled", lane, { target, by: "user", reason: "r", ...more })
const message = (kind: string, in_reply_to?: string, lane = "edge") =>
  draft("AgentMessage", lane, { kind, text: "t", ...(in_reply_to === undefined ? {} : { in_reply_to }) })

const after = (drafts: ReadonlyArray<EventDraft>): SessionState => {
  const folded = foldAll(initialState, placed(initialState, drafts))
  if (Result.isFailure(folded)) throw new Error(`${folded.failure.rev}: ${folded.failure.reason}`)
  return folded.success
}
const next = (drafts: ReadonlyArray<EventDraft>, last: EventDraft) => {
  const state = after(drafts)
  return fold(state, placed(state, [last])[0] as ChoirEvent)
}

const turn = [userMsg()]
const job = [userMsg(), started()]
const reported = [userMsg(), started(), output("edge"), message("reply", "1"), output("core:a"), stopped()]

const REFUSALS: ReadonlyArray<readonly [string, ReadonlyArray<EventDraft>, EventDraft, RegExp]> = [
  ["a message to a core", [], { ...userMsg(), lane: "core:a" } as EventDraft, /only edge hears/u],
  ["a message twice", [...turn, output("edge"), message("reply", "1")], userMsg(), /not after the last/u],
  ["an older message", [userMsg("5"), output("edge"), message("reply", "5")], userMsg("4"), /not after the last/u],
  ["a message within a turn", turn, userMsg("2"), /no reply yet/u],
  ["an output of a job that does not run", [], output("core:a"), /no job runs/u],
  ["an output without a turn", [], output("edge"), /no turn/u],
  ["an output over open calls", [...turn, calling("edge", "c")], output("edge"), /still open/u],
  ["two calls of one id", turn, calling("edge", "c", "c"), /same id/u],
  [
    "calls of a failed output",
    turn,
    output("edge", { error: { kind: "http", message: "m" }, tool_calls: [{ call_id: "c", name: "t", input: 1 }] }),
    /failed output/u
  ],
  ["a report of a core", job, output("core:a", { purpose: "report" }), /only edge reports/u],
  ["a report without a stopped job", [], output("edge", { purpose: "report" }), /no job to report/u],
  ["a report within a turn", [...reported, userMsg("2")], output("edge", { purpose: "report" }), /no job to report/u],
  ["a request that nobody proposed", turn, requested("edge", "c"), /not proposed/u],
  ["a request twice", [...turn, calling("edge", "c"), requested("edge", "c")], requested("edge", "c"), /not proposed/u],
  ["a request of another lane's call", [...job, calling("core:a", "c")], requested("edge", "c"), /not proposed/u],
  ["a commit before its request", [...turn, calling("edge", "c")], committed("edge", "c"), /not requested/u],
  [
    "a second commit of a call with an effect",
    [...turn, calling("edge", "c"), requested("edge", "c", "external"), committed("edge", "c")],
    committed("edge", "c"),
    /committed before/u
  ],
  ["a result of no call", turn, result("edge", "c"), /not open/u],
  ["a second result", [...turn, ...called("edge", "c")], result("edge", "c"), /not open/u],
  ...["success", "error", "unknown_after_crash"].map(
    (status) =>
      [
        `a ${status} of a call that never ran`,
        [...turn, calling("edge", "c"), requested("edge", "c")],
        result("edge", "c", { status }),
        /never ran/u
      ] as const
  ),
  ["a start on another lane", turn, started("a", "j", "core:b"), /not the job's/u],
  ["a start beside its namesake", job, started("a", "k"), /already runs/u],
  ["a start after edge's end", [cancelled("edge")], started(), /outlive edge/u],
  ["a stop of a job that does not run", turn, stopped(), /does not run/u],
  ["a stop of a namesake", job, stopped("error", "k"), /does not run/u],
  ["a stop over open calls", [...job, calling("core:a", "c")], stopped("error"), /open calls/u],
  ["a completion before any output", job, stopped(), /not legal in CORE_INITIALIZING/u],
  ["an injection into a job that does not run", [], injected("core:a"), /no job runs/u],
  ["an injection on another lane", job, injected("core:a", {}, "edge"), /but is on edge/u],
  ["an injection into an ended edge", [cancelled("edge")], injected("edge"), /not legal/u],
  ["a signal twice", [injected("edge", { signal_id: "5" })], injected("edge", { signal_id: "5" }), /already ended/u],
  [
    "a signal of another kind twice",
    [injected("edge", { signal_id: "5" })],
    draft("CompactionCommitted", "edge", { signal_id: "5", delta: { mode: "append" }, boundary_rev: 0 }),
    /already ended/u
  ],
  ["an end of edge before its jobs", job, cancelled("edge"), /before its jobs/u],
  ["a second end of edge", [cancelled("edge")], cancelled("edge"), /not legal/u],
  ["a cancel on another lane", job, cancelled("core:a", {}, "edge"), /but is on edge/u],
  ["a core that speaks to the user", job, message("reply", "1", "core:a"), /only edge speaks/u],
  ["a reply without a turn", [], message("reply", "1"), /no open turn/u],
  ["a reply to another message", turn, message("reply", "2"), /another message/u],
  ["a reply over open calls", [...turn, calling("edge", "c")], message("reply", "1"), /not legal/u],
  ["a report without a job", [], message("report"), /no job to report/u],
  ["a report to another message", reported, message("report", "2"), /another message/u],
  ["a reply in a report turn", [...reported, output("edge", { purpose: "report" })], message("reply", "1"), /no open/u]
]

describe("fold", () => {
  for (const [what, before, event, reason] of REFUSALS)
    it(`refuses ${what}`, () => {
      const folded = next(before, event)
      if (Result.isSuccess(folded)) assert.fail("it was accepted")
      assert.match(folded.failure.reason, reason)
      assert.strictEqual(folded.failure.rev, before.length + 1)
    })

  it("refuses a gap, a repeat and a first revision that is not 1", () => {
    const events = placed(initialState, [userMsg(), output("edge"), message("reply", "1")])
    for (const wrong of [events.slice(1), [events[0], events[0]], [events[0], events[2]]])
      assert.isTrue(Result.isFailure(foldAll(initialState, wrong as ReadonlyArray<ChoirEvent>)))
  })

  it("counts every purpose, and moves a lane by turn and report alone", () => {
    const state = after([userMsg(), output("edge", { purpose: "summary" }), output("edge", { purpose: "compaction" })])
    assert.deepStrictEqual(
      [state.edge.state, state.edge.step, state.spent],
      ["EDGE_CONTEXT_READY", 0, { tokens: 20, cost_usd: 1, tool_calls: 0 }]
    )
  })

  it("lets a call without effect be committed again, as after a crash (docs/protocol.md, Recovery)", () => {
    const state = after([
      userMsg(),
      calling("edge", "c"),
      requested("edge", "c", "none"),
      committed("edge", "c"),
      committed("edge", "c"),
      result("edge", "c")
    ])
    assert.deepStrictEqual([state.edge.state, state.spent.tool_calls], ["EDGE_REASONING", 1])
  })

  it("keeps edge waiting until each call of the output has its result", () => {
    const two = [userMsg(), calling("edge", "c", "d"), result("edge", "d", { status: "rejected" })]
    assert.strictEqual(after(two).edge.state, "EDGE_WAITING_TOOL")
    assert.strictEqual(after([...two, result("edge", "c", { status: "cancelled" })]).edge.state, "EDGE_REASONING")
  })

  it("counts how often a call gave the same result, and begins again with another call, result or message (E11)", () => {
    const times = (drafts: ReadonlyArray<EventDraft>) =>
      after([userMsg(), ...drafts]).edge.repetitions.at(-1)?.times ?? 0
    const again = (id: string, more: object = {}) => called("edge", id, more)
    assert.strictEqual(times([...again("a"), ...again("b"), ...again("c")]), 3)
    assert.strictEqual(times([...again("a"), ...again("b", { summary: "other" })]), 1)
    assert.strictEqual(times([...again("a"), calling("edge", "b"), result("edge", "b", { status: "rejected" })]), 2)
    assert.strictEqual(times([...again("a"), output("edge"), message("reply", "1"), userMsg("2")]), 0)
  })

  it("remembers the newest version of a file that a lane read or wrote (E10)", () => {
    const [old, fresh] = ["0".repeat(64), "1".repeat(64)]
    const { seen } = after([
      userMsg(),
      ...called("edge", "a", { reads: [{ path: "f", sha256: old }] }),
      ...called("edge", "b", { writes: [{ path: "f", before: old, after: fresh }] })
    ]).edge
    assert.strictEqual(seen.get("f"), fresh)
  })

  it("passes taint from a result to its lane, to the jobs it starts and instructs, and back (D31)", () => {
    const tainted = called("edge", "c", { untrusted: true })
    const child = after([userMsg(), ...tainted, started()])
    assert.isTrue([...child.cores.values()][0]?.tainted)
    const told = after([userMsg(), started(), ...tainted, injected("core:a")])
    assert.isTrue([...told.cores.values()][0]?.tainted)
    const untold = after([userMsg(), started(), ...tainted])
    assert.isFalse([...untold.cores.values()][0]?.tainted)
    assert.isTrue(after([userMsg(), started(), ...called("core:a", "c", { untrusted: true }), stopped()]).edge.tainted)
  })

  it("carries where that text came from the same way, through jobs, files, compactions and skills", () => {
    const mail = called("edge", "c", { untrusted: true, sources: ["mail:eve@a.example"] })
    const child = after([userMsg(), ...mail, started()])
    assert.deepStrictEqual([...child.cores.values()][0]?.sources, ["mail:eve@a.example"])
    const page = called("core:a", "c", { untrusted: true, sources: ["web:b.example"] })
    const ended = after([userMsg(), started(), ...page, stopped()])
    assert.deepStrictEqual(ended.edge.sources, ["job:a", "web:b.example"])
    const told = after([userMsg(), started(), ...mail, injected("core:a")])
    assert.deepStrictEqual([...told.cores.values()][0]?.sources, ["mail:eve@a.example"])
    // A tool of the image with an effect may write any file, and any such tool may read it.
    const wrote = after([userMsg(), started(), ...page, ...called("core:a", "d"), ...called("edge", "e")])
    assert.sameMembers([...wrote.workspace_sources], ["file", "web:b.example"])
    assert.deepStrictEqual(wrote.edge.sources, ["file", "web:b.example"])
    const forwarded = draft("UserMsg", "edge", { inbox_id: "1", dm: "me", text: "", attachments: [], forwarded: true })
    assert.deepStrictEqual(after([forwarded]).edge.sources, ["forwarded"])
    const boundary_rev = 1
    const compaction = draft("CompactionCommitted", "edge", { delta: { mode: "append" }, boundary_rev })
    assert.deepStrictEqual(after([userMsg(), ...mail, compaction]).edge.sources, ["mail:eve@a.example"])
  })

  it("takes a job's result for superseded where its prompt did not show the newest instruction, or cannot tell", () => {
    const isSuperseded = (more: object) => {
      const events = [userMsg(), started(), ...called("core:a", "k"), injected("core:a"), output("core:a", more)]
      return after(events).cores.get(JobName.make("a"))?.output.isSuperseded
    }
    // The instruction is the seventh event.
    assert.deepStrictEqual([{ prompt: { rev: 7 } }, { prompt: { rev: 6 } }, {}].map(isSuperseded), [false, true, true])
  })

  it("takes a second result for a correction only where one was asked for, or where its output does not say", () => {
    const isCorrection = (first: object, second: object) => {
      const asked = [userMsg(), started(), ...called("core:a", "k"), injected("core:a")]
      return after([...asked, output("core:a", first), output("core:a", second)]).cores.get(JobName.make("a"))?.output
        .isCorrection
    }
    const said = (rev: number, about?: string) => ({
      prompt: { rev, ...(about === undefined ? {} : { notes: [{ about, text: "t" }] }) }
    })
    // The instruction is the seventh event. An earlier Choir asked again after a result that had seen it, with no more than the transcript.
    assert.deepStrictEqual(
      [
        isCorrection(said(7), said(8, "correction")),
        isCorrection(said(7), said(8)),
        isCorrection(said(7), said(8, "time")),
        isCorrection(said(6), said(8, "correction")),
        isCorrection({}, {})
      ],
      [true, false, false, false, false]
    )
  })

  it("labels the workspace with a result of strangers that is kept in a file there, though the call has no effect", () => {
    const read = (id: string, more: object) => [
      calling("core:a", id),
      requested("core:a", id, "none"),
      committed("core:a", id),
      result("core:a", id, { untrusted: true, sources: ["web:b.example"], ...more })
    ]
    const picture = { type: "image/png", sha256: "0".repeat(64), bytes: 1, width: 1, height: 1 }
    for (const kept of [{ artifact_ref: "0".repeat(64) }, { pictures: [picture] }])
      assert.deepStrictEqual(after([userMsg(), started(), ...read("c", kept)]).workspace_sources, ["web:b.example"])
    assert.isFalse(after([userMsg(), started(), ...read("c", {})]).workspace_tainted)
  })

  it("keeps with a call that asks for a person where the lane's text came from then", () => {
    const asks = [
      ...called("edge", "c", { untrusted: true, sources: ["mail:eve@a.example"] }),
      calling("edge", "d"),
      draft("ToolCallRequested", "edge", {
        call_id: "d",
        tool: "t",
        input: {},
        effect: "external",
        locks: [],
        confirm: "tainted"
      })
    ]
    assert.deepStrictEqual(after([userMsg(), ...asks]).edge.calls[0]?.sources, ["mail:eve@a.example"])
  })

  it("queues one report for each stopped job and answers the message that spawned it", () => {
    const waiting = after(reported)
    assert.deepStrictEqual<unknown>(
      waiting.reports.map(({ inbox_id, job_name }) => [job_name, inbox_id]),
      [["a", "1"]]
    )
    const told = after([...reported, message("report", "1")])
    assert.deepStrictEqual([told.reports.length, told.edge.state, told.edge.turn], [0, "EDGE_IDLE", undefined])
  })

  it("gives for a prefix and the rest what it gives for all, at every cut (R5)", () => {
    for (let seed = 1; seed <= historiesOf(20); seed++) {
      const { events, state } = makeHistory(seed, 120)
      let prefix = initialState
      for (let cut = 0; cut <= events.length; cut += cut < 40 ? 1 : 7) {
        const head = foldAll(prefix, events.slice(prefix.rev, cut))
        if (Result.isFailure(head)) assert.fail(`seed ${seed}: ${head.failure.reason}`)
        prefix = head.success
        const whole = foldAll(prefix, events.slice(cut))
        if (Result.isFailure(whole)) assert.fail(`seed ${seed}: ${whole.failure.reason}`)
        assert.deepStrictEqual(whole.success, state, `seed ${seed}, cut ${cut}`)
      }
    }
  })

  it(`never lets a count fall, in ${HISTORIES} histories (R23)`, () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      let state = initialState
      for (const event of makeHistory(seed, 100).events) {
        const folded = fold(state, event)
        if (Result.isFailure(folded)) assert.fail(folded.failure.reason)
        const { spent } = folded.success
        assert.isTrue(
          spent.tokens >= state.spent.tokens &&
            spent.tool_calls >= state.spent.tool_calls &&
            spent.cost_usd >= state.spent.cost_usd
        )
        for (const [name, core] of state.cores) {
          const now = folded.success.cores.get(name)
          if (now === undefined) continue
          assert.isTrue(now.step >= core.step && now.tool_calls >= core.tool_calls && now.injections >= core.injections)
        }
        state = folded.success
      }
    }
  })
})
