/** Why a write would have lost something or hit nothing, as a sentence for the model (E10). */
import { Schema, TextDiff } from "effect"
import { cutToJsonBytes, isText } from "./fileText.ts"

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

export class WriteRefused extends Schema.TaggedError<WriteRefused>()("WriteRefused", {
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
export const diffOf = (path: string, before: Uint8Array, after: Uint8Array): string | undefined => {
  if (!isText(before) || !isText(after)) return undefined
  const [from, to] = [Buffer.from(before).toString("utf8"), Buffer.from(after).toString("utf8")]
  const edits = TextDiff.lines(from, to, { maxEdits: WRITE_DIFF_EDITS_MAX })
  return cutToJsonBytes(TextDiff.unified(edits, { fromFile: path }), WRITE_DIFF_BYTES_MAX)
}
