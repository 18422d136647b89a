/** The record that choird keeps of the origin of a workspace's files, beyond the sessions that worked there (docs/security.md, Text from outside). */
import { Schema } from "effect"
import { Sources } from "./Source.ts"

export const WorkspaceLabel = Schema.Struct({
  /** A tainted lane may have written the workspace; these are the sources of what it had read. */
  written_from: Schema.optionalKey(Sources),
  /** People have sent files that are below `.choirtmp`. */
  received: Schema.optionalKey(Schema.Boolean)
})
export type WorkspaceLabel = typeof WorkspaceLabel.Type
