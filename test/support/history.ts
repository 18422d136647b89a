/** Legal histories from seeds, made by driving the real decisions with random commands. */
import { GRANTS_DEFAULT } from "#schema/Capability.ts"
import { Result } from "effect"
import { type ChoirEvent, EVENT_VERSION, type EventDraft, type MemoryDelta } from "#schema/Event.ts"
import { CallId, EDGE, InboxId, JobName, type LaneId, ResourceName, Sha256 } from "#schema/Ids.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import type { Command, Situation } from "#src/agent/arbiter/Command.ts"
import { compactionLimit } from "#src/shared/session/compactWindow.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { OpenCall, SessionState } from "#src/shared/session/State.ts"
import { SESSION } from "./testing/MemoryControlPlane.ts"
import { agentConfig } from "./testing/TestAgent.ts"

/** A generator of numbers in [0, 1) that a seed decides (mulberry32). */
export const makeRandom = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
type Random = ReturnType<typeof makeRandom>

export const pick = <A>(random: Random, from: ReadonlyArray<A>): A => from[Math.floor(random() * from.length)] as A

export const situation = (more: Partial<Situation> = {}): Situation => ({
  session_id: SESSION,
  epoch: 1,
  budgets: agentConfig().budgets,
  confirm_external: "never",
  grants: GRANTS_DEFAULT,
  unbound: new Map(),
  skills: new Map(),
  profiles: new Map(),
  pools: agentConfig().jobs.pools,
  workspace_label: {},
  histories: {},
  find: () => undefined,
  ...more
})

/** A user's message as edge takes it. */
export const userMessage = (inbox_id: string, text = "hi"): Command => ({
  type: "UserMessage",
  message: {
    type: "UserMessage",
    inbox_id: InboxId.make(inbox_id),
    dm: ResourceName.make("me"),
    text,
    attachments: [],
    created_at: ""
  }
})

/** Gives drafts their places in a history, a second apart. */
export const placed = (state: SessionState, drafts: ReadonlyArray<EventDraft>): ReadonlyArray<ChoirEvent> =>
  drafts.map((draft, index) => {
    const rev = state.rev + 1 + index
    const salt = rev.toString(16).padStart(32, "0")
    return { v: EVENT_VERSION, rev, ...draft, created_at: new Date(rev * 1000).toISOString(), salt }
  })

const TEXTS = ["", "hi", "é 漢字 🙂", '{"a":1}', "line\nline", "a".repeat(300)]
const SPAWN = "choir-core-spawn"
const INJECT = "choir-core-inject"
const CANCEL = "choir-core-cancel"

const output = (random: Random, lane: LaneId, purpose: "turn" | "report"): Command => {
  const usage = { input_tokens: Math.floor(random() * 1000), output_tokens: Math.floor(random() * 100), cost_usd: 0.25 }
  const base = { purpose, model: "small", finish_reason: "stop", usage, latency_ms: 1 }
  const kind = random()
  if (kind < 0.1)
    return { type: "Output", lane, output: { ...base, tool_calls: [], error: { kind: "http", message: "500" } } }
  if (kind < 0.4) return { type: "Output", lane, output: { ...base, tool_calls: [], text: pick(random, TEXTS) } }
  const names = lane === EDGE ? ["mem-read", "mem-write", "out-send", SPAWN, INJECT, CANCEL] : ["mem-read", "out-send"]
  const tool_calls = Array.from({ length: 1 + Math.floor(random() * 3) }, () => ({
    name: pick(random, names),
    input: { n: Math.floor(random() * 2) }
  }))
  return { type: "Output", lane, output: { ...base, tool_calls } }
}

const JOBS = ["a", "b", "c"].map((name) => JobName.make(name))

const advance = (random: Random, lane: LaneId, call: OpenCall): Command => {
  const { call_id, name } = call
  const result = (status: "success" | "error" | "rejected" | "cancelled"): Command => ({
    type: "Result",
    lane,
    call_id,
    result: {
      status,
      summary: pick(random, TEXTS),
      duration_ms: 3,
      ...(random() < 0.2 ? { untrusted: true, sources: ["web:a.example"] as const } : {}),
      ...(random() < 0.2 ? { reads: [{ path: "a", sha256: "0".repeat(64) }] } : {})
    }
  })
  const effect = name === "mem-read" ? "none" : name === "out-send" ? "external" : "workspace"
  if (call.stage === "proposed")
    return random() < 0.1
      ? result("rejected")
      : {
          type: "Request",
          lane,
          call_id,
          tool: name,
          input: {},
          effect,
          locks: [],
          allowed_tools: undefined,
          capabilities: [],
          beside_jobs: true
        }
  if (call.stage === "committed") return random() < 0.9 ? result("success") : result("error")
  const job_name = pick(random, JOBS)
  if (name === SPAWN)
    return {
      type: "Spawn",
      call_id,
      model: "small",
      tools: [],
      start: {
        job_name,
        task_spec: "do it",
        context_bundle: { facts: [], excerpts: [], constraints: [], handed: HANDED },
        tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
        verbosity: "normal"
      }
    }
  if (name === INJECT) return { type: "InjectCore", call_id, job_name, content: "more" }
  if (name === CANCEL) return { type: "CancelCore", call_id, job_name, reason: "enough" }
  return { type: "Grant", lane, call_id, locks: [], dirty: random() < 0.1 }
}

