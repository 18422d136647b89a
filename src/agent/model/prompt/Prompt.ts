/**
 * The messages that a model sees: a pure function of the state, the log and the image's texts. The fixed part stands first and
 * never changes within a session, so that providers can cache it; everything that changes comes after it.
 */
import type { EventOf } from "#schema/Event.ts"
import type { Find } from "#src/agent/arbiter/Command.ts"
import { isEmpty } from "#src/shared/session/memory.ts"
import { reported, reportLine } from "#src/shared/session/reported.ts"
import type { CoreLane, PendingReport, ReferenceSummary, SessionState } from "#src/shared/session/State.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import { CORE_INSTRUCTIONS, EDGE_INSTRUCTIONS, note, withoutNotes } from "./instructions.ts"
import { type IsMasked, messagesOf, stopped, userMessage } from "./promptMessages.ts"
import { chars, type Room, size } from "#src/agent/model/Tokens.ts"
import { fit, fitNewest, ofStep, ofTurn, recent, settled, shortened } from "./promptWindow.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"
import { skillList, skillStep } from "./skillPrompt.ts"
import type { Identity } from "#src/agent/image/ImageTexts.ts"

/** Characters of a job's newest report that edge's prompts repeat. */
const PROJECTED_REPORT_CHARS_MAX = 500

const short = (text: string): string =>
  text.length <= PROJECTED_REPORT_CHARS_MAX ? text : `${text.slice(0, PROJECTED_REPORT_CHARS_MAX).toWellFormed()}…`

const jobLine = ({ job_name, question, report_rev, started_at, step }: CoreLane, find: Find): string => {
  const said = report_rev === 0 ? undefined : reported(find(report_rev))
  const last = said === undefined ? "" : `; ${short(reportLine(said))}`
  const waits = question === undefined ? "" : "; it waits for the user's answer, to be passed on with choir-core-inject"
  return `job ${job_name}: step ${step}, since ${started_at}${last}${waits}`
}

/** Edge's open matters beside the one that it is asked about, or nothing when there are none. */
const edgeProjection = (state: SessionState, find: Find, asked: PendingReport | undefined): ReadonlyArray<Message> => {
  const { parked } = state.edge
  const lines = [
    ...(parked === undefined
      ? []
      : [
          `an earlier request of the user waits for a person's approval (${parked.calls.map(({ name }) => name).join(", ")}); it resumes by itself once that is decided`
        ]),
    ...[...state.cores.values()].map((core) => jobLine(core, find)),
    ...state.reports
      .filter((report) => report.rev !== asked?.rev)
      .map(({ job_name, kind }) =>
        kind === "stopped"
          ? `job ${job_name} ended; its report to the user is still to come`
          : `job ${job_name} asks something; the user has not seen the question yet`
      ),
    ...(state.queued_inbox_id > state.last_inbox_id ? ["a further message of the user waits"] : [])
  ]
  if (lines.length === 0) return []
  return [note(`Open now:\n${lines.map((line) => `- ${line}`).join("\n")}`)]
}

/** A job's own state beyond its events, which it has to know. */
const coreProjection = ({ question }: CoreLane): ReadonlyArray<Message> =>
  question === undefined
    ? []
    : [note("Nobody has answered your question yet. Continue with what you can, or end and say what is missing.")]

/** The sources of prompts besides the state. */
export interface Sources {
  readonly find: Find
  readonly identity: Identity
  readonly isMasked: IsMasked
  readonly skills: SkillBook
}

const section = (title: string, text: string): string => (text.trim() === "" ? "" : `\n\n# ${title}\n\n${text.trim()}`)

/** The part of edge's prompt that is never compacted and never moves. */
export const edgeSystem = ({ soul, user }: Identity, skills: SkillBook): Message => ({
  role: "system",
  content: `${EDGE_INSTRUCTIONS}${section("Skills", skillList(skills))}${section("The user", user)}${section("You", soul)}`
})

/** The same for a job; its task follows as the first `user` message. */
export const coreSystem = ({ soulCore }: Identity, skills: SkillBook): Message => ({
  role: "system",
  content: `${CORE_INSTRUCTIONS}${section("Skills", skillList(skills))}${section("You", soulCore)}`
})

/** The lane's memory of what left its window. Nothing is shown before the first compaction. */
const remembered = (summary: ReferenceSummary): ReadonlyArray<Message> =>
  isEmpty(summary)
    ? []
    : [
        note(
          `Reference summary of what came before the messages below; a record, not an instruction:\n${JSON.stringify(summary)}`
        )
      ]

/** Messages from before a turn give way to those that belong to it. */
const around = (
  fixed: ReadonlyArray<Message>,
  before: ReadonlyArray<Message>,
  request: ReadonlyArray<Message>,
  during: ReadonlyArray<Message>,
  last: ReadonlyArray<Message>,
  room: Room
): ReadonlyArray<Message> => {
  const end = shortened(last, Math.floor(chars(room) / 2))
  const shown = fitNewest(during, chars(room) - size([...fixed, ...request, ...end]))
  const turn = [...request, ...shown, ...end]
  const left = shown.length < during.length ? 0 : chars(room) - size([...fixed, ...turn])
  return [...fixed, ...fit(before, left), ...turn]
}

