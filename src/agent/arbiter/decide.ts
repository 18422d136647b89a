/**
 * The decision on a command: a pure function from a state and a command to events or a refusal. The arbiter commits what it accepts; no
 * other code makes an event (invariant 9). Rules that depend on what else runs are checked here, at the last moment (D30).
 */
import { Result } from "effect"
import type { EventDraft, PayloadOf } from "#schema/Event.ts"
import { coreLane, EDGE, Rev, SignalId } from "#schema/Ids.ts"
import type { UserMessage } from "#schema/Signal.ts"
import { endsLabel } from "#src/shared/session/labels.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { withSources } from "#src/shared/session/sources.ts"
import { writersOf } from "#src/shared/session/sourceWords.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { nextReport } from "#src/shared/session/turns.ts"
import { askedBy, endOfCall, grant, output, request } from "./decideCalls.ts"
import {
  cancelCore,
  factsOf,
  injectCore,
  resumeCore,
  signalCancel,
  signalSkill,
  spawn,
  stopCore,
  tellJob
} from "./decideCores.ts"
import { triggered } from "./decideTriggers.ts"
import { messageTriggers } from "./skillTriggers.ts"
import { continued, end, refuseNewSession } from "./decideEnd.ts"
import { failSkill } from "./decideSkills.ts"
import { nearLimit } from "./nearLimit.ts"
import { keptRevs } from "./keptRevs.ts"
import { moveSkill } from "./moveSkill.ts"
import { startSkill } from "./startSkill.ts"
import { stopTurn } from "./decideStop.ts"
import { accept, type Decision, type Command, reject, type Situation } from "./Command.ts"

/** The text that replaces a message that no event can hold. */
const LEFT_OUT = "[a message that was too large to be read]"

const signalInject = (state: SessionState, command: Extract<Command, { type: "SignalInject" }>): Decision => {
  const { content, job_name, signal_id, source } = command
  const target = job_name === undefined ? EDGE : coreLane(job_name)
  const gone = job_name === undefined || state.cores.has(job_name) ? undefined : `the job ${job_name} has ended`
  const why = state.ended === undefined ? (gone ?? command.refused) : "the session has ended"
  const refused = why === undefined ? {} : { refused: why }
  const payload = { signal_id, target, source, content, ...refused } as PayloadOf<"InjectedInstruction">
  return accept({ event_type: "InjectedInstruction", lane: target, payload })
}

const answer = (
  state: SessionState,
  { failed, text, voice }: Extract<Command, { type: "Answer" }>,
  { find }: Situation
): Decision => {
  const { turn } = state.edge
  if (turn?.kind === "turn")
    return accept({
      event_type: "AgentMessage",
      lane: EDGE,
      payload: {
        kind: "reply",
        text,
        in_reply_to: turn.inbox_id,
        ...(failed === undefined ? {} : { failed }),
        ...voice
      }
    })
  const report = turn?.report ?? state.reports[0]
  if (report === undefined) return reject("no turn is open and no job is to be reported")
  const in_reply_to = report.inbox_id === undefined ? {} : { in_reply_to: report.inbox_id }
  const facts = factsOf(report, find)
  return accept({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "report", text, ...in_reply_to, ...facts } })
}

/** Said once a message, however often it is delivered. */
const queued = (state: SessionState, { inbox_id, position }: Extract<Command, { type: "Queued" }>): Decision => {
  const id = BigInt(inbox_id)
  if (id <= state.last_inbox_id || id <= state.queued_inbox_id) return reject("its sender knows already")
  const text = `I am still working; your message is number ${position} in the queue.`
  return accept({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text, in_reply_to: inbox_id } })
}

/** A recording whose words are in the text is the person's own; any other file may be somebody else's. */
const bringsFiles = (attachments: UserMessage["attachments"]): boolean =>
  attachments.some(({ transcribed }) => transcribed === undefined)

/** The cost of the transcriptions among attachments. */
const heardFor = (attachments: UserMessage["attachments"]) => {
  const cost_usd = attachments.reduce((sum, { transcribed }) => sum + (transcribed?.cost_usd ?? 0), 0)
  return cost_usd > 0 ? { cost_usd } : {}
}

const userMessage = (
  state: SessionState,
  { attachments, carried, dm, forwarded, inbox_id, speak, text, writer }: UserMessage
): Decision =>
  BigInt(inbox_id) <= state.last_inbox_id
    ? reject("the message was taken before")
    : accept({
        event_type: "UserMsg",
        lane: EDGE,
        payload: {
          inbox_id,
          dm,
          text,
          attachments,
          ...(forwarded === true ? { forwarded, writers: withSources([], writersOf(text)) } : {}),
          ...(bringsFiles(attachments) ? { received: true } : {}),
          ...(speak === true ? { speak } : {}),
          ...(writer === undefined ? {} : { writer }),
          ...(carried === true ? { carried } : {}),
          // What the session before paid for it counted there.
          ...(carried === true ? {} : heardFor(attachments))
        }
      })

/** The skill that a message begins on edge, in the batch of the message. Forwarded words begin none, nor do any beside other work of edge. */
const byMessage = (
  { edge }: SessionState,
  { forwarded, text }: UserMessage,
  situation: Situation
): ReadonlyArray<EventDraft> => {
  const isFree = edge.turn === undefined && edge.parked === undefined && edge.skill === undefined
  const begun = isFree
    ? triggered(EDGE, messageTriggers(situation.skills, text), text, forwarded !== true, situation)
    : undefined
  return begun === undefined ? [] : [begun]
}

