/** Standing grants: calls that a person allows beforehand, in words that name them, up to a number and a date. */
import { Schema } from "effect"
import { AgentId, ApprovalId, GrantId, JobName, SessionId, Sha256 } from "./Ids.ts"
import { ToolName } from "./Tool.ts"

/** For whom a grant is: one job, or the agent whatever it works on. */
export const GrantScope = Schema.Literals(["job", "agent"])
export type GrantScope = typeof GrantScope.Type

/** Arguments that one grant names, and files whose contents it fixes. */
const GRANT_ARGUMENTS_MAX = 64
const GRANT_FILES_MAX = 16

/**
 * The calls that a grant names: of this tool, with these arguments and no other ones, each with the value that a person saw, or with any
 * text where the tool declares the argument free. The files of the workspace that such a call hands out or runs hold these bytes. With
 * `tools_sha256` it ends once the image has other tools: a person allowed calls of a program, which a later image may have replaced under its name.
 */
export const GrantWords = Schema.Struct({
  tool: ToolName,
  given: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      /** Its value as canonical JSON; absent for any text. */
      value: Schema.optionalKey(Schema.String)
    })
  ).check(Schema.isMaxLength(GRANT_ARGUMENTS_MAX)),
  files: Schema.Array(Schema.Struct({ path: Schema.String, sha256: Sha256 })).check(
    Schema.isMaxLength(GRANT_FILES_MAX)
  ),
  tools_sha256: Schema.optionalKey(Sha256)
})
export type GrantWords = typeof GrantWords.Type

/** A row of `grant list`. `words` says in plain English what it covers. */
export const GrantSummary = Schema.Struct({
  grant_id: GrantId,
  agent_id: AgentId,
  scope: GrantScope,
  session_id: Schema.NullOr(SessionId),
  job_name: Schema.NullOr(JobName),
  words: Schema.String,
  uses: Schema.Natural,
  uses_max: Schema.Natural,
  until: Schema.String,
  created_at: Schema.String,
  created_by: Schema.String,
  /** The request whose approval made it. */
  approval_id: ApprovalId,
  revoked_at: Schema.NullOr(Schema.String)
})
export type GrantSummary = typeof GrantSummary.Type
