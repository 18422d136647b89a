/** The origin of an image, kept beside the folder that the agent is given. */
import { join } from "node:path"
import { Effect, FileSystem, Option, Schema } from "effect"
import { CommitId, ImageVersionFile } from "#schema/Image.ts"
import { Contents, contentsOf } from "#src/choird/repos/Tree.ts"
import { repoLabel, type Snapshot } from "#src/choird/repos/Repos.ts"
import { AgentId } from "#schema/Ids.ts"

/** A build of a commit that the repository no longer has at its ref; it wrote nothing. */
export class OtherCommit extends Schema.TaggedError<OtherCommit>()("OtherCommit", {
  agent_id: AgentId,
  wanted: CommitId,
  found: CommitId,
  /** The reason why the fetch failed, where `found` is from an earlier fetch. */
  warning: Schema.NullOr(Schema.String)
}) {
  override get message() {
    const where = this.warning ?? `the ${repoLabel(this)} is now at ${this.found}`
    return `no image of ${this.wanted} was built, since ${where}. Look at the repository, then: choirctl agent update ${this.agent_id}`
  }
}

/** A repository at a commit. An image of an earlier Choir does not list its contents. */
export const SourceState = Schema.Struct({ commit: CommitId, contents: Schema.optionalKey(Contents) })
export type SourceState = typeof SourceState.Type

/** The repositories that an image was built from. */
export const Origin = Schema.Struct({ global: SourceState, agent: SourceState })
export type Origin = typeof Origin.Type

const FILE = "origin.json"
const decodeOrigin = Schema.decodeUnknownOption(Schema.fromJsonString(Origin))
const decodeVersion = Schema.decodeUnknownOption(Schema.fromJsonString(ImageVersionFile))

export const stateOf = ({ commit, files }: Snapshot): SourceState => ({ commit, contents: contentsOf(files) })

/** @param path the image's folder. */
export const writeOrigin = (path: string, origin: Origin) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    fs.writeFileString(join(path, FILE), JSON.stringify(origin), { mode: 0o600 })
  )

/** Reads the origin; an image of an earlier Choir names its commits only. */
export const readOrigin = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const written = Effect.map(fs.readFileString(join(path, FILE)), decodeOrigin)
  const known = yield* Effect.orElseSucceed(written, () => Option.none<Origin>())
  if (Option.isSome(known)) return known
  const version = yield* Effect.option(fs.readFileString(join(path, "choir", "version.json")))
  return Option.map(Option.flatMap(version, decodeVersion), ({ agent_repo_commit, global_repo_commit }): Origin => ({
    global: { commit: global_repo_commit },
    agent: { commit: agent_repo_commit }
  }))
})
