/** choir.fs.edit: replaces an exact text of a file whose newest version the lane has seen (E10), where it occurs once or on request everywhere. */
import { Effect, Result, Schema } from "effect"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { isText, newlines, withLineEndsOf } from "./fileText.ts"
import { WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"
import { FILE_TOOL_TIMEOUT_MS, guardedWrite, type Propose, refuse } from "./guardedWrite.ts"
import { nearestLines } from "./nearestLines.ts"
import { decodeInput, lockOn, type Tool } from "./Tool.ts"

/** Places of a text that a refused edit lists. */
const PLACES_MAX = 10

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "Relative to the workspace" }),
  old_text: Schema.NonEmptyString.annotate({
    description: "The exact text without line numbers; it must be unique"
  }),
  new_text: Schema.String.annotate({ description: "The text in its place" }),
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

const proposed =
  ({ new_text, old_text, path, replace_all = false }: Input): Propose =>
  (file) => {
    if (file === undefined) return refuse(path, "missing")
    if (!isText(file.bytes)) return refuse(file.path, "not_text")
    const bytes = Buffer.from(file.bytes)
    const [from, to] = [withLineEndsOf(bytes, old_text), withLineEndsOf(bytes, new_text)]
    const { lines, occurs } = occurrences(bytes, Buffer.from(from), replace_all ? Buffer.byteLength(from) : 1)
    if (occurs === 0) return refuse(file.path, "no_match", { nearest: nearestLines(bytes, old_text) })
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
      "Replace a text of a file that you have read in its newest version; your own writes count.",
      Input
    ),
    effect: "workspace",
    lanes: "both",
    readOnly: false,
    prepare: Effect.fn("fsEdit.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [yield* lockOn(input.path, "X")],
        timeout_ms: FILE_TOOL_TIMEOUT_MS,
        run: (context) => guardedWrite(workspace, context, input.path, proposed(input))
      }
    })
  }
})
