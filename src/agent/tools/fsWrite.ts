/** choir.fs.write: creates a file of the workspace or changes one whose newest version the lane has seen (E10). */
import { Effect, Result, Schema, TextDiff } from "effect"
import { Workspace, type WorkspaceFile, type WorkspaceWrite } from "#src/agent/workspace/Workspace.ts"
import { countLines, cutToJsonBytes, endsInNewline, isText, lineOffset } from "./fileText.ts"
import { decodeInput, lockOn, refusal, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"

/** Of a refused write's diff, what the model is shown. */
const WRITE_DIFF_BYTES_MAX = 4 * 1024
/** Edits that the diff of a refused write looks for before it settles for a coarser one. */
const WRITE_DIFF_EDITS_MAX = 500

const SENTENCES = {
  unseen: "exists and was not read by you yet. Read it first with choir-fs-read, then write.",
  stale:
    "has changed since you last read or wrote it. Read it again before you write; the diff shows what this write would have changed in it.",
  missing: "does not exist, so it has no lines. Create it with the mode overwrite.",
  not_text: "is binary, or not UTF-8, and has no lines. Use the mode overwrite, or choir-exec.",
  no_such_line: "has fewer lines than that. Give a line from 1 to the last one; insert also takes the one after it."
} as const

class WriteRefused extends Schema.TaggedError<WriteRefused>()("WriteRefused", {
  path: Schema.String,
  reason: Schema.Literals(Object.keys(SENTENCES) as Array<keyof typeof SENTENCES>),
  details: Schema.Struct({
    sha256: Schema.optionalKey(Schema.String),
    lines_total: Schema.optionalKey(Schema.Natural),
    diff: Schema.optionalKey(Schema.String)
  })
}) {
  override get message() {
    return `${this.path} ${SENTENCES[this.reason]}`
  }
}

/** A short unified diff, or `undefined` when there are no lines to compare. */
const diffOf = (path: string, before: Uint8Array, after: Uint8Array): string | undefined => {
  if (!isText(before) || !isText(after)) return undefined
  const [from, to] = [Buffer.from(before).toString("utf8"), Buffer.from(after).toString("utf8")]
  const edits = TextDiff.lines(from, to, { maxEdits: WRITE_DIFF_EDITS_MAX })
  return cutToJsonBytes(TextDiff.unified(edits, { fromFile: path }), WRITE_DIFF_BYTES_MAX)
}

/** A file tool's deadline; a read or write of the largest file takes far less (E12). */
export const FILE_TOOL_TIMEOUT_MS = 10_000

const LineNumber = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

const Input = Schema.Struct({
  path: Schema.String.annotate({ description: "Relative to the workspace; missing folders are made" }),
  content: Schema.String.annotate({ description: "The text; of the whole file, or of the part that mode puts there" }),
  mode: Schema.Literals(["overwrite", "append", "insert", "replace"]).annotate({
    description: "insert puts content before line; replace puts it in place of the lines line to end_line"
  }),
  line: Schema.optionalKey(LineNumber.annotate({ description: "From 1; for insert and replace" })),
  end_line: Schema.optionalKey(LineNumber.annotate({ description: "Inclusive; for replace. Default: line" }))
}).check(
  Schema.makeFilter(({ mode, line, end_line }) => {
    const byLine = mode === "insert" || mode === "replace"
    if (byLine && line === undefined) return { path: ["line"], issue: `mode ${mode} needs a line` }
    if (!byLine && line !== undefined) return { path: ["line"], issue: `mode ${mode} takes no line` }
    if (mode !== "replace" && end_line !== undefined)
      return { path: ["end_line"], issue: `mode ${mode} takes no end_line` }
    return end_line !== undefined && end_line < (line ?? 1)
      ? { path: ["end_line"], issue: "end_line is before line" }
      : undefined
  })
)
type Input = typeof Input.Type

const NEWLINE = Buffer.from("\n")

const asLines = (bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 || endsInNewline(bytes) ? bytes : Buffer.concat([bytes, NEWLINE])

const spliced = (file: WorkspaceFile, input: Input, content: Uint8Array): Result.Result<Uint8Array, WriteRefused> => {
  const { path, bytes } = file
  if (!isText(bytes)) return Result.fail(new WriteRefused({ path, reason: "not_text", details: {} }))
  const lines_total = countLines(bytes)
  const first = input.line ?? 1
  const next = input.mode === "insert" ? first : (input.end_line ?? first) + 1
  if (next > lines_total + 1) {
    return Result.fail(new WriteRefused({ path, reason: "no_such_line", details: { lines_total } }))
  }
  const head = asLines(bytes.subarray(0, lineOffset(bytes, first)))
  const tail = bytes.subarray(lineOffset(bytes, next))
  // A last line that had no newline keeps none when it is replaced.
  const bare = input.mode === "replace" && tail.length === 0 && !endsInNewline(bytes)
  return Result.succeed(Buffer.concat([head, bare ? content : asLines(content), tail]))
}

const proposed = (file: WorkspaceFile, input: Input): Result.Result<Uint8Array, WriteRefused> => {
  const content = Buffer.from(input.content)
  if (input.mode === "overwrite") return Result.succeed(content)
  return input.mode === "append" ? Result.succeed(Buffer.concat([file.bytes, content])) : spliced(file, input, content)
}

/** The bytes after the write, or why there must be none. A version that the lane has not seen is never written over. */
const change = (input: Input, context: ToolContext) => {
  return (current: WorkspaceFile | undefined): Result.Result<Uint8Array, WriteRefused> => {
    if (current === undefined) {
      return input.line === undefined
        ? Result.succeed(Buffer.from(input.content))
        : Result.fail(new WriteRefused({ path: input.path, reason: "missing", details: {} }))
    }
    const { path, bytes, sha256 } = current
    const seen = context.seen(path)
    const after = proposed(current, input)
    if (seen === sha256) return after
    const diff = seen === undefined || Result.isFailure(after) ? undefined : diffOf(path, bytes, after.success)
    return Result.fail(
      new WriteRefused({
        path,
        reason: seen === undefined ? "unseen" : "stale",
        details: diff === undefined ? { sha256 } : { sha256, diff }
      })
    )
  }
}

const outcomeOf = (write: WorkspaceWrite): ToolOutcome => {
  const created = write.before === undefined
  return {
    status: "success",
    summary: `${created ? "created" : write.before === write.after ? "left unchanged" : "changed"} ${write.path}`,
    output: { path: write.path, created, sha256: write.after },
    writes: [write]
  }
}

export const fsWrite: Effect.Effect<Tool, never, Workspace> = Effect.gen(function* () {
  const workspace = yield* Workspace
  const decode = decodeInput(Input)
  return {
    llm: llmView(
      "choir.fs.write",
      "Create a text file in the workspace, or change one. An existing file must have been read before, in its newest version; after your own write you need not read it again.",
      Input
    ),
    effect: "workspace",
    lanes: "both",
    readOnly: false,
    prepare: Effect.fn("fsWrite.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [yield* lockOn(input.path, "X")],
        timeout_ms: FILE_TOOL_TIMEOUT_MS,
        run: (context) =>
          Effect.match(workspace.update(input.path, change(input, context)), {
            onSuccess: outcomeOf,
            onFailure: (error) => refusal(error, error._tag === "WriteRefused" ? error.details : {})
          })
      }
    })
  }
})
