/** The turn that the offline model is in, derived from the messages of a request; the model keeps no state. */
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
  | { readonly kind: "instructions"; readonly text: string; readonly exchanges: ReadonlyArray<Exchange> }

/** Text of Choir itself between the messages of people; of an instruction in it, only the author's own words count. */
const NOTE_MARK = "<choir-note>"
const NOTE_END = /\n<\/choir-note>$/u
const REPORT_MARK = "<choir-note>\nReport:"
const INJECTION_MARK = /^<choir-note>\n(?:Further instruction|The user adds while you work):/u
const TASK = /^[ \t]*Task:/mu
const HEADING = /^(?:#+ |[A-Z][A-Za-z _]{0,40}:)/u

const isInjection = (message: Message) => message.role === "user" && INJECTION_MARK.test(textOf(message))

const withoutMark = (message: Message) => textOf(message).replace(INJECTION_MARK, "").replace(NOTE_END, "")

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
    message.role === "user" && (!textOf(message).startsWith(NOTE_MARK) || isReport(message))
  const first = messages.findIndex(isUser)
  const opening = messages[first]
  const isCore = opening !== undefined && !mayStartJobs && TASK.test(textOf(opening))
  const asked = messages.findLastIndex((message) => isUser(message))
  const start = isCore ? first : asked < 0 ? first : asked
  const message = messages[start]
  if (message === undefined) return { kind: "instructions", text: "", exchanges: [] }
  const text = clip(textOf(message), OFFLINE_MODEL_TURN_CHARS_MAX).trimStart()
  if (!isCore && text.startsWith(REPORT_MARK))
    return { kind: "report", text: text.slice(REPORT_MARK.length).replace(NOTE_END, "").trim() }
  const later = messages.slice(start + 1)
  const added = later.filter((other) => (isCore && isUser(other)) || isInjection(other)).map(withoutMark)
  return {
    kind: "instructions",
    text: clip([isCore ? taskOf(text) : text, ...added].join("\n"), OFFLINE_MODEL_TURN_CHARS_MAX),
    exchanges: exchangesOf(later)
  }
}
