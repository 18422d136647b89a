/** choir.fs.edit: replaces an exact text of a file whose newest version the lane has seen (E10), where it occurs once or on request everywhere. */
import { isEdgeScratch } from "#src/agent/workspace/edgeScratch.ts"
import { Effect, Result, Schema } from "effect"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { countLines, isText, newlines, withLineEndsOf } from "./fileText.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"
import { FILE_TOOL_TIMEOUT_MS, guardedWrite, type Propose, refuse, writtenPaths } from "./guardedWrite.ts"
import { decodeInput, lockOn, type Tool } from "./Tool.ts"
import type { NumberedLine } from "#src/agent/model/prompt/textParts.ts"
import { linesOf } from "./fileChange.ts"
import { likeTexts, type TextRange } from "./likeText.ts"

/** Lines that are shown, and lines of them in front of the nearest one. */
const NEAREST_LINES = 8
const NEAREST_BEFORE = 2
/** Lines and characters of a line that are compared, so that a huge file costs no more than a moment. */
const COMPARED_LINES_MAX = 100_000
const COMPARED_CHARS_MAX = 200
/** The share of words in common from which a line counts as near. */
const SHARE_MIN = 0.5

const wordsOf = (line: string): ReadonlySet<string> =>
  new Set(line.slice(0, COMPARED_CHARS_MAX).match(/[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [])

const shareOf = (one: ReadonlySet<string>, other: ReadonlySet<string>): number => {
  let common = 0
  for (const word of one) if (other.has(word)) common++
  return (2 * common) / Math.max(1, one.size + other.size)
}

/** The first line of a text that holds something, and how many lines are before it. */
const leading = (text: string) => {
  const lines = text.split("\n")
  const at = Math.max(
    0,
    lines.findIndex((line) => line.trim() !== "")
  )
  return { at, line: (lines[at] ?? "").trim() }
}

/** For a model that misremembers a text: the lines around the one that is most like its first line; none where no line is near. */
const nearestLines = (bytes: Uint8Array, text: string): ReadonlyArray<NumberedLine> => {
  const { at, line: wanted } = leading(text)
  if (wanted === "") return []
  const words = wordsOf(wanted)
  let best = { line: 0, share: SHARE_MIN }
  const lines = Buffer.from(bytes).toString("utf8").split("\n", COMPARED_LINES_MAX)
  for (const [index, line] of lines.entries()) {
    const share = line.trim() === wanted ? 2 : shareOf(words, wordsOf(line))
    if (share > best.share) best = { line: index + 1, share }
    if (share === 2) break
  }
  if (best.line === 0) return []
  const first = Math.max(1, best.line - at - NEAREST_BEFORE)
  return linesOf(bytes, { first, last: Math.min(countLines(bytes), first + NEAREST_LINES - 1) })
}

/** Places of a text that a refused edit lists. */
const PLACES_MAX = 10

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "In the workspace" }),
  old_text: Schema.NonEmptyString.annotate({
    description: "The exact text without line numbers; it must be unique"
  }),
  new_text: Schema.String.annotate({ description: "The replacement text" }),
  replace_all: Schema.optionalKey(Schema.Boolean.annotate({ description: "Replace every occurrence" }))
}).check(
  Schema.makeFilter(({ new_text, old_text }) =>
    old_text === new_text ? { path: ["new_text"], issue: "it is the same as old_text" } : undefined
  )
)
type Input = typeof Input.Type

/** How often a text occurs, and the lines of its first places. Places that overlap count too, since only one of them could be meant. */
const occurrences = (bytes: Buffer, text: Buffer, step: number) => {
  const lines: Array<number> = []
  let [occurs, line, counted] = [0, 1, 0]
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + step)) {
    occurs++
    if (occurs > PLACES_MAX) continue
    line += newlines(bytes.subarray(counted, at))
    counted = at
    lines.push(line)
  }
  return { occurs, lines }
}

/** The file with other parts in place of these; each has the line ends of the part that it replaces. */
const replaced = (bytes: Buffer, ranges: ReadonlyArray<TextRange>, new_text: string): Buffer => {
  const text = bytes.toString("utf8")
  let [after, done] = ["", 0]
  for (const { from, to } of ranges) {
    const part = Buffer.from(text.slice(from, to))
    after += text.slice(done, from) + withLineEndsOf(part.includes("\n") ? part : bytes, new_text)
    done = to
  }
  return Buffer.from(after + text.slice(done))
}

/** For a text that is in the file once, but for signs that models do not see. */
const likeEdit = (bytes: Buffer, { new_text, old_text, replace_all = false }: Input): Buffer | undefined => {
  const ranges = likeTexts(bytes.toString("utf8"), old_text)
  return ranges.length === 1 || (replace_all && ranges.length > 0) ? replaced(bytes, ranges, new_text) : undefined
}

const proposed =
  (input: Input): Propose =>
  (file) => {
    const { new_text, old_text, path, replace_all = false } = input
    if (file === undefined) return refuse(path, "missing")
    if (!isText(file.bytes)) return refuse(file.path, "not_text")
    const bytes = Buffer.from(file.bytes)
    const [from, to] = [withLineEndsOf(bytes, old_text), withLineEndsOf(bytes, new_text)]
    const { lines, occurs } = occurrences(bytes, Buffer.from(from), replace_all ? Buffer.byteLength(from) : 1)
    if (occurs === 0) {
      const after = likeEdit(bytes, input)
      if (after === undefined) return refuse(file.path, "no_match", { nearest: nearestLines(bytes, old_text) })
      return after.length > WORKSPACE_FILE_BYTES_MAX ? refuse(file.path, "too_large") : Result.succeed(after)
    }
    if (occurs > 1 && !replace_all) return refuse(file.path, "many", { occurs, lines })
    if (bytes.length + occurs * (Buffer.byteLength(to) - Buffer.byteLength(from)) > WORKSPACE_FILE_BYTES_MAX)
      return refuse(file.path, "too_large")
    return Result.succeed(Buffer.from(bytes.toString("utf8").split(from).join(to)))
  }

export const fsEdit: Effect.Effect<Tool, never, Workspace> = Effect.gen(function* () {
  const workspace = yield* Workspace
  const decode = decodeInput(Input)
  return {
    llm: llmView(
      "choir.fs.edit",
      "Replace text in a file. Read its newest version first; your own writes count as read.",
      Input
    ),
    effect: "workspace",
    lanes: "both",
    prepare: Effect.fn("fsEdit.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [yield* lockOn(input.path, "X")],
        writes: writtenPaths(input.path),
        besideJobs: isEdgeScratch(input.path),
        timeout_ms: FILE_TOOL_TIMEOUT_MS,
        run: (context) => guardedWrite(workspace, context, input.path, proposed(input))
      }
    })
  }
})
