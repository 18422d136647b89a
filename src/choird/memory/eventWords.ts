/** The words of an event that memory keeps, as they were said. Pure. */
import { firstPart } from "#src/shared/text/placeToCut.ts"
import type { Schema } from "effect"
import type { ChoirEvent, PayloadOf } from "#schema/Event.ts"
import { EDGE, jobOf } from "#schema/Ids.ts"
import { shownName } from "#schema/Tool.ts"
import { fileNameText } from "#src/shared/text/foreignText.ts"
import { FORGOTTEN } from "#src/choird/sessions/reducedPayload.ts"

/** Characters that are kept of one text in a call's input, and of the whole input. */
const INPUT_TEXT_CHARS_MAX = 300
const INPUT_CHARS_MAX = 600
/** Characters that are kept of the beginning of a tool's output or a job's result. What people and models say is kept whole. */
export const OUTPUT_CHARS_MAX = 800
/** How deep an input or an output is looked into. */
const DEPTH_MAX = 8

/** Words with the one who said them. */
export interface Words {
  readonly speaker: string
  readonly text: string
}

/** A text up to so many characters. */
const cut = (text: string, chars: number): string => (text.length <= chars ? text : `${firstPart(text, chars)}…`)

const fieldsOf = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : []

/** The texts and numbers of a value in their order, until there are enough characters. */
const textsOf = (value: unknown, chars: number, depth = DEPTH_MAX): ReadonlyArray<string> => {
  if (typeof value === "string") return value === "" ? [] : [value]
  if (typeof value === "number" || typeof value === "boolean") return [String(value)]
  if (typeof value !== "object" || value === null || depth === 0) return []
  const found: Array<string> = []
  let left = chars
  for (const inner of Object.values(value)) {
    if (left <= 0) break
    for (const text of textsOf(inner, left, depth - 1)) {
      found.push(text)
      left -= text.length
    }
  }
  return found
}

const inputText = (input: Schema.Json): string => {
  const fields = fieldsOf(input)
  const lines =
    fields.length === 0
      ? textsOf(input, INPUT_CHARS_MAX)
      : fields.map(
          ([key, value]) => `${key}: ${cut(textsOf(value, INPUT_TEXT_CHARS_MAX).join(" "), INPUT_TEXT_CHARS_MAX)}`
        )
  return cut(lines.join("; "), INPUT_CHARS_MAX)
}

const outputText = (output: Schema.Json | undefined): string =>
  output === undefined ? "" : cut(textsOf(output, OUTPUT_CHARS_MAX).join("\n"), OUTPUT_CHARS_MAX)

/** A text that was forgotten gives no words. */
const said = (text: string | undefined): string =>
  text === undefined || text === FORGOTTEN || text.startsWith(`${FORGOTTEN} `) ? "" : text

const isForgotten = ({ call_id, input }: PayloadOf<"ToolCallRequested">): boolean =>
  fieldsOf(input).some(([key, value]) => key === "forgotten" && value === call_id)

const isMemory = (tool: string): boolean => tool.startsWith("choir.memory.")

/**
 * Whether a result's output may be kept. choird does not know which tools of an image keep theirs out of prompts (`prompt_mask`), so that of
 * all of them only the summary is kept; and what memory answered is already there, maybe in the memory of another agent.
 */
const keepsOutput = (tool: string): boolean => tool.startsWith("choir.") && !isMemory(tool)

const joined = (...parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join("\n")

const resultText = (payload: PayloadOf<"ToolResultCommitted">, tool: string): string => {
  const summary = said(payload.summary)
  if (payload.summary !== "" && summary === "") return ""
  return joined(cut(summary, OUTPUT_CHARS_MAX), keepsOutput(tool) ? outputText(payload.output) : "")
}

const started = ({ resumes, start }: PayloadOf<"CoreStarted">): string => {
  const task = said(start.task_spec)
  return task === "" ? "" : joined(task, said(resumes?.instruction))
}

const stopped = ({ result, summary }: PayloadOf<"CoreStopped">): string =>
  said(summary) === "" && summary !== "" ? "" : joined(summary, outputText(result))

const skillText = ({ ended, from, input, output, to }: PayloadOf<"SkillTransitionCommitted">): string =>
  joined(
    ended === undefined ? `${from === "" ? "begins" : from} → ${to}` : `ended (${ended})`,
    input === undefined ? "" : inputText(input),
    outputText(output)
  )

/** The writer of a message. */
const userName = ({ forwarded, writer }: PayloadOf<"UserMsg">): string =>
  [writer === undefined ? "user" : `user ${writer}`, ...(forwarded === true ? ["forwarded"] : [])].join(", ")

const message = ({ attachments, text }: PayloadOf<"UserMsg">): string =>
  joined(
    said(text),
    attachments.length === 0 ? "" : `(attached: ${attachments.map(({ name }) => fileNameText(name)).join(", ")})`
  )

const answer = ({ failed, file, text }: PayloadOf<"AgentMessage">): string =>
  failed === undefined ? joined(said(text), file === undefined ? "" : `(sent ${file.as})`) : ""

/**
 * The words of an event; undefined for one without any. `tool` is the tool of a result. Reasoning, compactions, which are not anybody's words,
 * the runtime's own notices and what facts were written are left out.
 */
export const eventWords = (event: ChoirEvent, tool: string): Words | undefined => {
  const job = jobOf(event.lane)
  const by = (speaker: string, text: string): Words | undefined => (text.trim() === "" ? undefined : { speaker, text })
  switch (event.event_type) {
    case "UserMsg":
      return by(userName(event.payload), message(event.payload))
    case "ModelOutput": {
      const { error, purpose, text } = event.payload
      const speaks = error === undefined && (purpose === "turn" || purpose === "report")
      return speaks ? by(job === undefined ? "agent" : `job ${job}`, said(text)) : undefined
    }
    case "ToolCallRequested":
      return isForgotten(event.payload)
        ? undefined
        : by(`call ${shownName(event.payload.tool)}`, inputText(event.payload.input))
    case "ToolResultCommitted":
      return by(`result of ${shownName(tool)} (${event.payload.status})`, resultText(event.payload, tool))
    case "CoreStarted":
      return by(`task of job ${event.payload.job_name}`, started(event.payload))
    case "CoreStopped":
      return by(`end of job ${event.payload.job_name} (${event.payload.outcome})`, stopped(event.payload))
    case "InjectedInstruction": {
      const { content, refused, source } = event.payload
      return refused !== undefined || source === "control_plane"
        ? undefined
        : by(source === "user" ? "user, to the job" : "agent, to the job", said(content))
    }
    case "SkillTransitionCommitted":
      return by(`skill ${event.payload.skill}`, skillText(event.payload))
    case "AgentMessage":
      return event.payload.kind === "notice" || event.lane !== EDGE ? undefined : by("agent", answer(event.payload))
    case "ToolCallCommitted":
    case "MemoryWriteCommitted":
    case "Cancelled":
    case "CompactionCommitted":
      return undefined
  }
}
