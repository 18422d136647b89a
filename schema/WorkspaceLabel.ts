/** The record that choird keeps of the origin of a workspace's files, beyond the sessions that worked there (docs/security.md, Text from outside). */
import { Schema } from "effect"
import { SessionId } from "./Ids.ts"
import { Sources } from "./Source.ts"

/** A file, or a folder with all in it, with where its text came from. */
export const LabelledFile = Schema.Struct({ path: Schema.String, sources: Sources })
export type LabelledFile = typeof LabelledFile.Type

export const WorkspaceLabel = Schema.Struct({
  /** A tainted lane may have written the workspace, or what `only_in` names; these are the sources of what it had read. */
  written_from: Schema.optionalKey(Sources),
  /**
   * The only files with such text; absent where it may be in any. It narrows `written_from`, so that a program of an earlier Choir, which does not
   * look here, takes all files for labelled.
   */
  only_in: Schema.optionalKey(Schema.Array(LabelledFile)),
  /** Sessions with calls that may be writing any file, until their results say which they wrote; with the sources of the lanes. */
  pending: Schema.optionalKey(Schema.Array(Schema.Struct({ session_id: SessionId, sources: Sources }))),
  /** People have sent files that are below `.choirtmp`. */
  received: Schema.optionalKey(Schema.Boolean)
})
export type WorkspaceLabel = typeof WorkspaceLabel.Type
