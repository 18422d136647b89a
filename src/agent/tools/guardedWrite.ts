/**
 * A write to a file of the workspace that replaces no version which its lane has not seen (E10), and the words about it: what changed, with the new line
 * numbers, or why nothing did.
 */
import { Effect, Result, Schema, TextDiff } from "effect"
import type { Workspace, WorkspaceFile, WorkspaceWrite } from "#src/agent/workspace/Workspace.ts"
import { type PathRefused, WORKSPACE_FILE_BYTES_MAX } from "#src/agent/workspace/PathRefused.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { plural } from "#src/shared/text/counts.ts"
import { changeOf, changeText, excerptOf } from "./fileChange.ts"
import { cutToJsonBytes, isText } from "./fileText.ts"
import { watchSendFolder } from "./sendFolder.ts"
import { pathRefusal, refusal, type ToolContext, type ToolOutcome } from "./Tool.ts"

/** A file tool's deadline; a read or write of the largest file takes far less (E12). */
export const FILE_TOOL_TIMEOUT_MS = 10_000
/** Of a refused write's diff, the part that the model is shown. */
const WRITE_DIFF_BYTES_MAX = 4 * 1024
/** Edits that the diff of a refused write looks for before it settles for a coarser one. */
const WRITE_DIFF_EDITS_MAX = 500

const SENTENCES = {
  unseen: "exists and was not read by you yet. Read it first, then write.",
  stale:
    "has changed since you last read or wrote it. Read it again before you write; the diff shows what this write would have changed in it.",
  missing: "does not exist. Create it with a write and mode overwrite.",
  not_text: "is binary, or not UTF-8, and has no lines. Use the mode overwrite, or a command.",
  no_such_line: "has fewer lines than that. Give a line from 1 to the last one; mode append adds lines at the end.",
  unexpected:
    "does not have the text of expect on that line: the numbers are from an older version, or the text is not exact. The lines that are there are shown.",
  unexpected_end:
    "does not have the text of expect_end on end_line: the numbers are from an older version, or the text is not exact. The lines that are there are shown.",
  ambiguous:
    "has the text of expect or expect_end in several places. Give more lines in it, until it is unique: expect continues after line, expect_end begins before end_line. Or edit by old_text.",
  no_match:
    "does not hold old_text. Copy the text exactly as a read shows it, without the line numbers; the nearest lines are shown if there are any.",
  too_large: `would be larger than the ${WORKSPACE_FILE_BYTES_MAX} bytes that file tools take.`,
  many: "holds old_text more than once. Add lines around it until it is unique, or set replace_all."
} as const

/** A write that was refused, with the facts that help to write it again. */
export class WriteRefused extends Schema.TaggedError<WriteRefused>()("WriteRefused", {
  path: Schema.String,
  reason: Schema.Literals(Object.keys(SENTENCES) as Array<keyof typeof SENTENCES>),
  details: Schema.Struct({
    sha256: Schema.optionalKey(Schema.String),
    lines_total: Schema.optionalKey(Schema.Natural),
    diff: Schema.optionalKey(Schema.String),
    occurs: Schema.optionalKey(Schema.Natural),
    lines: Schema.optionalKey(Schema.Array(Schema.Natural)),
    nearest: Schema.optionalKey(Schema.Array(Schema.Struct({ line: Schema.Natural, text: Schema.String })))
  })
}) {
  override get message() {
    const { lines = [], lines_total, occurs } = this.details
    const listed = lines.join(", ")
    const facts = [
      ...(lines_total === undefined ? [] : [`It has ${plural(lines_total, "line")}.`]),
      ...(occurs === undefined ? [] : [`It occurs ${plural(occurs, "time")}.`]),
      ...(listed === "" ? [] : [`The first are on lines ${listed}.`])
    ]
    return [`${this.path} ${SENTENCES[this.reason]}`, ...facts].join(" ")
  }
}

export const refuse = (
  path: string,
  reason: WriteRefused["reason"],
  details: WriteRefused["details"] = {}
): Result.Result<never, WriteRefused> => Result.fail(new WriteRefused({ path, reason, details }))

/** The bytes after a write, from the file as it is; `undefined` where there is none. */
export type Propose = (current: WorkspaceFile | undefined) => Result.Result<Uint8Array, WriteRefused>

