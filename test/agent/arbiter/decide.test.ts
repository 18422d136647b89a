import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { CallId, EDGE, InboxId, JobName, type LaneId, LaneId as Lane, SignalId } from "#schema/Ids.ts"
import type { TurnName } from "#schema/Signal.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { exhaustedLimit } from "#src/agent/arbiter/decideCalls.ts"
import type { Command, Situation } from "#src/agent/arbiter/Command.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { agentConfig } from "../../support/testing/TestAgent.ts"
import { placed, situation, userMessage } from "../../support/history.ts"

const A = JobName.make("a")
const CORE = Lane.make("core:a")
const usage = { input_tokens: 40, output_tokens: 2 }
const said = { purpose: "turn", model: "small", finish_reason: "stop", usage, latency_ms: 0 } as const

const calling = (lane: LaneId, ...names: ReadonlyArray<string>): Command => ({
  type: "Output",
  lane,
  output: { ...said, tool_calls: names.map((name) => ({ name, input: {} })) }
})
const saying = (text: string): Command => ({
  type: "Output",
  lane: EDGE,
  output: { ...said, text, tool_calls: [] }
})
const request = (lane: LaneId, call: string, more: Partial<Extract<Command, { type: "Request" }>> = {}): Command => ({
  type: "Request",
  lane,
  call_id: CallId.make(call),
  tool: "mem.write",
  capabilities: [],
  input: {},
  effect: "workspace",
  locks: [],
  allowed_tools: undefined,
  beside_jobs: true,
  ...more
})
const grant = (lane: LaneId, call: string, beside_jobs = false): Command => ({
  type: "Grant",
  lane,
  call_id: CallId.make(call),
  locks: [],
  dirty: false,
  beside_jobs
})
const result = (lane: LaneId, call: string, untrusted = false): Command => ({
  type: "Result",
  lane,
  call_id: CallId.make(call),
  result: { status: "success", summary: "s", duration_ms: 0, ...(untrusted ? { untrusted } : {}) }
})
const spawn = (call: string, job_name = A, time_budget_ms = 0): Command => ({
  type: "Spawn",
  call_id: CallId.make(call),
  model: "small",
  tools: [],
  start: {
    job_name,
    task_spec: "do",
    context_bundle: { facts: [], excerpts: [], constraints: [] },
    tool_constraints: { allowed_tools: [], time_budget_ms },
    verbosity: "normal"
  }
})
const inject = (call: string, job_name = A): Command => ({
  type: "InjectCore",
  call_id: CallId.make(call),
  job_name,
  content: "c"
})
const cancel = (call: string, job_name = A): Command => ({
  type: "CancelCore",
  call_id: CallId.make(call),
  job_name,
  reason: "r"
})

const after = (
  commands: ReadonlyArray<Command>,
  more: Partial<Situation> = {},
  log: Array<ChoirEvent> = []
): SessionState =>
  commands.reduce<SessionState>((state, command) => {
    const decided = decide(state, command, situation(more))
    if (Result.isFailure(decided)) throw new Error(`${command.type}: ${decided.failure.reason}`)
    const events = placed(state, decided.success)
    const folded = foldAll(state, events)
    if (Result.isFailure(folded)) throw new Error(`${command.type}: ${folded.failure.reason}`)
    log.push(...events)
    return folded.success
  }, initialState)

const id = (rev: number, index?: number) => `${SESSION}-1-${rev}${index === undefined ? "" : `-${index}`}`
const c = (rev: number, index = 0) => id(rev, index)

/** A turn in which edge spawned the job a, which is at work: the spawn is the call of revision 2. */
const spawned = [userMessage("1"), calling(EDGE, "choir-core-spawn"), request(EDGE, c(2)), spawn(c(2))]
const asking = [userMessage("1"), calling(EDGE, "t")]
const repeated = (times: number) => [
  userMessage("1"),
  ...Array.from({ length: times }, (_, index) => {
    const call = c(2 + index * 4)
    return [calling(EDGE, "t"), request(EDGE, call), grant(EDGE, call), result(EDGE, call)]
  }).flat()
]

const budgets = (more: Partial<Situation["budgets"]>) => ({ budgets: agentConfig(more).budgets })

const REFUSED: ReadonlyArray<
  readonly [string, ReadonlyArray<Command>, Command, RegExp, Partial<Situation>?, Partial<Situation>?]
