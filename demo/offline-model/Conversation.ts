/** The turn that the offline model is in, derived from the messages of a request; the model keeps no state. */
import { Predicate } from "effect"
import { type ChatRequest, type Message, textOf } from "./ChatCompletion.ts"
import { parseInstruction } from "./Instruction.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { type ToolResult, clip, readToolResult } from "./ToolResult.ts"

/** UTF-16 units of a message that the offline model looks at. */
const OFFLINE_MODEL_TURN_CHARS_MAX = 256 * 1024

/** A tool call of this turn together with its result. */
export interface Exchange {
  readonly tool: string
  readonly input: unknown
  readonly result: ToolResult
}

/** A report of the control plane asks for one sentence; everything else is a text to follow. */
export type Turn =
  | { readonly kind: "report"; readonly text: string }
  | {
      readonly kind: "instructions"
      readonly text: string
      readonly exchanges: ReadonlyArray<Exchange>
      /** The lines of long-term memory that the prompt shows for the message. */
      readonly recalled: ReadonlyArray<string>
    }

/** Text of Choir itself between the messages of people; of an instruction in it, only the author's own words count. */
const NOTE_MARK = "<choir-note>"
const NOTE_END = /\n<\/choir-note>$/u
const REPORT_MARK = "<choir-note>\nReport:"
const ENDED_MARK = "<choir-note>\nJob ended: "
const STILL_MARK = /^<choir-note>\nStill to be answered, the user's message:\n/u
const COMPACTION_MARK = "<choir-note>\nCompaction:"
const INJECTION_MARK = /^<choir-note>\n(?:Further instruction|The user adds while you work):/u
const TASK = /^[ \t]*Task:/mu
const HEADING = /^(?:#+ |[A-Z][A-Za-z _]{0,40}:)/u

const isInjection = (message: Message) => message.role === "user" && INJECTION_MARK.test(textOf(message))

const withoutMark = (message: Message) => textOf(message).replace(INJECTION_MARK, "").replace(NOTE_END, "")

/** Whether a request asks what to remember of its own conversation. */
export const asksToRemember = ({ messages }: ChatRequest): boolean =>
  messages.some((message) => textOf(message).startsWith(COMPACTION_MARK))

/** The words of people and of the model in a conversation, and how jobs ended, without Choir's other notes. */
export const saidIn = ({ messages }: ChatRequest): ReadonlyArray<readonly [speaker: string, text: string]> =>
  messages.flatMap((message): ReadonlyArray<readonly [string, string]> => {
    const text = textOf(message)
    if (text.startsWith(ENDED_MARK)) return [["", text.slice(NOTE_MARK.length).replace(NOTE_END, "").trim()]]
    if (message.role === "user") return text.startsWith(NOTE_MARK) ? [] : [["The user said", text]]
    return message.role === "assistant" && text !== "" ? [["I said", text]] : []
  })

const MEMORY_MARK = /^<choir-note>\n(?:.*\n)*?From your memory, for the message below\./u
const MEMORY_LINE = /^- (\d{4}-\d\d-\d\d) (.+?): (".*")$/u

/** The lines of long-term memory that are in front of a message, as a person reads them. */
const recalledBefore = (messages: ReadonlyArray<Message>, at: number): ReadonlyArray<string> => {
  const note = messages[at - 1]
  if (note === undefined || note.role !== "user" || !MEMORY_MARK.test(textOf(note))) return []
  return textOf(note)
    .split("\n")
    .flatMap((line) => {
      const [, day, place, quoted = ""] = MEMORY_LINE.exec(line) ?? []
      const text = parseJson(quoted)
      return typeof text === "string" ? [`${text} (${place}, ${day})`] : []
    })
}

const jobOf = (text: string): unknown => {
  const json = parseJson(text)
  return Predicate.hasProperty(json, "job_name") ? json.job_name : undefined
}

/** A report's matter: the end of a job is in a note of its own, which the report names. */
const matterOf = (report: string, messages: ReadonlyArray<Message>): string => {
  const [named = ""] = report.split("\n")
  const ends = messages.flatMap((message) => {
    const text = textOf(message)
    return text.startsWith(ENDED_MARK) ? [text.slice(ENDED_MARK.length).replace(NOTE_END, "")] : []
  })
  return ends.findLast((end) => jobOf(end) !== undefined && jobOf(end) === jobOf(named)) ?? report
}

/** The lines of a core job's task: from `Task:` to the next heading of the prompt. */
const taskOf = (text: string): string => {
  const [first = "", ...rest] = text.slice(text.search(TASK)).replace(TASK, "").split("\n")
  const end = rest.findIndex((line) => HEADING.test(line) && parseInstruction(line) === undefined)
  return [first, ...(end < 0 ? rest : rest.slice(0, end))].join("\n")
}

const exchangesOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Exchange> => {
  const results = new Map<string, string>()
  for (const message of messages) if (message.role === "tool") results.set(message.tool_call_id, textOf(message))
  return messages.flatMap((message) =>
    message.role !== "assistant"
      ? []
      : (message.tool_calls ?? []).flatMap((call) => {
          const result = results.get(call.id)
          return result === undefined
            ? []
            : [
                {
                  tool: call.function.name,
                  input: parseJson(call.function.arguments),
                  result: readToolResult(result)
                }
              ]
        })
  )
}

/**
 * A core job, which gets its task in its first user message and cannot start others, adds up all instructions it was
 * given. Edge follows the newest message of the user, with what was injected since.
 */
export const turnOf = ({ messages, tools }: ChatRequest, spawnTool: string): Turn => {
  const mayStartJobs = tools?.some((tool) => tool.function.name === spawnTool) === true
  const isReport = (message: Message) => textOf(message).startsWith(REPORT_MARK)
  const isUser = (message: Message) =>
    message.role === "user" &&
    (!textOf(message).startsWith(NOTE_MARK) || isReport(message) || STILL_MARK.test(textOf(message)))
  const first = messages.findIndex(isUser)
  const opening = messages[first]
  const isCore = opening !== undefined && !mayStartJobs && TASK.test(textOf(opening))
  const asked = messages.findLastIndex((message) => isUser(message))
  const start = isCore ? first : asked < 0 ? first : asked
  const message = messages[start]
  if (message === undefined) return { kind: "instructions", text: "", exchanges: [], recalled: [] }
  const asking = clip(textOf(message), OFFLINE_MODEL_TURN_CHARS_MAX).trimStart()
  if (!isCore && asking.startsWith(REPORT_MARK)) {
    const report = asking.slice(REPORT_MARK.length).replace(NOTE_END, "").trim()
    return { kind: "report", text: matterOf(report, messages) }
  }
  const text = STILL_MARK.test(asking) ? asking.replace(STILL_MARK, "").replace(NOTE_END, "") : asking
  const later = messages.slice(start + 1)
  const added = later.filter((other) => (isCore && isUser(other)) || isInjection(other)).map(withoutMark)
  return {
    kind: "instructions",
    text: clip([isCore ? taskOf(text) : text, ...added].join("\n"), OFFLINE_MODEL_TURN_CHARS_MAX),
    exchanges: exchangesOf(later),
    recalled: isCore ? [] : recalledBefore(messages, start)
  }
}
