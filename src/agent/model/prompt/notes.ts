/**
 * Notes on what a lane has to know beside its events: other work, questions, the step of its skill. Each is due when it differs from the last
 * one on the same matter.
 */
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { writtenBy } from "#src/shared/text/writtenBy.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { shownName } from "#schema/Tool.ts"
import type { Find } from "#src/agent/arbiter/Command.ts"
import { reportOf, reportLine } from "#src/shared/session/jobReport.ts"
import { jobTriggers, messageTriggers, type Triggered } from "#src/agent/arbiter/skillTriggers.ts"
import type { ActiveSkill, CoreLane, PendingReport, SessionState } from "#src/shared/session/State.ts"
import type { SkillBook } from "#src/agent/image/SkillRegistry.ts"
import { type Reading, stopped } from "./promptMessages.ts"
import { SKILL_START } from "#src/agent/model/offeredTools.ts"
import { labelOf } from "#src/shared/text/foreignText.ts"
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import { skillStep } from "./skillPrompt.ts"
import type { Note, Transcript } from "./transcript.ts"

/** Characters of a job's newest report that edge reads. */
const TOLD_REPORT_CHARS_MAX = 500
/** Reports that are still to come which one prompt names. */
const TOLD_OWED_MAX = 20

const short = (text: string): string =>
  text.length <= TOLD_REPORT_CHARS_MAX ? text : `${firstPart(text, TOLD_REPORT_CHARS_MAX).toWellFormed()}…`

/** The user's own answer to a job, which edge did not pass on. */
const answeredNotes = ({ injection_rev, job_name }: CoreLane, find: Find): ReadonlyArray<Note> => {
  const event = injection_rev === 0 ? undefined : find(injection_rev)
  return event?.event_type === "InjectedInstruction" && event.payload.source === "user"
    ? [{ about: `answer ${injection_rev}`, text: `The user answered job ${job_name}: ${short(event.payload.content)}` }]
    : []
}

/** That a job began and ended its events say; between them its newest report, and whether it waits. */
const jobNotes = (core: CoreLane, find: Find): ReadonlyArray<Note> => {
  const { job_id, job_name, question, report_rev } = core
  const label = core.tainted ? ` [${labelOf(core.sources)}]` : ""
  const said = report_rev === 0 ? undefined : reportOf(find(report_rev))
  return [
    ...answeredNotes(core, find),
    ...(said === undefined
      ? []
      : [{ about: `job ${job_id}`, text: `Job ${job_name} reports${label}: ${short(reportLine(said))}` }]),
    ...(question === undefined
      ? []
      : [
          {
            about: `question ${question.rev}`,
            text: `Job ${job_name} waits for the user's answer, to be passed on with choir-core-inject.`
          }
        ])
  ]
}

const owedNote = ({ job_name, kind, rev }: PendingReport): Note => ({
  about: `owed ${rev}`,
  text:
    kind === "stopped"
      ? `Job ${job_name} ended; its report to the user is still to come.`
      : `Job ${job_name} asks something; the user has not seen the question yet.`
})

/** A skill that ended leaves a note as well: the last one named the tools that were allowed. */
const skillNotes = (
  skill: ActiveSkill | undefined,
  skills: SkillBook,
  { find, offered }: Reading,
  { told }: Transcript
): ReadonlyArray<Note> => {
  const text = skillStep(skill, skills, find, offered)
  if (text !== undefined) return [{ about: "skill", text }]
  return (told.get("skill") ?? "") === "" ? [] : [{ about: "skill", text: SKILL_OVER }]
}

const SKILL_OVER = "No skill is running: all your tools are allowed again."

/** The subject of a report turn. The end of a job is above, as the event that it is, unless it left the window. */
const matterOf = (
  { job_name, kind, rev }: PendingReport,
  find: Find,
  window: ReadonlyArray<number>,
  core: CoreLane | undefined
): string => {
  const event = find(rev)
  if (kind === "question") {
    const untrusted = core?.tainted === true ? { untrusted: labelOf(core.sources) } : {}
    return JSON.stringify({ job_name, ...untrusted, asks: reportOf(event)?.text ?? "" })
  }
  if (event?.event_type !== "CoreStopped") return JSON.stringify({ job_name })
  if (!window.includes(rev)) return stopped(event)
  return `${JSON.stringify({ job_name, outcome: event.payload.outcome })}\nIts outcome is above.`
}