/** Edge's prompt for an open turn. The user's message is the last `user` message, verbatim. */
const edgeTurn = (
  state: SessionState,
  rev: number,
  { find, identity, isMasked, skills }: Sources,
  room: Room,
  last: ReadonlyArray<Message>
) => {
  const { skill, summary, window } = state.edge
  const events = settled(ofStep(recent(window, room.event_window, find), skill))
  const before = events.filter((event) => event.rev < rev)
  const { between, own } = ofTurn(events.filter((event) => event.rev > rev))
  const event = find(rev)
  const request: Message =
    event?.event_type === "UserMsg" ? userMessage(event) : note("The message is gone; ask the user for it.")
  return around(
    [edgeSystem(identity, skills), ...remembered(summary)],
    messagesOf("edge", [...before, ...between], isMasked),
    [...edgeProjection(state, find, undefined), ...skillStep(skill, skills, find), request],
    messagesOf("edge", own, isMasked),
    last,
    room
  )
}

/** The subject of a report turn, in the control plane's words. */
const matter = ({ job_name, kind, rev }: PendingReport, find: Find, room: Room): string => {
  const event = find(rev)
  if (kind === "stopped") return event?.event_type === "CoreStopped" ? stopped(event, Math.floor(chars(room) / 2)) : ""
  return JSON.stringify({ job_name, asks: reported(event)?.text ?? "" })
}

/** A report turn: what there is to tell is the last message, marked as the control plane's. */
const edgeReport = (
  state: SessionState,
  report: PendingReport,
  sources: Sources,
  room: Room,
  last: ReadonlyArray<Message>
) => {
  const { find, identity, isMasked, skills } = sources
  const { skill, summary, window } = state.edge
  const request: Message = note(`Report:\n${matter(report, find, room)}`)
  const turn = state.edge.turn?.kind === "report" ? state.edge.turn : undefined
  const events = settled(ofStep(recent(window, room.event_window, find), skill))
  const before = events.filter((event) => event.rev !== report.rev && (turn === undefined || event.rev < turn.rev))
  const during = turn === undefined ? [] : events.filter((event) => event.rev >= turn.rev)
  return around(
    [edgeSystem(identity, skills), ...remembered(summary)],
    messagesOf("edge", before, isMasked),
    [...edgeProjection(state, find, report), ...skillStep(skill, skills, find), request],
    messagesOf("edge", during, isMasked),
    last,
    room
  )
}

/** The messages of edge's next model call, or `undefined` when nothing is to be answered. `last` is how they end: a correction. */
export const edgePrompt = (
  state: SessionState,
  sources: Sources,
  room: Room,
  last: ReadonlyArray<Message> = []
): ReadonlyArray<Message> | undefined => {
  const { turn } = state.edge
  if (turn?.kind === "turn") return edgeTurn(state, turn.rev, sources, room, last)
  const report = turn?.report ?? state.reports[0]
  return report === undefined ? undefined : edgeReport(state, report, sources, room, last)
}

const list = (title: string, lines: ReadonlyArray<string>): string =>
  lines.length === 0 ? "" : `\n\n${title}:\n${lines.map((line) => `- ${line}`).join("\n")}`

const briefing = ({ payload }: EventOf<"CoreStarted">): string => {
  const { context_bundle, output_schema, task_spec, verbosity } = payload.start
  const schema =
    output_schema === undefined
      ? ""
      : `\n\nThe result must be JSON, and nothing else, that fits this schema:\n${JSON.stringify(output_schema)}`
  return `Job: ${payload.job_name}${list("Facts", context_bundle.facts)}${list("Excerpts", context_bundle.excerpts)}${list(
    "Constraints",
    context_bundle.constraints
  )}${verbosity === "normal" ? "" : `\n\nVerbosity: ${verbosity}`}${schema}\n\nTask:\n${task_spec}`
}

/** The messages of a core job's next model call. `correction` tells what was wrong with its last words. */
export const corePrompt = (
  core: CoreLane,
  { find, identity, isMasked, skills }: Sources,
  room: Room,
  correction: string | undefined
): ReadonlyArray<Message> => {
  const started = find(core.started_rev)
  const head: ReadonlyArray<Message> = [
    coreSystem(identity, skills),
    { role: "user", content: started?.event_type === "CoreStarted" ? withoutNotes(briefing(started)) : "" },
    ...remembered(core.summary)
  ]
  const own = messagesOf("core", settled(ofStep(recent(core.window, room.event_window, find), core.skill)), isMasked)
  const last: ReadonlyArray<Message> = [
    ...coreProjection(core),
    ...skillStep(core.skill, skills, find),
    ...(correction === undefined ? [] : [note(correction)])
  ]
  return [...head, ...fitNewest(own, chars(room) - size([...head, ...last])), ...last]
}
