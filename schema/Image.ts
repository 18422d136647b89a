/** An image's description of itself: the file `/choir/version.json`. choird writes it and an agent reports it. */
import { Schema } from "effect"
import { AgentId, Sha256 } from "./Ids.ts"

/** A short hash that names an image of one agent. */
export const ImageVersion = Schema.String.check(Schema.isPattern(/^[0-9a-f]{7,64}$/u)).pipe(
  Schema.brand("ImageVersion")
)
export type ImageVersion = typeof ImageVersion.Type

/** A git commit in full, SHA-1 or SHA-256. */
export const CommitId = Schema.String.check(Schema.isPattern(/^([0-9a-f]{40}|[0-9a-f]{64})$/u)).pipe(
  Schema.brand("CommitId")
)
export type CommitId = typeof CommitId.Type

/** `version.json`. Its two hashes cover everything below `tools/` and `skills/`: paths, contents and executable bits. */
export const ImageVersionFile = Schema.Struct({
  agent_id: AgentId,
  image_version: ImageVersion,
  global_repo_commit: CommitId,
  agent_repo_commit: CommitId,
  tool_manifest_hash: Sha256,
  skill_manifest_hash: Sha256
})
export type ImageVersionFile = typeof ImageVersionFile.Type

/** The hashes of an image's tools and skills. */
export type ManifestHashes = Pick<ImageVersionFile, "tool_manifest_hash" | "skill_manifest_hash">
