/** Standing grants: calls that a person allows beforehand, in words that name them, up to a number and a date. */
import { Schema } from "effect"
import { AgentId, ApprovalId, GrantId, JobName, SessionId, Sha256 } from "./Ids.ts"
import { ToolName } from "./Tool.ts"

/** For whom a grant is: one job, or the agent whatever it works on. */
export const GrantScope = Schema.Literals(["job", "agent"])
export type GrantScope = typeof GrantScope.Type

const Words = Schema.Array(Schema.String)

/**
 * The calls that a grant names: of this tool, with no other arguments than these, to no other recipients, within no other paths, at no
 * other hosts. With `input_sha256` it is this one input alone. With `tools_sha256` it ends once the image has other tools: a person allowed calls of a
 * program, which a later image may have replaced under its name.
 */
export const GrantWords = Schema.Struct({
  tool: ToolName,
  arguments: Words,
  recipients: Words,
  paths: Words,
  hosts: Words,
  input_sha256: Schema.optionalKey(Sha256),
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