> = [
  ["a message that was taken", [userMessage("5")], userMessage("5"), /taken before/u],
  ["an output of a stopped job", [], calling(CORE, "t"), /has stopped/u],
  ["a request of a closed call", asking, request(EDGE, "x"), /not open/u],
  ["a grant of a closed call", asking, grant(EDGE, "x"), /not open/u],
  [
    "a call beyond the session's calls (R24)",
    [...asking, request(EDGE, c(2)), grant(EDGE, c(2)), result(EDGE, c(2)), calling(EDGE, "u")],
    request(EDGE, c(6)),
    /max_tool_calls_per_session/u,
    budgets({ max_tool_calls_per_session: 1 })
  ],
  [
    "a call beyond the job's calls",
    [...spawned, calling(CORE, "t", "u"), request(CORE, c(7))],
    request(CORE, c(7, 1)),
    /job's limit of 1 tool calls/u,
    budgets({ per_job_max_tool_calls: 1 })
  ],
  [
    "a tool that the job may not use",
    [...spawned, calling(CORE, "t")],
    request(CORE, c(7), { allowed_tools: ["mem.read"] }),
    /may not use mem-write; allowed: mem-read/u
  ],
  [
    "a sixth call that gave the same five times (E11)",
    [...repeated(5), calling(EDGE, "t")],
    request(EDGE, c(22)),
    /5 times/u
  ],
  [
    "a call that nobody approved (R55)",
    [...asking, request(EDGE, c(2), { effect: "external" })],
    grant(EDGE, c(2)),
    /nobody has approved/u,
    { confirm_external: "always" }
  ],
  [
    "a write of edge while a job runs, at its request (D30)",
    [...spawned, calling(EDGE, "t")],
    request(EDGE, c(7), { beside_jobs: false }),
    /while jobs run \(a\) edge only reads/u
  ],
  [
    "a write of edge that a job's start overtook, at its grant (D30)",
    [
      userMessage("1"),
      calling(EDGE, "t", "choir-core-spawn"),
      request(EDGE, c(2)),
      request(EDGE, c(2, 1)),
      spawn(c(2, 1))
    ],
    grant(EDGE, c(2)),
    /edge only reads/u
  ],
  ["a job of a name that runs", [...spawned, calling(EDGE, "s"), request(EDGE, c(7))], spawn(c(7)), /already runs/u],
  [
    "more jobs than there may be",
    [...spawned, calling(EDGE, "s"), request(EDGE, c(7))],
    spawn(c(7), JobName.make("b")),
    /max_core_jobs/u,
    budgets({ max_core_jobs: 1 })
  ],
  [
    "a job while edge still writes (D30)",
    [userMessage("1"), calling(EDGE, "t", "s"), request(EDGE, c(2)), grant(EDGE, c(2)), request(EDGE, c(2, 1))],
    spawn(c(2, 1)),
    /still runs/u
  ],
  ["an instruction to nobody", asking, inject(c(2)), /no job named a runs; running: none/u],
  [
    "more instructions than a job takes",
    [...spawned, calling(EDGE, "i", "j"), request(EDGE, c(7)), inject(c(7)), request(EDGE, c(7, 1))],
    inject(c(7, 1)),
    /limit of 1 injections/u,
    budgets({ max_injections_per_job: 1 })
  ],
  ["a cancel of nobody", asking, cancel(c(2)), /no job named a/u],
  ["a stop of nobody", [], { type: "StopCore", job_name: A, outcome: "error", summary: "" }, /no job named a/u],
  ["an answer to nothing", [], { type: "Answer", text: "t" }, /no turn is open/u]
]

