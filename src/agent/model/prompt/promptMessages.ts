/** How one event reads in a prompt. */
import type { Schema } from "effect"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import type { Message } from "#src/agent/model/Conversation.ts"
import { inlineResult, TOOL_RESULT_BYTES_MAX } from "./inlineResult.ts"
import { note, withoutNotes } from "./instructions.ts"
import { toolText } from "./toolText.ts"

type Rendered = ReadonlyArray<Message>

/** The tool whose result an event is, by its wire name, and whether its output stays out of prompts. */
interface ResultOf {
  readonly tool: string | undefined
  readonly isMasked: boolean
}

/** The longest name of a function that providers take. */
const TOOL_NAME_CHARS_MAX = 64

/** Whether a tool's output stays out of prompts, by its wire name (prompt_mask). */
export type IsMasked = (name: string) => boolean

/** A name as the model used it, in the form that providers take back even where the model made it up. */
const wire = (name: string): string =>
  name
    .replaceAll(".", "-")
    .replaceAll(/[^a-zA-Z0-9_-]/gu, "_")
    .slice(0, TOOL_NAME_CHARS_MAX) || "unknown"

/** The arguments as providers take them back: those that are not a JSON object are shown in the call's result instead. */
const replayed = (input: Schema.Json): string =>
  typeof input === "object" && input !== null && !Array.isArray(input) ? JSON.stringify(input) : "{}"

const toolResult = (event: EventOf<"ToolResultCommitted">, { isMasked, tool }: ResultOf): Message => ({
  role: "tool",
  call_id: event.payload.call_id,
  content: toolText(event, tool, isMasked)
})

const withCalls = ({ payload }: EventOf<"ModelOutput">): Message => ({
  role: "assistant",
  content: (payload.text ?? "").trim() === "" ? null : (payload.text ?? null),
  calls: payload.tool_calls.map(({ call_id, input, name }) => ({
    id: call_id,
    name: wire(name),
    arguments: replayed(input)
  })),
  ...(payload.continuation === undefined ? {} : { continuation: payload.continuation })
})

/** A job's end as the model sees it, its result in no more than these bytes. */
export const stopped = ({ payload }: EventOf<"CoreStopped">, bytes_max = TOOL_RESULT_BYTES_MAX): string =>
  JSON.stringify({
    job_name: payload.job_name,
    outcome: payload.outcome,
    summary: payload.summary,
    ...(payload.result === undefined ? {} : { result: inlineResult(payload.result, bytes_max) }),
    ...(payload.resumable === undefined ? {} : { resumable: "choir-core-spawn with resume: true continues it" })
  })

const injected = ({ payload: { content, source } }: EventOf<"InjectedInstruction">): string =>
  source === "control_plane" ? content : `The user adds while you work: ${content}`

/** A person's message as they wrote it, or its attachments where it has no words. */
export const userMessage = ({ payload: { attachments, text } }: EventOf<"UserMsg">): Message => {
  const names = attachments.map(({ name }) => name).join(", ")
  const content = text.trim() === "" ? `(a message without text${names === "" ? "" : `; attached: ${names}`})` : text
  return { role: "user", content: withoutNotes(content) }
}

const said = (text: string | undefined): Rendered =>
  text === undefined || text.trim() === "" ? [] : [{ role: "assistant", content: text }]

/** A note on a move that the control plane made; a model knows its own moves from their results. */
const skillMoved = ({ payload }: EventOf<"SkillTransitionCommitted">): Rendered => {
  const { ended, reason, skill, to } = payload
  if (reason === undefined) return []
  const what = ended === undefined ? `continues with its step ${to}` : `has ${ended === "failed" ? "failed" : "ended"}`
  return [note(`The skill ${skill} ${what}: ${reason}`)]
}

const edgeMessages = (event: ChoirEvent, of: ResultOf): Rendered => {
  switch (event.event_type) {
    case "UserMsg":
      return [userMessage(event)]
    case "ModelOutput":
      return event.payload.tool_calls.length > 0 ? [withCalls(event)] : []
    case "ToolResultCommitted":
      return [toolResult(event, of)]
    case "AgentMessage":
      return said(event.payload.text)
    case "SkillTransitionCommitted":
      return skillMoved(event)
    case "CoreStarted":
      return [note(`Job ${event.payload.job_name} runs`)]
    case "CoreStopped":
      return [note(`Job ended: ${stopped(event)}`)]
    case "InjectedInstruction":
      return [note(injected(event))]
    default:
      return []
  }
}

const coreMessages = (event: ChoirEvent, of: ResultOf): Rendered => {
  switch (event.event_type) {
    case "ModelOutput":
      if (event.payload.tool_calls.length > 0) return [withCalls(event)]
      return said(event.payload.text)
    case "ToolResultCommitted":
      return [toolResult(event, of)]
    case "SkillTransitionCommitted":
      return skillMoved(event)
    case "CoreStarted": {
      const { resumes } = event.payload
      return resumes === undefined ? [] : [note(`Further instruction: ${resumes.instruction}`)]
    }
    case "InjectedInstruction":
      return [note(`Further instruction: ${event.payload.content}`)]
    default:
      return []
  }
}

/** An event never changes, so that it is rendered once however many prompts show it. */
const remembered = (render: (event: ChoirEvent, of: ResultOf) => Rendered) => {
  const known = new WeakMap<ChoirEvent, { readonly tool: string | undefined; readonly rendered: Rendered }>()
  return (event: ChoirEvent, of: ResultOf): Rendered => {
    const before = known.get(event)
    if (before?.tool === of.tool && before !== undefined) return before.rendered
    const rendered = render(event, of)
    known.set(event, { tool: of.tool, rendered })
    return rendered
  }
}

const edgeMessage = remembered(edgeMessages)
const coreMessage = remembered(coreMessages)

/** The names of the calls that the events propose, by call id. */
const proposedNames = (events: ReadonlyArray<ChoirEvent>): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) =>
      event.event_type === "ModelOutput"
        ? event.payload.tool_calls.map(({ call_id, name }) => [call_id as string, wire(name)] as const)
        : []
    )
  )

const NO_RESULT: ResultOf = { tool: undefined, isMasked: false }

const resultsOf = (names: ReadonlyMap<string, string>, isMasked: IsMasked) => (event: ChoirEvent) => {
  if (event.event_type !== "ToolResultCommitted") return NO_RESULT
  const tool = names.get(event.payload.call_id)
  return { tool, isMasked: isMasked(tool ?? "") }
}

/** The messages of each of a lane's events. */
export const messagesByEvent = (
  lane: "edge" | "core",
  events: ReadonlyArray<ChoirEvent>,
  isMasked: IsMasked
): ReadonlyArray<Rendered> => {
  const message = lane === "edge" ? edgeMessage : coreMessage
  const of = resultsOf(proposedNames(events), isMasked)
  return events.map((event) => message(event, of(event)))
}

/** The messages of a lane's events, in their order. */
export const messagesOf = (lane: "edge" | "core", events: ReadonlyArray<ChoirEvent>, isMasked: IsMasked): Rendered =>
  messagesByEvent(lane, events, isMasked).flat()
