/** Events of an agent that wants its state to be as large as it can be made: each is legal, and all that it may say is as long as it may be. */
import type { EventDraft } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { LaneMemory, SessionState } from "#src/shared/session/State.ts"
import { pick } from "../../support/history.ts"

type Random = () => number

const draft = (event_type: string, lane: string, payload: object) => ({ event_type, lane, payload }) as EventDraft

/** Characters that take one, three and six bytes in JSON. */
export const CHARACTERS = ["a", "漢", "\u0001"]
const USAGE = { input_tokens: 1, output_tokens: 1 }
const LONG_NAME_CHARS = 128
const CALLS = 128

/** Texts of one character each, which differ by their number at the end. */
export const textsOf = (character: string) => {
  let made = 0
  return (chars: number): string => `${character.repeat(Math.max(0, chars - 6))}${++made % 1_000_000}`
}
type Texts = ReturnType<typeof textsOf>

const sha256 = "f".repeat(64)
const sourcesOf = (text: number) =>
  Array.from({ length: 32 }, (_, index) => `web:${"x".repeat(190)}${text % 1000}-${index}`)

export const message = (state: SessionState): EventDraft =>
  draft("UserMsg", EDGE, { inbox_id: `${state.last_inbox_id + 1n}`, dm: "me", text: "hi", attachments: [] })

export const startedJob = (name: string, text: Texts, more: object = {}): EventDraft =>
  draft("CoreStarted", `core:${name}`, {
    job_id: name,
    job_name: name,
    start: {
      job_id: name,
      job_name: name,
      task_spec: "t",
      context_bundle: {
        facts: [],
        excerpts: [],
        constraints: [],
        handed: [
          {
            call_id: "h",
            tool: "read",
            text: "",
            reads: Array.from({ length: 300 }, () => ({ path: text(60), sha256 }))
          }
        ]
      },
      tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
      verbosity: "normal"
    },
    model: text(LONG_NAME_CHARS),
    budgets: {
      max_steps: Number.MAX_SAFE_INTEGER,
      max_tool_calls: Number.MAX_SAFE_INTEGER,
      wall_time_ms: Number.MAX_SAFE_INTEGER,
      max_injections: Number.MAX_SAFE_INTEGER,
      max_tokens: Number.MAX_SAFE_INTEGER
    },
    in_skill: text(LONG_NAME_CHARS),
    ...more
  })

export const stoppedJob = (name: string, job_id: string): EventDraft =>
  draft("CoreStopped", `core:${name}`, {
    job_id,
    job_name: name,
    outcome: "error",
    summary: "s",
    usage: USAGE,
    resumable: { left_ms: 1 }
  })

export const output = (lane: string, ids: ReadonlyArray<string>, text: Texts, purpose = "turn"): EventDraft =>
  draft("ModelOutput", lane, {
    call_id: "o",
    purpose,
    model: "m",
    tool_calls: ids.map((call_id) => ({ call_id, name: text(600), input: {} })),
    finish_reason: "tool_calls",
    usage: USAGE,
    latency_ms: 1,
    prompt: { rev: 0, environment: text(20_000) }
  })

export const requested = (lane: string, call_id: string, text: Texts, confirm = true): EventDraft =>
  draft("ToolCallRequested", lane, {
    call_id,
    tool: text(LONG_NAME_CHARS),
    input: {},
    effect: "workspace",
    locks: [],
    ...(confirm ? { confirm: "new_recipients" } : {})
  })

export const committedCall = (lane: string, call_id: string): EventDraft =>
  draft("ToolCallCommitted", lane, { call_id, locks: [], approval_id: "1" })

export const result = (lane: string, call_id: string, text: Texts, n: number, writes = 120): EventDraft =>
  draft("ToolResultCommitted", lane, {
    call_id,
    status: "success",
    summary: `${n}`,
    duration_ms: 1,
    untrusted: true,
    sources: sourcesOf(n),
    reads: Array.from({ length: 300 }, () => ({ path: text(60), sha256 })),
    writes: Array.from({ length: writes }, () => ({ path: text(256), after: sha256 }))
  })

/** A job that is cancelled, for a reason of its own length. */
export const cancelledJob = (lane: string, text: Texts, chars: number): EventDraft =>
  draft("Cancelled", lane, { target: lane, by: "edge", reason: text(chars) })

export const skillBegun = (lane: string, text: Texts): EventDraft =>
  draft("SkillTransitionCommitted", lane, {
    skill: text(LONG_NAME_CHARS),
    from: "",
    to: text(LONG_NAME_CHARS),
    on: "x",
    step: 0,
    writes: Object.fromEntries(Array.from({ length: 64 }, () => [text(LONG_NAME_CHARS), 1]))
  })

export const compaction = (
  lane: string,
  { boundary }: LaneMemory,
  text: Texts,
  random: Random,
  fact = 600
): EventDraft =>
  draft("CompactionCommitted", lane, {
    delta: {
      mode: "overwrite",
      summary_update: text(20_000),
      add_fact: { key: text(fact), value: text(fact), source_event: sha256, pinned: random() < 0.3 },
      add_references: Array.from({ length: 70 }, () =>
        Array.from({ length: 64 }, () => Math.floor(random() * 16).toString(16)).join("")
      )
    },
    boundary_rev: boundary,
    words: Array.from({ length: 64 }, () => text(375))
  })

const callsOf = (random: Random, n: number): ReadonlyArray<string> =>
  Array.from({ length: pick(random, [1, 1, 8, CALLS]) }, (_, index) => `c${n}-${index}`)

/** What such an agent may send next; what does not fit the state is refused. */
export const hostileDraft = (random: Random, state: SessionState, text: Texts, n: number): EventDraft => {
  if (state.edge.turn === undefined) return message(state)
  const lane = pick(random, [EDGE, ...[...state.cores.values()].map((core) => core.lane)])
  const memory = laneOf(state, lane) ?? state.edge
  const kind = Math.floor(random() * 12)
  if (kind < 2) return startedJob(`${"j".repeat(30)}${n}`, text)
  if (kind === 2 && "job_id" in memory && random() < 0.3) return stoppedJob(memory.job_name, memory.job_id)
  if (kind === 3 && lane !== EDGE) return cancelledJob(lane, text, 100_000)
  if (kind === 4) return skillBegun(lane, text)
  if (kind < 8) return compaction(lane, memory, text, random)
  const open = memory.calls[Math.floor(random() * memory.calls.length)]
  if (open === undefined) return output(lane, callsOf(random, n), text)
  if (open.stage === "proposed") return requested(lane, open.call_id, text, random() < 0.7)
  return open.stage === "requested" ? committedCall(lane, open.call_id) : result(lane, open.call_id, text, n)
}
