/**
 * A tool's result as a model reads it: plain text, the status in the first line where it is not a success, and never more than fits a prompt. A pure
 * function of the committed event, the name of the tool and the lane's tools, so that a prompt that is made again has the same bytes.
 */
import type { Schema } from "effect"
import type { EventOf } from "#schema/Event.ts"
import type { Acted } from "#schema/Source.ts"
import { offeredName, shownName } from "#schema/Tool.ts"
import { EXEC, FS_READ, MEMORY_QUERY, type Offered } from "#src/agent/model/offeredTools.ts"
import { RESULT_TEXTS, type ResultText, type ResultView, uncut } from "./resultTexts.ts"
import { withoutNotes } from "#src/agent/model/choirNote.ts"
import { labelOf } from "#src/shared/text/foreignText.ts"
import { fitMiddle } from "./textParts.ts"

/** The part of one result that a prompt holds, in bytes of UTF-8. Its event holds more, and a file of the workspace all of it. */
export const PROMPT_RESULT_BYTES_MAX = 16 * 1024

/** Of these bytes, the part for the marks and the way to the rest. */
const FRAME_BYTES = 512
/** Characters of a summary. */
const SUMMARY_CHARS_MAX = 1000
/** An output up to this length is shown whole in a prompt. */
export const WHOLE_OUTPUT_BYTES_MAX = PROMPT_RESULT_BYTES_MAX - FRAME_BYTES - 3 * SUMMARY_CHARS_MAX
/** Digits of its hash in the name of the file that holds all of a long result. */
const RESULT_NAME_CHARS = 32

/** The words on how sure a tool is that it acted. A crash and an interrupt say it in their own words. */
const ACTED: Readonly<Record<Acted, string>> = {
  verified: "[verified: it took effect]",
  accepted: "[accepted by the other side; nobody has checked the effect]",
  unknown: "[whether it took effect is not known: check before you repeat it]"
}
const DIRTY = "[read while a job was changing the workspace]"

const SAYS_DOUBT: ReadonlySet<string> = new Set(["unknown_after_crash", "cancelled"])

/** Whether the rest of a result says as much: of a command that ended its exit code does, and most commands act nowhere else. */
const saysItself = (tool: string | undefined, status: string, acted: Acted): boolean =>
  SAYS_DOUBT.has(status) || (tool === EXEC && acted === "accepted")

type Members = Readonly<Record<string, Schema.Json>>

const isObject = (output: Schema.Json | undefined): output is Members =>
  typeof output === "object" && output !== null && !Array.isArray(output)

/** Members that models have no use for: the summary says the error, a digest is for programs, and the file has a line of its own. */
const isHidden = (key: string, value: Schema.Json, summary: string): boolean =>
  key === "whole_output" || key === "sha256" || (key === "error" && value === summary)

/** Text stays text, and each text of several lines follows the other members under its name; everything else is compact JSON. */
const plain = ({ output, summary }: ResultView): string => {
  if (typeof output === "string") return output
  if (!isObject(output)) return output === null ? "" : JSON.stringify(output)
  const members = Object.entries(output).filter(([key, value]) => !isHidden(key, value, summary))
  const isText = (value: Schema.Json): value is string => typeof value === "string" && value.includes("\n")
  const short = members.filter(([, value]) => !isText(value))
  const texts = members.flatMap(([key, value]) => (isText(value) ? [`${key}:\n${value}`] : []))
  return [...(short.length === 0 ? [] : [JSON.stringify(Object.fromEntries(short))]), ...texts].join("\n")
}

/** The summary of a success is above what the tool gave; that of a failure is in the first line. */
const generic = (view: ResultView): ResultText => {
  const whole = plain(view)
  const text = fitMiddle(whole, view.room)
  const lines = view.status !== "success" || view.summary === text ? [text] : [view.summary, text]
  return { text: lines.filter((line) => line !== "").join("\n"), isCut: text !== whole }
}

/** The way to what a prompt has no room for. */
const wayToRest = (output: Schema.Json, artifact_ref: string | undefined, rev: number, offered: Offered): string => {
  if (isObject(output) && typeof output["whole_output"] === "string")
    return `[${readWith(output["whole_output"], offered)}]`
  if (artifact_ref !== undefined)
    return `[${readWith(wholeOutputNote(resultFile(artifact_ref, typeof output === "string")), offered)}]`
  return offered.has(MEMORY_QUERY)
    ? `[the log has the rest: choir-memory-query finds words of it with before_rev ${rev + 1}]`
    : "[the log has the rest]"
}

/** Notes of older events name the tool themselves. */
const OLD_WAY = ": read it with choir-fs-read"

/** The words about a file, with the tool that reads it, of those that the lane has. */
const readWith = (note: string, offered: Offered): string => {
  const words = note.endsWith(OLD_WAY) ? note.slice(0, -OLD_WAY.length) : note
  const tool = [FS_READ, EXEC].find((name) => offered.has(name))
  return tool === undefined ? words : `${words}: read it with ${tool}`
}

/** The file that holds all of a long result, by the hash of its bytes. */
export const resultFile = (sha256: string, isText: boolean): string =>
  `.choirtmp/results/${sha256.slice(0, RESULT_NAME_CHARS)}.${isText ? "txt" : "json"}`

/** The words about that file. The lane that reads them later knows its tools. */
export const wholeOutputNote = (path: string): string => `all of it is in ${path}`

const list = (title: string, names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names.length === 0 ? [] : [`${title}: ${names.join(", ")}`]

/** `tool` is the wire name of the call's tool, `undefined` where the call is not known; `offered` are the tools of the lane that reads. */
export const toolText = (
  { payload, rev }: EventOf<"ToolResultCommitted">,
  tool: string | undefined,
  isMasked: boolean,
  offered: Offered
): string => {
  const { acted, allowed, artifact_ref, dirty, notes = [], output, sources, status, untrusted } = payload
  const summary = payload.summary.slice(0, SUMMARY_CHARS_MAX).toWellFormed()
  const room = PROMPT_RESULT_BYTES_MAX - FRAME_BYTES - Buffer.byteLength([summary, ...notes].join("\n"))
  const view = { status, summary, output: output ?? null, room, offered }
  const shown = isMasked
    ? uncut(status === "success" ? summary : "")
    : (RESULT_TEXTS.get(tool ?? "")?.(view) ?? generic(view))
  const lines = [
    ...(status === "success" ? [] : [`${status}: ${summary}`]),
    ...(acted === undefined || saysItself(tool, status, acted) ? [] : [ACTED[acted]]),
    ...(untrusted === true || (sources ?? []).length > 0 ? [`[${labelOf(sources ?? [])}]`] : []),
    ...(dirty === true ? [DIRTY] : []),
    ...notes.map((note) => `[${note}]`),
    ...(shown.text === "" ? [] : [shown.text]),
    ...(shown.isCut ? [wayToRest(output ?? null, artifact_ref, rev, offered)] : []),
    ...(allowed === undefined
      ? []
      : [
          ...list(
            "tools that you may call",
            allowed.tools.filter((name) => offered.has(offeredName(name))).map(shownName)
          ),
          ...list("transitions", allowed.transitions)
        ])
  ]
  return fitMiddle(withoutNotes(lines.length === 0 ? "done" : lines.join("\n")), PROMPT_RESULT_BYTES_MAX)
}
