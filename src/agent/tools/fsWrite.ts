/** choir.fs.write: creates a file of the workspace or changes one whose newest version the lane has seen (E10). */
import { isEdgeScratch } from "#src/agent/workspace/edgeScratch.ts"
import { Effect, Result, Schema } from "effect"
import { Workspace, type WorkspaceFile } from "#src/agent/workspace/Workspace.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { linesOf } from "./fileChange.ts"
import { countLines, endsInNewline, isText, lineOffset, withLineEndsOf } from "./fileText.ts"
import {
  FILE_TOOL_TIMEOUT_MS,
  guardedWrite,
  type Propose,
  refuse,
  type WriteRefused,
  writtenPaths
} from "./guardedWrite.ts"
import { decodeInput, lockOn, type Tool } from "./Tool.ts"

/** Lines around a wrong number that a refused write shows. */
const SHOWN_AROUND = 3
/** Places of a text that a refused write lists. */
const PLACES_MAX = 10

const LineNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "In the workspace" }),
  content: Schema.String.annotate({ description: "Its text" }),
  mode: Schema.Literals(["overwrite", "append", "insert", "replace"]),
  /** The line before which to insert, or the first to replace. */
  line: Schema.optionalKey(LineNumber),
  /** The last line to replace; default: `line`. */
  end_line: Schema.optionalKey(LineNumber),
  /** The present text of `line`, and of lines after it until it is unique. */
  expect: Schema.optionalKey(Schema.String),
  /** The same of `end_line`, and of lines before it. */
  expect_end: Schema.optionalKey(Schema.String)
}).check(
  Schema.makeFilter(({ mode, line, end_line, expect, expect_end }) => {
    if (mode === "overwrite" || mode === "append") {
      const needless = Object.entries({ line, end_line, expect, expect_end }).find(([, value]) => value !== undefined)
      return needless === undefined ? undefined : { path: [needless[0]], issue: `mode ${mode} takes no ${needless[0]}` }
    }
    if (line === undefined) return { path: ["line"], issue: `mode ${mode} needs a line` }
    if (expect === undefined)
      return { path: ["expect"], issue: `mode ${mode} needs expect, the present text of line ${line}` }
    if (mode === "insert" && (end_line !== undefined || expect_end !== undefined))
      return { path: ["end_line"], issue: "mode insert takes no end_line" }
    if ((end_line ?? line) < line) return { path: ["end_line"], issue: "end_line is before line" }
    return (end_line ?? line) > line && expect_end === undefined
      ? { path: ["expect_end"], issue: `it is missing: give the present text of line ${end_line}` }
      : undefined
  })
)
type Input = typeof Input.Type

/** The input as models see it. For changes within a file they have choir.fs.edit, and the line modes would take tokens in every prompt. */
const Shown = Schema.Struct({
  path: Input.fields.path,
  content: Input.fields.content,
  mode: Schema.Literals(["overwrite", "append"]).annotate({ description: "append adds to the end" })
})

const NEWLINE = Buffer.from("\n")

const asLines = (bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 || endsInNewline(bytes) ? bytes : Buffer.concat([bytes, NEWLINE])

/** A text as whole lines of a file. */
const wholeLines = (file: Uint8Array, text: string): Buffer =>
  Buffer.from(withLineEndsOf(file, text.endsWith("\n") ? text : `${text}\n`))

/** The first lines at which a text of whole lines stands. A last line that has no line break counts as one that has. */
const placesOf = (file: Buffer, lines: Buffer): ReadonlyArray<number> => {
  const places: Array<number> = []
  let [line, counted] = [1, 0]
  for (let at = file.indexOf(lines); at !== -1 && places.length < PLACES_MAX; at = file.indexOf(lines, at + 1)) {
    if (at > 0 && !endsInNewline(file.subarray(0, at))) continue
    line += countLines(file.subarray(counted, at))
    counted = at
    places.push(line)
  }
  return places
}

/** Why a text does not stand at a line, or not there alone; numbers of an older version then harm nothing. */
const misplaced = (
  { path, bytes }: WorkspaceFile,
  text: string,
  lineOf: (lines: number) => number,
  reason: "unexpected" | "unexpected_end"
): Result.Result<never, WriteRefused> | undefined => {
  const lines = wholeLines(bytes, text)
  const line = lineOf(countLines(lines))
  const file = Buffer.from(asLines(bytes))
  const offset = lineOffset(file, line)
  const places = placesOf(file, lines)
  if (line >= 1 && file.subarray(offset, offset + lines.length).equals(lines))
    return places.length === 1 ? undefined : refuse(path, "ambiguous", { lines: places })
  const near = places[0] ?? Math.max(1, line)
  const range = { first: Math.max(1, near - SHOWN_AROUND), last: Math.min(countLines(bytes), near + SHOWN_AROUND) }
  return refuse(path, reason, { nearest: linesOf(bytes, range) })
}

const spliced = (file: WorkspaceFile, input: Input): Result.Result<Uint8Array, WriteRefused> => {
  const { path, bytes } = file
  if (!isText(bytes)) return refuse(path, "not_text")
  const lines_total = countLines(bytes)
  const { line: first = 1, end_line: last = first } = input
  if (last > lines_total) return refuse(path, "no_such_line", { lines_total })
  const misfit =
    misplaced(file, input.expect ?? "", () => first, "unexpected") ??
    (input.expect_end === undefined
      ? undefined
      : misplaced(file, input.expect_end, (count) => last - count + 1, "unexpected_end"))
  if (misfit !== undefined) return misfit
  const head = bytes.subarray(0, lineOffset(bytes, first))
  const tail = bytes.subarray(lineOffset(bytes, input.mode === "insert" ? first : last + 1))
  // A last line that had no newline keeps none when it is replaced.
  const isBare = input.mode === "replace" && tail.length === 0 && !endsInNewline(bytes)
  const isAsGiven = isBare || input.content === ""
  const content = isAsGiven ? Buffer.from(withLineEndsOf(bytes, input.content)) : wholeLines(bytes, input.content)
  return Result.succeed(Buffer.concat([head, content, tail]))
}

const proposed =
  (input: Input): Propose =>
  (file) => {
    const content = Buffer.from(input.content)
    if (file === undefined) return input.line === undefined ? Result.succeed(content) : refuse(input.path, "missing")
    if (input.mode === "overwrite") return Result.succeed(content)
    return input.mode === "append" ? Result.succeed(Buffer.concat([file.bytes, content])) : spliced(file, input)
  }

export const fsWrite: Effect.Effect<Tool, never, Workspace> = Effect.gen(function* () {
  const workspace = yield* Workspace
  const decode = decodeInput(Input)
  return {
    llm: llmView(
      "choir.fs.write",
      "Create, overwrite or append to a text file. Read an existing one first; to change parts, edit it.",
      Shown
    ),
    effect: "workspace",
    lanes: "both",
    prepare: Effect.fn("fsWrite.prepare")(function* (raw) {
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