describe("decide", () => {
  for (const [what, before, command, reason, more] of REFUSED)
    it(`refuses ${what}`, () => {
      const decided = decide(after(before, more), command, situation(more))
      if (Result.isSuccess(decided)) assert.fail(JSON.stringify(decided.success))
      assert.match(decided.failure.reason, reason)
    })

  it("names calls after the session, the epoch and the place of the output (docs/protocol.md, Ids)", () => {
    const state = after([userMessage("1")])
    const decided = decide(state, calling(EDGE, "t", "u"), situation({ epoch: 3 }))
    if (Result.isFailure(decided)) assert.fail(decided.failure.reason)
    const [draft] = decided.success
    if (draft?.event_type !== "ModelOutput") assert.fail("no output")
    assert.strictEqual(draft.payload.call_id, `${SESSION}-3-2`)
    assert.deepStrictEqual<unknown>(
      draft.payload.tool_calls.map(({ call_id }) => call_id),
      [`${SESSION}-3-2-0`, `${SESSION}-3-2-1`]
    )
  })

  it("commits a spawn, an instruction and a cancel together with their results (docs/protocol.md, Batches)", () => {
    const types = (before: ReadonlyArray<Command>, command: Command) => {
      const decided = decide(after(before), command, situation())
      return Result.isSuccess(decided) ? decided.success.map(({ event_type, lane }) => `${event_type} ${lane}`) : []
    }
    const around = (middle: string) => ["ToolCallCommitted edge", middle, "ToolResultCommitted edge"]
    assert.deepStrictEqual(types(spawned.slice(0, 3), spawn(c(2))), around("CoreStarted core:a"))
    const again = [...spawned, calling(EDGE, "t"), request(EDGE, c(7))]
    assert.deepStrictEqual(types(again, inject(c(7))), around("InjectedInstruction core:a"))
    const [committed, effect, ended] = types(again, cancel(c(7)))
    assert.sameMembers([committed, effect, ended] as Array<string>, around("Cancelled core:a"))
  })

  it("writes the job's limits into its start, its time shortened and never lengthened", () => {
    const wall = (time_budget_ms: number) => {
      const state = after(
        [...spawned.slice(0, 3), spawn(c(2), A, time_budget_ms)],
        budgets({ per_job_wall_time_ms: 1000 })
      )
      return state.cores.get(A)?.budgets.wall_time_ms
    }
    assert.deepStrictEqual([wall(0), wall(10), wall(5000)], [1000, 10, 1000])
  })

  it("lets edge read while a job runs, and the job write", () => {
    const state = after([...spawned, calling(EDGE, "t"), calling(CORE, "t")])
    for (const command of [
      request(EDGE, c(7), { effect: "none", beside_jobs: false }),
      request(EDGE, c(7), { beside_jobs: true }),
      request(CORE, c(8), { beside_jobs: false })
    ])
      assert.isTrue(Result.isSuccess(decide(state, command, situation())))
  })

  it("ends a signal for nobody in an event, and marks a running job", () => {
    const reasonIn = (before: ReadonlyArray<Command>) => {
      const command = { type: "SignalCancel", signal_id: "1", job_name: A } as const
      const decided = decide(after(before), command, situation())
      const draft = Result.isSuccess(decided) ? decided.success[0] : undefined
      return draft?.event_type === "Cancelled" ? [draft.lane, draft.payload.reason] : []
    }
    assert.deepStrictEqual<unknown>(reasonIn([]), ["core:a", "no_such_job"])
    assert.deepStrictEqual<unknown>(reasonIn(spawned), ["core:a", "cancelled by the user"])
  })

  const stopping = (turn: TurnName, report?: string): Command => ({ type: "StopTurn", signal_id: "7", turn, report })
  const first = { inbox_id: InboxId.make("1") }
  const reported = [...spawned, calling(EDGE), { type: "Answer", text: "started" } as const]
  const stoppedJob = [...reported, { type: "StopCore", job_name: A, outcome: "error", summary: "it broke" } as const]
  const STOPS: ReadonlyArray<readonly [string, ReadonlyArray<Command>, Command, ReadonlyArray<string>]> = [
    ["before its model call", [userMessage("1")], stopping(first), ["Cancelled 1", "reply 1: Stopped."]],
    [
      "with calls that did not begin",
      [...asking, request(EDGE, c(2))],
      stopping(first),
      [`cancelled ${c(2)}`, "Cancelled 1", "reply 1: Stopped."]
    ],
    [
      "with an external call that may have taken effect",
      [...asking, request(EDGE, c(2), { effect: "external" }), grant(EDGE, c(2))],
      stopping(first),
      [`cancelled ${c(2)}`, "notice", "Cancelled 1", "reply 1: Stopped."]
    ],
    [
      "whose jobs go on",
      spawned,
      stopping(first),
      ["Cancelled 1", "reply 1: Stopped. The job a keeps running; /cancel a ends it."]
    ],
    ["whose answer is ready", [userMessage("1"), saying("hello")], stopping(first), ["Cancelled 0"]],
    [
      "whose empty reply is asked for again",
      [userMessage("1"), saying(" ")],
      stopping(first),
      ["Cancelled 1", "reply 1: Stopped."]
    ],
    ["whose reply was empty twice", [userMessage("1"), saying(""), saying("")], stopping(first), ["Cancelled 0"]],
    ["that was answered", reported, stopping(first), ["Cancelled 0"]],
    ["that has not begun", [], stopping(first), ["Cancelled 0"]],
    ["that is another one", [userMessage("2")], stopping(first), ["Cancelled 0"]],
    [
      "that reports, with what it would have told",
      stoppedJob,
      stopping({ report_rev: 9 }, "The job a ended."),
      ["Cancelled 9", "report 1: Stopped. The job a ended."]
    ],
    ["that reports on something else", stoppedJob, stopping({ report_rev: 8 }), ["Cancelled 0"]]
  ]
  for (const [what, before, command, expected] of STOPS)
    it(`stops a turn ${what} in one batch that folds`, () => {
      const log: Array<ChoirEvent> = []
      const state = after(before, {}, log)
      const decided = decide(state, command, situation({ find: (rev) => log[rev - 1] }))
      if (Result.isFailure(decided)) assert.fail(decided.failure.reason)
      const told = decided.success.map((draft) => {
        switch (draft.event_type) {
          case "ToolResultCommitted":
            return `${draft.payload.status} ${draft.payload.call_id}`
          case "Cancelled":
            return `Cancelled ${draft.payload.turn}`
          case "AgentMessage": {
            const { in_reply_to, kind, text } = draft.payload
            return kind === "notice" ? kind : `${kind} ${in_reply_to}: ${text}`
          }
          default:
            return draft.event_type
        }
      })
      assert.deepStrictEqual(told, expected)
      const folded = foldAll(state, placed(state, decided.success))
      if (Result.isFailure(folded)) assert.fail(folded.failure.reason)
      assert.deepStrictEqual(folded.success.signals, ["7"])
      assert.strictEqual(folded.success.ended, undefined)
      if (expected.length > 1)
        assert.deepStrictEqual([folded.success.edge.state, folded.success.edge.turn], ["EDGE_IDLE", undefined])
      // The same order again is refused, so that a redelivered signal ends in one event.
      assert.isTrue(Result.isFailure(foldAll(folded.success, placed(folded.success, decided.success))))
    })

  it("marks an instruction to an ended session as refused", () => {
    const ended = after([{ type: "End", by: "budget", reason: "r" }])
    const decided = decide(ended, { type: "SignalInject", source: "user", signal_id: "1", content: "c" }, situation())
    if (Result.isFailure(decided)) assert.fail(decided.failure.reason)
    const folded = foldAll(ended, placed(ended, decided.success))
    assert.deepStrictEqual(Result.isSuccess(folded) && folded.success.signals, ["1"])
  })

  it("ends an order to compact once, however many deltas there are", () => {
    const signal_id = "7"
    const deltas = [{ mode: "append" }, { mode: "append" }] as const
    const compacted: Command = { type: "Compact", lane: EDGE, deltas, boundary_rev: 0, signal_id }
    const log: Array<ChoirEvent> = []
    after([userMessage("1"), compacted], {}, log)
    const ended = log.flatMap((event) => (event.event_type === "CompactionCommitted" ? [event.payload.signal_id] : []))
    assert.deepStrictEqual(ended, [SignalId.make(signal_id), undefined])
  })

  it("says in the log what a call saw of files that a job writes (D26, R17)", () => {
    const log: Array<ChoirEvent> = []
    const dirty = { ...(grant(EDGE, c(2)) as Extract<Command, { type: "Grant" }>), dirty: true }
    const seen = result(EDGE, c(2)) as Extract<Command, { type: "Result" }>
    after([...asking, request(EDGE, c(2)), dirty, { ...seen, result: { ...seen.result, dirty: true } }], {}, log)
    const said = log.flatMap((event) =>
      event.event_type === "ToolCallCommitted" || event.event_type === "ToolResultCommitted"
        ? [event.payload.dirty]
        : []
    )
    assert.deepStrictEqual(said, [true, true])
  })

  it("tells the user of a call in doubt that may have left the machine, and of no other (R6)", () => {
    for (const [effect, told] of [
      ["external", 1],
      ["workspace", 0]
    ] as const) {
      const log: Array<ChoirEvent> = []
      const ended = { ...(result(EDGE, c(2)) as Extract<Command, { type: "Result" }>), in_doubt: true }
      after([...asking, request(EDGE, c(2), { effect }), grant(EDGE, c(2)), ended], { confirm_external: "never" }, log)
      assert.lengthOf(
        log.filter(({ event_type }) => event_type === "AgentMessage"),
        told,
        effect
      )
    }
  })

  it("ends a session with the open turn's one reply, or with a notice", () => {
    const end = { type: "End", by: "budget", reason: "r" } as const
    const kinds = (before: ReadonlyArray<Command>) => {
      const decided = decide(after(before), end, situation())
      const last = Result.isSuccess(decided) ? decided.success.at(-1) : undefined
      return last?.event_type === "AgentMessage"
        ? [last.payload.kind, last.payload.in_reply_to, last.payload.failed]
        : []
    }
    assert.deepStrictEqual<unknown>(kinds([]), ["notice", undefined, undefined])
    assert.deepStrictEqual<unknown>(kinds([userMessage("4")]), ["reply", "4", "final"])
  })

  it("names the session's limit that is reached", () => {
    const state = after(asking)
    const limit = (more: Partial<Situation["budgets"]>) => exhaustedLimit(state, agentConfig(more).budgets)
    assert.isUndefined(limit({ total_session_tokens: 43 }))
    assert.include(limit({ total_session_tokens: 42 }), "total_session_tokens")
    assert.isUndefined(limit({ max_cost_usd: 1 }))
    const costly = { ...state, spent: { ...state.spent, cost_usd: 1 } }
    assert.include(exhaustedLimit(costly, agentConfig({ max_cost_usd: 1 }).budgets), "max_cost_usd")
  })
})
