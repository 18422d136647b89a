/** What an image was built from. It stands beside the folder that the agent is given. */
import { join } from "node:path"
import { Effect, type FileSystem, Option, Schema } from "effect"
import { CommitId, ImageVersionFile } from "#schema/Image.ts"
import { Contents, contentsOf } from "#src/choird/repos/Contents.ts"
import { repoLabel, type Snapshot } from "#src/choird/repos/Repos.ts"
import { AgentId } from "#schema/Ids.ts"

/** Nothing was written. */
export class OtherCommit extends Schema.TaggedError<OtherCommit>()("OtherCommit", {
  agent_id: AgentId,
  wanted: CommitId,
  found: CommitId,
  /** Why the repository could not be asked, where `found` is of an earlier fetch. */
  warning: Schema.NullOr(Schema.String)
}) {
  override get message() {
    const where = this.warning ?? `the ${repoLabel(this)} is at ${this.found} by now`
    return `no image of ${this.wanted} was built, since ${where}. Look at the repository, then: choirctl agent update ${this.agent_id}`
  }
}

/** A repository at a commit. An image of an earlier Choir does not say what it was made of. */
export const SourceState = Schema.Struct({ commit: CommitId, contents: Schema.optionalKey(Contents) })
export type SourceState = typeof SourceState.Type

/** What an image was built from. */
export const Origin = Schema.Struct({ global: SourceState, agent: SourceState })
export type Origin = typeof Origin.Type

const FILE = "origin.json"
const decodeOrigin = Schema.decodeUnknownOption(Schema.fromJsonString(Origin))
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(ImageVersionFile))

export const stateOf = ({ commit, files }: Snapshot): SourceState => ({ commit, contents: contentsOf(files) })

/** @param path the image's folder. */
export const writeOrigin = (fs: FileSystem.FileSystem, path: string, origin: Origin) =>
  fs.writeFileString(join(path, FILE), JSON.stringify(origin), { mode: 0o600 })

/** An image says its commits itself, where an earlier Choir did not write what they held. */
export const readOrigin = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, path: string) {
  const written = Effect.map(fs.readFileString(join(path, FILE)), decodeOrigin)
  const known = yield* Effect.orElseSucceed(written, () => Option.none<Origin>())
  if (Option.isSome(known)) return known
  const version = yield* Effect.option(fs.readFileString(join(path, "choir", "version.json")))
  return Option.map(Option.flatMap(version, decodeVersion), ({ agent_repo_commit, global_repo_commit }): Origin => ({
    global: { commit: global_repo_commit },
    agent: { commit: agent_repo_commit }
  }))
})
