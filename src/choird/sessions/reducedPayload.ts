/**
 * The rest of a payload that is forgotten (D52): free text goes; ids, names, states, counts, statuses and everything else that the fold
 * needs stay. A reduced event folds like the original, but for what a compaction kept in words, so that its session can continue.
 */
import type { Schema } from "effect"
import type { ContextBundle } from "#schema/Core.ts"
import type { ChoirEvent, PayloadOf, Prompted, WorkDone } from "#schema/Event.ts"
import { commitsToGit, isCorrectionNote } from "#src/shared/session/calls.ts"
import { reportKind } from "#src/shared/session/jobWork.ts"
import type { CallId } from "#schema/Ids.ts"

/** The replacement for a text, so that models and people see that there was one. */
export const FORGOTTEN = "[forgotten]"

/** A different value for each call: equal ones would look like a loop of the model (E11). A question to the user stays one, and a plan. */
const inputOf = (call_id: CallId, input: Schema.Json) => {
  const { isPlan, isQuestion } = reportKind(input)
  const kind = isQuestion ? "need_info" : isPlan === true ? "plan" : undefined
  return kind === undefined ? { forgotten: call_id } : { forgotten: call_id, kind }
}

/** Notes may quote anything that the lane was shown; whether one asked for a correction is a part of the fold. */
const promptOf = ({ notes = [], ...kept }: Prompted): Prompted => {
  const corrections = notes.filter(isCorrectionNote).map(({ about }) => ({ about, text: FORGOTTEN }))
  return corrections.length === 0 ? kept : { ...kept, notes: corrections }
}

/** The paths of files that people sent are choird's own names and a part of the fold, which labels them. */
const userMsg = ({ attachments, ...payload }: PayloadOf<"UserMsg">): PayloadOf<"UserMsg"> => ({
  ...payload,
  text: FORGOTTEN,
  attachments:
    payload.received === true
      ? attachments.map(({ bytes, path }) => ({ path, bytes, name: FORGOTTEN, mime: "application/octet-stream" }))
      : []
})

const modelOutput = (payload: PayloadOf<"ModelOutput">): PayloadOf<"ModelOutput"> => {
  const { continuation: _, error, prompt, text, tool_calls, ...kept } = payload
  return {
    ...kept,
    ...(prompt === undefined ? {} : { prompt: promptOf(prompt) }),
    ...(text === undefined ? {} : { text: FORGOTTEN }),
    ...(error === undefined ? {} : { error: { ...error, message: FORGOTTEN } }),
    tool_calls: tool_calls.map((call) => ({ ...call, input: inputOf(call.call_id, call.input) }))
  }
}

/** Whether a command commits the workspace to git is a part of the fold; the command itself is not. */
const toolCallRequested = (payload: PayloadOf<"ToolCallRequested">): PayloadOf<"ToolCallRequested"> => {
  const input = inputOf(payload.call_id, payload.input)
  return { ...payload, input: commitsToGit(payload) ? { ...input, command: "git commit" } : input }
}

/** The versions of files that a job knows from edge are a part of the fold, so `handed` stays, without its texts. */
const handedOver = ({ handed }: ContextBundle): Pick<ContextBundle, "handed"> =>
  handed === undefined ? {} : { handed: handed.map((each) => ({ ...each, tool: FORGOTTEN, text: FORGOTTEN })) }

const coreStarted = ({ resumes, start, ...kept }: PayloadOf<"CoreStarted">): PayloadOf<"CoreStarted"> => ({
  ...kept,
  ...(resumes === undefined ? {} : { resumes: { ...resumes, instruction: FORGOTTEN } }),
  start: {
    ...start,
    task_spec: FORGOTTEN,
    context_bundle: { facts: [], excerpts: [], constraints: [], ...handedOver(start.context_bundle) },
    ...(start.skill === undefined ? {} : { skill: { name: start.skill.name } })
  }
})

const toolResult = (payload: PayloadOf<"ToolResultCommitted">): PayloadOf<"ToolResultCommitted"> => {
  const { notes: _, output: __, pictures: ___, ...kept } = payload
  return { ...kept, summary: `${FORGOTTEN} ${payload.call_id}` }
}

/** The names of files are free text; their count is not. */
const workDone = (work: WorkDone): WorkDone => {
  const { files: _, ...counts } = work
  return counts
}

const coreStopped = (payload: PayloadOf<"CoreStopped">): PayloadOf<"CoreStopped"> => {
  const { result, work, writeback: _, ...kept } = payload
  return {
    ...kept,
    summary: FORGOTTEN,
    ...(work === undefined ? {} : { work: workDone(work) }),
    ...(result === undefined ? {} : { result: null })
  }
}

/** Whether a state was left with a result, and which fields were written, is a part of the fold; the values are not. */
const skillTransition = (payload: PayloadOf<"SkillTransitionCommitted">): PayloadOf<"SkillTransitionCommitted"> => {
  const { asserted, input: _, output, reason: __, writes, ...kept } = payload
  return {
    ...kept,
    ...(output === undefined ? {} : { output: null }),
    ...(asserted === undefined ? {} : { asserted: asserted.map((each) => ({ ...each, detail: FORGOTTEN })) }),
    ...(writes === undefined ? {} : { writes: Object.fromEntries(Object.keys(writes).map((field) => [field, null])) })
  }
}

const agentMessage = (payload: PayloadOf<"AgentMessage">): PayloadOf<"AgentMessage"> => {
  const { facts: _, file: __, files: ___, text, ...kept } = payload
  return { ...kept, ...(text === undefined ? {} : { text: FORGOTTEN }) }
}

const memoryWrite = (payload: PayloadOf<"MemoryWriteCommitted">): PayloadOf<"MemoryWriteCommitted"> => {
  const { key: _, ...kept } = payload
  return kept
}

/** The lane's summary loses this part of it; where its window begins stays. */
const compaction = ({
  delta,
  split,
  words,
  ...kept
}: PayloadOf<"CompactionCommitted">): PayloadOf<"CompactionCommitted"> => ({
  ...kept,
  ...(split === undefined ? {} : { split: split.rest === undefined ? split : { ...split, rest: FORGOTTEN } }),
  delta: { mode: "append", ...(delta.summary_update === undefined ? {} : { summary_update: FORGOTTEN }) },
  ...(words === undefined ? {} : { words: [] })
})

/** The payload of the event without its free text. The fold needs all of two types. */
export const reducedPayload = (event: ChoirEvent): ChoirEvent["payload"] => {
  switch (event.event_type) {
    case "UserMsg":
      return userMsg(event.payload)
    case "ModelOutput":
      return modelOutput(event.payload)
    case "ToolCallRequested":
      return toolCallRequested(event.payload)
    case "ToolResultCommitted":
      return toolResult(event.payload)
    case "MemoryWriteCommitted":
      return memoryWrite(event.payload)
    case "CoreStarted":
      return coreStarted(event.payload)
    case "CoreStopped":
      return coreStopped(event.payload)
    case "InjectedInstruction":
      return { ...event.payload, content: FORGOTTEN }
    case "SkillTransitionCommitted":
      return skillTransition(event.payload)
    case "AgentMessage":
      return agentMessage(event.payload)
    case "CompactionCommitted":
      return compaction(event.payload)
    case "ToolCallCommitted":
    case "Cancelled":
      return event.payload
  }
}