const turnNotes = (state: SessionState, find: Find, { asked_rev }: Transcript): ReadonlyArray<Note> => {
  const { turn, window } = state.edge
  if (turn?.kind !== "turn") {
    const report = turn?.report ?? state.reports[0]
    return report === undefined
      ? []
      : [
          {
            about: `report ${report.rev}`,
            text: `Report:\n${matterOf(report, find, window, state.cores.get(report.job_name))}`
          }
        ]
  }
  if (asked_rev === turn.rev) return []
  const event = find(turn.rev)
  const text = event?.event_type === "UserMsg" ? writtenBy(event.payload) : "(the message is gone; ask the user for it)"
  return [{ about: `turn ${turn.rev}`, text: `Still to be answered, the user's message:\n${text}` }]
}

/** Skills that one note names. */
const SUGGESTED_MAX = 3

/** The skills that words call for, in one line; the lane decides whether one fits. */
const suggestion = (about: string, found: ReadonlyArray<Triggered>): ReadonlyArray<Note> => {
  const names = [...new Set(found.map(({ skill }) => skill))].slice(0, SUGGESTED_MAX)
  return names.length === 0
    ? []
    : [
        {
          about: `skills for ${about}`,
          text: `This matches ${names.length === 1 ? "the skill" : "the skills"} ${names.join(", ")}: begin it with choir-skill-start if it fits.`
        }
      ]
}

/** The words of an event never change, so that they are searched once and not for each call. */
const suggestedBy = weakMemoize(
  (_: ChoirEvent, __: SkillBook, search: () => ReadonlyArray<Note>) => search(),
  ([before], [skills]) => before === skills
)

/** A skill whose trigger begins it at once is only suggested where the words come from outside. */
const suggestedToEdge = ({ edge }: SessionState, skills: SkillBook, find: Find): ReadonlyArray<Note> => {
  const event = edge.turn?.kind === "turn" && edge.skill === undefined ? find(edge.turn.rev) : undefined
  if (event?.event_type !== "UserMsg") return []
  const { forwarded, text } = event.payload
  return suggestedBy(event, skills, () => {
    const found = messageTriggers(skills, text)
    return suggestion(
      String(event.rev),
      found.filter(({ trigger }) => forwarded === true || trigger.mode === "suggest")
    )
  })
}

const suggestedToJob = (core: CoreLane, skills: SkillBook, { find, offered }: Reading): ReadonlyArray<Note> => {
  if (!offered.has(SKILL_START)) return []
  if (core.skill !== undefined || core.skill_end_rev > 0 || core.in_skill !== undefined) return []
  const event = find(core.started_rev)
  if (event?.event_type !== "CoreStarted") return []
  const { start } = event.payload
  const refs = start.skill_refs
  return suggestedBy(event, skills, () =>
    suggestion(
      core.job_id,
      jobTriggers(skills, start).filter(({ skill }) => refs === undefined || refs.includes(skill))
    )
  )
}

/** Everything that edge should know before its next call. */
export const edgeNotes = (
  state: SessionState,
  skills: SkillBook,
  reading: Reading,
  transcript: Transcript
): ReadonlyArray<Note> => {
  const { find } = reading
  const { parked, skill, turn } = state.edge
  const asked = turn?.kind === "report" ? turn.report : turn === undefined ? state.reports[0] : undefined
  const isWaiting = state.queued_inbox_id > state.last_inbox_id
  return [
    ...(parked === undefined
      ? []
      : [
          {
            about: `parked ${parked.output_rev}`,
            text: `An earlier request of the user waits for a person's approval (${parked.calls.map(({ name }) => shownName(name)).join(", ")}); it resumes by itself once that is decided.`
          }
        ]),
    ...[...state.cores.values()].flatMap((core) => jobNotes(core, find)),
    ...state.reports
      .filter(({ rev }) => rev !== asked?.rev)
      .slice(0, TOLD_OWED_MAX)
      .map(owedNote),
    ...(isWaiting
      ? [{ about: `queue ${state.queued_inbox_id}`, text: "Another message from the user is waiting." }]
      : []),
    ...skillNotes(skill, skills, reading, transcript),
    ...suggestedToEdge(state, skills, find),
    ...turnNotes(state, find, transcript)
  ]
}

/** Everything that a job should know before its next call. */
export const coreNotes = (
  core: CoreLane,
  skills: SkillBook,
  reading: Reading,
  transcript: Transcript
): ReadonlyArray<Note> => {
  const { question, skill } = core
  return [
    ...suggestedToJob(core, skills, reading),
    ...(question === undefined
      ? []
      : [
          {
            about: `question ${question.rev}`,
            text: "Nobody has answered your question yet. Continue with what you can, or end and say what is missing."
          }
        ]),
    ...skillNotes(skill, skills, reading, transcript)
  ]
}
