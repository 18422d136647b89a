/** The report on a skill that was tried, from the events of its session. Pure. */
import {
  REPORT_FILES_MAX,
  REPORT_LINES_MAX,
  REPORT_OUTPUT_CHARS_MAX,
  REPORT_TEXT_CHARS_MAX,
  type ReportLine,
  type TriedSkill
} from "#schema/ContainedTrial.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { type CallId, coreLane } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import { JOB } from "./Trial.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of an input as JSON in one line. */
const INPUT_CHARS_MAX = 300

const cut = (text: string, chars = REPORT_TEXT_CHARS_MAX): string => firstPart(text, chars)

const phaseOf = ({
  asserted,
  confidence,
  ended,
  judged,
  on,
  reason,
  to
}: EventOf<"SkillTransitionCommitted">["payload"]): ReportLine => ({
  type: "phase",
  state: to,
  on,
  ...(ended === undefined ? {} : { ended }),
  ...(reason === undefined ? {} : { reason: cut(reason) }),
  ...(confidence === undefined ? {} : { confidence }),
  ...(asserted === undefined
    ? {}
    : {
        checks: asserted.map(({ detail, ok, statement }) => ({ statement: cut(statement), ok, detail: cut(detail) }))
      }),
  ...(judged === undefined ? {} : { verdict: { score: judged.score, model: judged.model } })
})

interface Proposed {
  readonly name: string
  readonly input: unknown
}

const callOf = (
  { call_id, sources, status, summary }: EventOf<"ToolResultCommitted">["payload"],
  proposed: Proposed | undefined,
  held_back: boolean
): ReportLine => ({
  type: "call",
  tool: proposed?.name.replaceAll("-", ".") ?? call_id,
  input: cut(JSON.stringify(proposed?.input ?? {}), INPUT_CHARS_MAX),
  status,
  summary: cut(summary),
  held_back,
  ...(sources === undefined || sources.length === 0 ? {} : { sources })
})

/** Transitions are lines of their own. */
const isMove = ({ name }: Proposed): boolean => name === "choir-skill-transition"

const linesOf = (
  events: ReadonlyArray<ChoirEvent>,
  isHeld: (call_id: CallId) => boolean
): ReadonlyArray<ReportLine> => {
  const proposed = new Map<CallId, Proposed>()
  return events.flatMap((event): ReadonlyArray<ReportLine> => {
    if (event.event_type === "ModelOutput")
      for (const call of event.payload.tool_calls) proposed.set(call.call_id, call)
    if (event.event_type === "SkillTransitionCommitted") return [phaseOf(event.payload)]
    if (event.event_type !== "ToolResultCommitted") return []
    const { call_id, status } = event.payload
    const call = proposed.get(call_id)
    if (call !== undefined && isMove(call) && status === "success") return []
    return [callOf(event.payload, call, isHeld(call_id))]
  })
}

interface Told {
  readonly skill: SkillName
  readonly events: ReadonlyArray<ChoirEvent>
  /** The session's limit that ended it. */
  readonly limit: string | undefined
  readonly duration_ms: number
  isHeld(call_id: CallId): boolean
}

export const skillReport = ({ duration_ms, events, isHeld, limit, skill }: Told): TriedSkill => {
  const own = events.filter(({ lane }) => lane === coreLane(JOB))
  const stopped = events.find((event): event is EventOf<"CoreStopped"> => event.event_type === "CoreStopped")
  // A job that never began says why in the result of its spawn.
  const refused = events.find(
    (event): event is EventOf<"ToolResultCommitted"> =>
      event.event_type === "ToolResultCommitted" && event.lane !== coreLane(JOB)
  )
  const outputs = own.flatMap((event) => (event.event_type === "ModelOutput" ? [event.payload] : []))
  const asked = outputs.filter(({ model }) => !model.startsWith("skill:"))
  const cost = asked.reduce((sum, { usage }) => sum + (usage.cost_usd ?? 0), 0)
  const lines = linesOf(own, isHeld)
  const changed = new Set(
    own.flatMap((event) =>
      event.event_type === "ToolResultCommitted" ? (event.payload.writes ?? []).map(({ path }) => path) : []
    )
  )
  const result = stopped?.payload.result
  const fits = result !== undefined && JSON.stringify(result).length <= REPORT_OUTPUT_CHARS_MAX
  return {
    skill,
    outcome: limit === undefined ? (stopped?.payload.outcome ?? "error") : "budget",
    summary: cut(limit ?? stopped?.payload.summary ?? refused?.payload.summary ?? "the skill did not begin"),
    ...(fits ? { output: result } : {}),
    lines: lines.slice(0, REPORT_LINES_MAX),
    left_out: Math.max(0, lines.length - REPORT_LINES_MAX),
    model_calls: asked.length,
    judge_calls: asked.filter(({ purpose }) => purpose === "judge").length,
    tokens: asked.reduce((sum, { usage }) => sum + usage.input_tokens + usage.output_tokens, 0),
    ...(cost > 0 ? { cost_usd: cost } : {}),
    changed: [...changed].slice(0, REPORT_FILES_MAX),
    duration_ms: Math.round(duration_ms)
  }
}
