/** choir.fs.read: a file of the workspace, or some of its lines. */
import { Effect, Schema } from "effect"
import { Workspace, type WorkspaceFile } from "#src/agent/workspace/Workspace.ts"
import { countLines, cutToJsonBytes, isText, lineOffset } from "./fileText.ts"
import { decodeInput, lockOn, refusal, type Tool, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { FILE_TOOL_TIMEOUT_MS } from "./fsWrite.ts"
import { TOOL_RESULT_BYTES_MAX } from "#src/agent/model/prompt/inlineResult.ts"

/** Of a result's bytes, what is left for the path, the numbers and the keys. */
const ENVELOPE_BYTES = 32 * 1024

const LineCount = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

const boundsOf = (lines: string | undefined): ReadonlyArray<number> => lines?.split("-").map(Number) ?? []

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "Relative to the workspace" }),
  head: Schema.optionalKey(LineCount.annotate({ description: "Only so many first lines; not with tail or lines" })),
  tail: Schema.optionalKey(LineCount.annotate({ description: "Only so many last lines; not with head or lines" })),
  lines: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[1-9][0-9]{0,8}-[1-9][0-9]{0,8}$/u, { message: "lines is a-b, from 1, inclusive" })
    ).annotate({ description: "Only these lines: a-b, from 1, inclusive; not with head or tail" })
  )
}).check(
  Schema.makeFilter(({ head, tail, lines }) => {
    if ([head, tail, lines].filter((part) => part !== undefined).length > 1) return "give one of head, tail and lines"
    const [first = 1, last = first] = boundsOf(lines)
    return last < first ? { path: ["lines"], issue: "lines ends before it begins" } : undefined
  })
)

const rangeOf = ({ head, tail, lines }: typeof Input.Type, lines_total: number) => {
  if (head !== undefined) return { first: 1, last: Math.min(head, lines_total) }
  if (tail !== undefined) return { first: Math.max(1, lines_total - tail + 1), last: lines_total }
  const [first = 1, last = lines_total] = boundsOf(lines)
  return { first, last: Math.min(last, lines_total) }
}

const show = (file: WorkspaceFile, input: typeof Input.Type): ToolOutcome => {
  const { path, bytes, sha256 } = file
  const reads = [{ path, sha256 }]
  if (!isText(bytes)) {
    const summary = `${path} is binary, or not UTF-8: ${bytes.length} bytes`
    return { status: "success", summary, output: { path, binary: true, bytes: bytes.length, sha256 }, reads }
  }
  const lines_total = countLines(bytes)
  const { first, last } = rangeOf(input, lines_total)
  if (first > last && (first > 1 || last > 0)) {
    return { ...refusal({ message: `${path} has ${lines_total} lines; there are none at ${input.lines}` }), reads }
  }
  const part = Buffer.from(bytes.subarray(lineOffset(bytes, first), lineOffset(bytes, last + 1)))
  const whole = part.toString("utf8")
  const content = cutToJsonBytes(whole, TOOL_RESULT_BYTES_MAX - ENVELOPE_BYTES)
  const truncated = content.length < whole.length
  const last_line = truncated ? first + countLines(Buffer.from(content)) - 1 : last
  const summary = `lines ${first}-${last_line} of ${lines_total} of ${path}${truncated ? ", cut for their size" : ""}`
  return {
    status: "success",
    summary,
    output: { path, content, first_line: first, last_line, lines_total, sha256, truncated },
    reads
  }
}

export const fsRead: Effect.Effect<Tool, never, Workspace> = Effect.gen(function* () {
  const workspace = yield* Workspace
  const decode = decodeInput(Input)

  const listed = (path: string, problem: { readonly message: string }) =>
    workspace.list(path).pipe(
      Effect.map(({ entries, truncated }) => refusal(problem, { entries, truncated })),
      Effect.catch((error) => Effect.succeed(refusal(error)))
    )

  return {
    llm: llmView(
      "choir.fs.read",
      "Read a text file of the workspace. Give at most one of head, tail and lines. A long file is cut: read on with lines. Its version counts as seen afterwards, so that choir-fs-write may change it.",
      Input
    ),
    effect: "none",
    lanes: "both",
    readOnly: true,
    prepare: Effect.fn("fsRead.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [yield* lockOn(input.path, "S")],
        timeout_ms: FILE_TOOL_TIMEOUT_MS,
        run: () =>
          Effect.matchEffect(workspace.read(input.path), {
            onSuccess: (file) => Effect.succeed(show(file, input)),
            onFailure: (error) =>
              error.reason === "folder" ? listed(input.path, error) : Effect.succeed(refusal(error))
          })
      }
    })
  }
})
