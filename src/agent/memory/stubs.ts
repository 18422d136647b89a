/** Stubs of what leaves a window, in a line each: for the model of a compaction, and in place of a summary where no model wrote one. */
import type { Schema } from "effect"
import type { ChoirEvent, PayloadOf } from "#schema/Event.ts"
import { shownName } from "#schema/Tool.ts"
import { isPictured } from "#src/shared/model/pictures.ts"
import type { ReferenceSummary } from "#src/shared/session/State.ts"
import { SUMMARY_CHARS_MAX } from "#src/shared/session/memory.ts"
import { SHOWN_HASH_CHARS } from "#src/agent/model/prompt/Prompt.ts"
import type { Folding } from "./Folding.ts"

const STUB_CHARS_MAX = 160
/** Characters of the lines that replace what no model summed up; of more the newest stay. */
const UNSUMMED_CHARS_MAX = 5000

const short = (text: string): string => {
  const line = text.replaceAll(/\s+/gu, " ").trim()
  return line.length <= STUB_CHARS_MAX ? line : `${line.slice(0, STUB_CHARS_MAX).toWellFormed()}…`
}

/** The arguments of calls that tell best what they were about, in the order in which they are named. */
const TELLING = ["path", "pattern", "command", "query", "job_name", "skill", "offset", "limit", "lines"]

const argumentsOf = (input: Schema.Json): string => {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return ""
  const known: Readonly<Record<string, Schema.Json>> = input as never
  return TELLING.flatMap((key) => {
    const value = known[key]
    return value === undefined ? [] : [` ${typeof value === "string" ? value : JSON.stringify(value)}`]
  }).join("")
}

/** A call in one short line. */
export const callLine = (name: string, input: Schema.Json): string => short(`${shownName(name)}${argumentsOf(input)}`)

const sizeOf = ({ messages }: Folding): string => {
  const bytes = messages.reduce((total, { content }) => total + Buffer.byteLength(content ?? ""), 0)
  const text = bytes < 1024 ? `${bytes} B` : `${Math.round(bytes / 1024)} KB`
  return messages.some(isPictured) ? `${text} and an image` : text
}

/** The attachments of a message by their paths, where they may still be found. */
const attached = (attachments: PayloadOf<"UserMsg">["attachments"]): ReadonlyArray<string> =>
  attachments.length === 0 ? [] : [`(attached: ${attachments.map(({ path }) => path).join(", ")})`]

type Calls = ReadonlyMap<string, { readonly name: string; readonly input: Schema.Json }>

const callsOf = (folding: ReadonlyArray<Folding>): Calls =>
  new Map(
    folding.flatMap(({ event }) =>
      event.event_type === "ModelOutput"
        ? event.payload.tool_calls.map((call) => [call.call_id as string, call] as const)
        : []
    )
  )

/** An event's line without its hash; nothing for one that says nothing by itself. */
const lineOf = (event: ChoirEvent, folding: Folding, calls: Calls): string | undefined => {
  switch (event.event_type) {
    case "UserMsg":
      return `${event.payload.writer ?? "the user"}: ${short([event.payload.text, ...attached(event.payload.attachments)].join(" "))}`
    case "ModelOutput":
      return (event.payload.text ?? "") === "" ? undefined : `you: ${short(event.payload.text ?? "")}`
    case "ToolResultCommitted": {
      const call = calls.get(event.payload.call_id)
      const what = call === undefined ? "a call" : callLine(call.name, call.input)
      const status = event.payload.status === "success" ? "" : `, ${event.payload.status}`
      return `${what}${status}, ${sizeOf(folding)}`
    }
    case "CoreStarted":
      return `job ${event.payload.job_name} began`
    case "CoreStopped":
      return `job ${event.payload.job_name} ended (${event.payload.outcome}): ${short(event.payload.summary)}`
    case "InjectedInstruction":
      return `instruction: ${short(event.payload.content)}`
    default:
      return undefined
  }
}

/** One line for each event that says something, with its short hash. */
export const stubsOf = (folding: ReadonlyArray<Folding>): ReadonlyArray<string> => {
  const calls = callsOf(folding)
  return folding.flatMap((each) => {
    const line = lineOf(each.event, each, calls)
    const hash = each.hash === "" ? "" : `, hash ${each.hash.slice(0, SHOWN_HASH_CHARS)}`
    return line === undefined ? [] : [`[${line}${hash}]`]
  })
}

const UNSUMMED = "Not summarized (the newest of what left the window):"

/** A summary that no model wrote: what was known before, and the newest of what leaves as stubs. */
export const withStubs = ({ summary }: ReferenceSummary, folding: ReadonlyArray<Folding>): string => {
  const at = summary.indexOf(UNSUMMED)
  const known = (at < 0 ? summary : summary.slice(0, at)).trim()
  const before =
    at < 0
      ? []
      : summary
          .slice(at + UNSUMMED.length)
          .trim()
          .split("\n")
  const room = Math.min(UNSUMMED_CHARS_MAX, SUMMARY_CHARS_MAX - known.length - UNSUMMED.length - 3)
  let left = room
  const stubs = [...before, ...stubsOf(folding)]
  const from = stubs.findLastIndex(({ length }) => {
    left -= length + 1
    return left < 0
  })
  return [known, `${UNSUMMED}\n${stubs.slice(from + 1).join("\n")}`].filter((part) => part !== "").join("\n\n")
}