const HANDED = [
  {
    call_id: CallId.make("read"),
    tool: "read a.ts",
    text: "1\ta",
    reads: [{ path: "a.ts", sha256: Sha256.make("a".repeat(64)) }]
  }
]

const delta = (random: Random): MemoryDelta => ({
  mode: pick(random, ["append", "overwrite"]),
  ...(random() < 0.7 ? { summary_update: pick(random, TEXTS) } : {}),
  ...(random() < 0.3 ? { add_fact: { key: pick(random, TEXTS), value: pick(random, TEXTS) } } : {}),
  ...(random() < 0.2 ? { remove_fact: { key: pick(random, TEXTS), value: "" } } : {}),
  ...(random() < 0.3 ? { add_references: [SESSION, hex(random)], remove_references: [hex(random)] } : {})
})

const hex = (random: Random) => pick(random, ["a", "b", "c"]).repeat(64)

/** Of a lane's window as much as may go, or an order with nothing to do. */
const compaction = (random: Random, state: SessionState, signal_id: string): Command => {
  const lane = pick(random, [EDGE, ...[...state.cores.values()].map((core) => core.lane)])
  const memory = laneOf(state, lane)
  const limit = compactionLimit(state, lane)
  const deltas = Array.from({ length: Math.floor(random() * 3) }, () => delta(random))
  const boundary = pick(
    random,
    [0, ...(memory?.window ?? [])].filter((rev) => rev <= limit)
  )
  const boundary_rev = deltas.length === 0 ? 0 : Math.max(boundary, memory?.boundary ?? 0)
  return {
    type: "Compact",
    lane,
    deltas,
    boundary_rev,
    ...(deltas.length === 0 || random() < 0.5 ? { signal_id } : {})
  }
}

const candidates = (random: Random, state: SessionState): ReadonlyArray<Command> => {
  const commands: Array<Command> = []
  const signal_id = String(1000 + state.rev)
  const { edge } = state
  if (random() < 0.05) commands.push({ type: "Notice", lane: EDGE, text: "wait" }, compaction(random, state, signal_id))
  if (random() < 0.05) commands.push({ type: "SignalInject", source: "user", signal_id, content: "also this" })
  if (random() < 0.05) commands.push({ type: "SignalCancel", signal_id, job_name: pick(random, JOBS) })
  if (edge.state === "EDGE_IDLE") {
    const inbox_id = InboxId.make(String(state.last_inbox_id + 1n + BigInt(Math.floor(random() * 3))))
    commands.push(userMessage(inbox_id, pick(random, TEXTS)))
    if (state.reports.length > 0) commands.push(output(random, EDGE, "report"), { type: "Answer", text: "reported" })
  }
  if (edge.state === "EDGE_CONTEXT_READY" || edge.state === "EDGE_REASONING")
    commands.push(output(random, EDGE, edge.turn?.kind ?? "turn"))
  if (edge.state === "EDGE_FINALIZING") commands.push({ type: "Answer", text: pick(random, TEXTS) })
  for (const lane of [EDGE, ...[...state.cores.values()].map((core) => core.lane)])
    for (const call of laneOf(state, lane)?.calls ?? []) commands.push(advance(random, lane, call))
  for (const { calls, job_name, lane, state: at } of state.cores.values()) {
    if (calls.length > 0) continue
    commands.push(output(random, lane, "turn"))
    const outcome = at === "CORE_REASONING" ? pick(random, ["completed", "error", "stuck"] as const) : "budget"
    if (random() < 0.5) commands.push({ type: "StopCore", job_name, outcome, summary: "over" })
  }
  return commands
}

interface History {
  /** Each commit's events. */
  readonly batches: ReadonlyArray<ReadonlyArray<ChoirEvent>>
  readonly events: ReadonlyArray<ChoirEvent>
  readonly state: SessionState
}

/** A legal history of at least this many events. What a decision refuses is proposed to a model as a rejected call. */
export const makeHistory = (seed: number, length: number, budgets = agentConfig().budgets): History => {
  const random = makeRandom(seed)
  const batches: Array<ReadonlyArray<ChoirEvent>> = []
  let state = initialState
  let idle = 0
  while (state.rev < length) {
    const open = candidates(random, state)
    if (open.length === 0 && ++idle > 100) throw new Error(`seed ${seed}: nothing can happen in ${state.edge.state}`)
    if (open.length === 0) continue
    const command = pick(random, open)
    const decided = decide(state, command, situation({ budgets }))
    const drafts = Result.isSuccess(decided) ? decided.success : refused(command, decided.failure.reason)
    const events = placed(state, drafts)
    const folded = foldAll(state, events)
    if (Result.isFailure(folded))
      throw new Error(`seed ${seed}: ${folded.failure.rev} ${folded.failure.reason} after ${command.type}`)
    if (events.length > 0) batches.push(events)
    state = folded.success
  }
  return { batches, events: batches.flat(), state }
}

const refused = (command: Command, summary: string): ReadonlyArray<EventDraft> =>
  "call_id" in command
    ? [
        {
          event_type: "ToolResultCommitted",
          lane: "lane" in command ? command.lane : EDGE,
          payload: { call_id: command.call_id, status: "rejected", summary, duration_ms: 0 }
        }
      ]
    : []