/** A short unified diff, or `undefined` when there are no lines to compare. */
const diffOf = (path: string, before: Uint8Array, after: Uint8Array): string | undefined => {
  if (!isText(before) || !isText(after)) return undefined
  const [from, to] = [Buffer.from(before).toString("utf8"), Buffer.from(after).toString("utf8")]
  const edits = TextDiff.lines(from, to, { maxEdits: WRITE_DIFF_EDITS_MAX })
  return cutToJsonBytes(TextDiff.unified(edits, { fromFile: path }), WRITE_DIFF_BYTES_MAX)
}

/** A refusal shows nothing of a version that the lane has not seen, except what the write would have changed in it. */
const guarded = (current: WorkspaceFile, seen: string | undefined, propose: Propose) => {
  const { bytes, path, sha256 } = current
  const after = propose(current)
  if (seen === sha256) return after
  const diff = seen === undefined || Result.isFailure(after) ? undefined : diffOf(path, bytes, after.success)
  return refuse(path, seen === undefined ? "unseen" : "stale", diff === undefined ? { sha256 } : { sha256, diff })
}

interface Versions {
  readonly before: Uint8Array
  readonly after: Uint8Array
}

/** Why a path could not be used once folders for it may have been made. */
const MAY_LEAVE_FOLDERS: ReadonlySet<PathRefused["reason"]> = new Set([
  "no_space",
  "failed",
  "denied",
  "link",
  "not_a_folder"
])

const refused = (error: PathRefused | WriteRefused): ToolOutcome => {
  if (error._tag === "WriteRefused")
    return { ...refusal(error, detailsOf(error)), files: { shows: [error.path], changed: [] } }
  const { files, ...outcome } = pathRefusal(error)
  return MAY_LEAVE_FOLDERS.has(error.reason) ? outcome : { ...outcome, ...(files === undefined ? {} : { files }) }
}

const outcomeOf = ({ made, ...write }: WorkspaceWrite, { after, before }: Versions): ToolOutcome => {
  const created = write.before === undefined
  const change = created || !isText(before) || !isText(after) ? undefined : changeOf(before, after)
  const verb = created ? "created" : write.before === write.after ? "left unchanged" : "changed"
  return {
    status: "success",
    summary: `${verb} ${write.path}${change === undefined ? "" : `: ${changeText(change)}`}`,
    output: {
      path: write.path,
      created,
      sha256: write.after,
      ...(change === undefined
        ? {}
        : {
            from: { ...change.from },
            to: { ...change.to },
            excerpt: excerptOf(after, change).map((line) => ({ ...line }))
          })
    },
    writes: [write],
    files: { shows: [write.path], changed: [write.path, ...(made === undefined ? [] : [made])] }
  }
}

/** The path that a write may change, as its file is labelled; none for one that names no file. */
export const writtenPaths = (path: string): ReadonlyArray<string> => {
  const inside = pathInside(path)
  return inside === undefined || inside === "" ? [] : [inside]
}

/** Writes what `propose` makes of a file whose newest version the lane has seen, or of none. */
export const guardedWrite = (
  workspace: Workspace["Service"],
  context: ToolContext,
  path: string,
  propose: Propose
): Effect.Effect<ToolOutcome> =>
  Effect.suspend(() => {
    let versions: Versions = { before: new Uint8Array(), after: new Uint8Array() }
    const change = (current: WorkspaceFile | undefined) =>
      Result.map(
        current === undefined ? propose(current) : guarded(current, context.seen(current.path), propose),
        (after) => {
          versions = { before: current?.bytes ?? new Uint8Array(), after }
          return after
        }
      )
    return Effect.flatMap(watchSendFolder(workspace), (leave) =>
      Effect.matchEffect(workspace.update(path, change), {
        onSuccess: (write) => leave(outcomeOf(write, versions)),
        onFailure: (error) => Effect.succeed(refused(error))
      })
    )
  })

const detailsOf = ({ details: { lines, nearest, ...details } }: WriteRefused) => ({
  ...details,
  ...(lines === undefined ? {} : { lines: [...lines] }),
  ...(nearest === undefined ? {} : { nearest: nearest.map((line) => ({ ...line })) })
})