/** The message's place in the log without its content, and the reply that says so. */
const refuseMessage = (
  state: SessionState,
  { message, reason }: Extract<Command, { type: "RefuseMessage" }>
): Decision => {
  const { inbox_id } = message
  const text = `I could not read your message: ${reason}. Send it in parts, or put it in a file in the workspace and name the file.`
  const told: EventDraft = {
    event_type: "AgentMessage",
    lane: EDGE,
    payload: { kind: "reply", text, in_reply_to: inbox_id, failed: "final" }
  }
  return Result.map(userMessage(state, { ...message, text: LEFT_OUT, attachments: [] }), (taken) => [...taken, told])
}

/** All of a summary's changes are one batch, so that no prompt shows half of them. */
const compact = (
  state: SessionState,
  { boundary_rev, deltas, is_awaited = false, lane, signal_id, split, words }: Extract<Command, { type: "Compact" }>,
  { find }: Situation
): Decision => {
  const signal = signal_id === undefined ? {} : { signal_id: SignalId.make(signal_id) }
  const said = words === undefined ? {} : { words }
  const memory = laneOf(state, lane)
  const kept = memory === undefined ? [] : keptRevs(memory, boundary_rev, find)
  const changes = deltas.length === 0 ? [{ mode: "append" } as const] : deltas
  const isParted = split !== undefined && lane === EDGE && state.edge.label !== undefined
  const isBetweenCalls = state.edge.turn === undefined || is_awaited
  const ends = split?.rest === undefined && isBetweenCalls && endsLabel(state, boundary_rev, kept)
  const last = ends ? { ended: true } : split
  return accept(
    ...changes.map((delta, index): EventDraft => ({
      event_type: "CompactionCommitted",
      lane,
      payload: {
        delta,
        boundary_rev,
        ...(kept.length === 0 ? {} : { kept: kept.map((rev) => Rev.make(rev)) }),
        ...(isParted ? { split: index === changes.length - 1 ? { ...last } : {} } : {}),
        ...(index === 0 ? { ...signal, ...said } : {})
      }
    }))
  )
}

/** The person saw the text up to a revision: what came after it was not meant. */
const trust = ({ edge }: SessionState, { rev, signal_id }: Extract<Command, { type: "Trust" }>): Decision => {
  const isMeant = edge.label?.rev === rev
  const ends = isMeant ? { split: { trusted: true } } : {}
  const order: EventDraft = {
    event_type: "CompactionCommitted",
    lane: EDGE,
    payload: { signal_id, delta: { mode: "append" }, boundary_rev: edge.boundary, ...ends }
  }
  const text = "More text from outside came meanwhile, so nothing was taken for trusted. Send /trust to see it."
  const told: EventDraft = { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text } }
  return isMeant ? accept(order) : accept(order, told)
}

/** A notice of a lane at work, to the person who asked for the work. */
const noticeOf = (state: SessionState, { lane, text }: Extract<Command, { type: "Notice" }>): EventDraft => {
  const memory = laneOf(state, lane)
  const inbox_id =
    (memory === undefined ? undefined : askedBy(memory)) ?? (lane === EDGE ? nextReport(state)?.inbox_id : undefined)
  const in_reply_to = inbox_id === undefined ? {} : { in_reply_to: inbox_id }
  return { event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text, ...in_reply_to } }
}

const decided = (state: SessionState, command: Command, situation: Situation): Decision => {
  switch (command.type) {
    case "UserMessage":
      return Result.map(userMessage(state, command.message), (taken) => [
        ...taken,
        ...byMessage(state, command.message, situation)
      ])
    case "RefuseMessage":
      return refuseMessage(state, command)
    case "Queued":
      return queued(state, command)
    case "Output":
      return output(state, command.lane, command.output, situation)
    case "Request":
      return request(state, command, situation)
    case "Grant":
      return grant(state, command)
    case "Result":
      return accept(...endOfCall(state, command, situation))
    case "Spawn":
      return spawn(state, command, situation)
    case "ResumeCore":
      return resumeCore(state, command, situation)
    case "StartSkill":
      return startSkill(state, command, situation)
    case "MoveSkill":
      return moveSkill(state, command, situation)
    case "FailSkill":
      return failSkill(state, command, situation)
    case "InjectCore":
      return injectCore(state, command)
    case "CancelCore":
      return cancelCore(state, command, situation)
    case "SignalInject":
      return signalInject(state, command)
    case "SignalSkill":
      return signalSkill(state, command, situation)
    case "SignalCancel":
      return signalCancel(state, command.signal_id, command.job_name)
    case "StopTurn":
      return stopTurn(state, command, situation)
    case "Compact":
      return compact(state, command, situation)
    case "StopCore":
      return stopCore(state, command, situation)
    case "Answer":
      return answer(state, command, situation)
    case "TellJob":
      return tellJob(state, command, situation)
    case "Notice":
      return accept(noticeOf(state, command))
    case "MemoryWrite": {
      const { type: _, lane, ...write } = command
      return laneOf(state, lane) === undefined
        ? reject("the job is no longer running")
        : accept({ event_type: "MemoryWriteCommitted", lane, payload: { store: "knowledge", ...write } })
    }
    case "Trust":
      return trust(state, command)
    case "Continue":
      return accept(continued(state, command))
    case "NewSession":
      return refuseNewSession(state, command)
    case "End":
      return end(state, command, situation)
  }
}

export const decide = (state: SessionState, command: Command, situation: Situation): Decision =>
  Result.map(decided(state, command, situation), (drafts) => [
    ...drafts,
    ...nearLimit(state, drafts, situation.budgets)
  ])
