/** The images of an agent on disk: their order, and those from which an agent has started. */
import { join } from "node:path"
import { Effect, FileSystem, Option, Schema } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import { IMAGES_KEPT } from "#src/choird/runtime/docker/imageNames.ts"
import { writeWhole } from "#src/shared/files/writeWhole.ts"

const LIST = "builds.json"
/** Marks the folder of an image from which an agent came up once. */
const WORKED = "worked"
const decodeList = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(ImageVersion)))
const versionOf = Schema.decodeUnknownOption(ImageVersion)

/** The folder of an agent's images, below choird's `home`. */
export const imagesOf = (home: string, agent_id: AgentId): string => join(home, "images", agent_id)

/** @param home the folder of choird, which alone writes below its `images`. */
export const makeImageList = Effect.fnUntraced(function* (home: string) {
  const fs = yield* FileSystem.FileSystem
  const folderOf = (agent_id: AgentId) => imagesOf(home, agent_id)
  const pathOf = (agent_id: AgentId, version: string) => join(folderOf(agent_id), version)

  /** The agent's builds, the newest first. An unreadable list counts as empty, since a build replaces it. */
  const builds = (agent_id: AgentId) =>
    fs.readFileString(join(folderOf(agent_id), LIST)).pipe(
      Effect.map((text) => Option.getOrElse(decodeList(text), (): ReadonlyArray<ImageVersion> => [])),
      Effect.catchTag("PlatformError", () => Effect.succeed<ReadonlyArray<ImageVersion>>([]))
    )

  /** The list with a version first. */
  const listed = (agent_id: AgentId, version: ImageVersion) =>
    Effect.map(builds(agent_id), (known) =>
      [version, ...known.filter((other) => other !== version)].slice(0, IMAGES_KEPT)
    )

  /** Puts a version first, in one step. */
  const putFirst = Effect.fnUntraced(function* (agent_id: AgentId, version: ImageVersion) {
    const folder = folderOf(agent_id)
    const kept = yield* listed(agent_id, version)
    yield* Effect.provideService(writeWhole(join(folder, LIST), JSON.stringify(kept)), FileSystem.FileSystem, fs)
    return kept
  })

  const workedAt = (agent_id: AgentId, version: ImageVersion) =>
    Effect.option(fs.stat(join(pathOf(agent_id, version), WORKED))).pipe(
      Effect.map(Option.flatMap(({ mtime }) => mtime)),
      Effect.map(Option.map((at) => at.getTime()))
    )

  return {
    folderOf,
    pathOf,
    builds,
    listed,
    putFirst,
    /** Puts a version first and removes what neither the list nor an agent needs. */
    select: Effect.fnUntraced(function* (
      agent_id: AgentId,
      version: ImageVersion,
      in_use: ReadonlyArray<ImageVersion>
    ) {
      const folder = folderOf(agent_id)
      const needed = new Set<string>([...(yield* putFirst(agent_id, version)), ...in_use, LIST])
      for (const name of yield* fs.readDirectory(folder)) {
        if (!needed.has(name)) yield* fs.remove(join(folder, name), { recursive: true, force: true })
      }
    }),
    markWorked: (agent_id: AgentId, version: ImageVersion) =>
      fs.writeFileString(join(pathOf(agent_id, version), WORKED), "", { mode: 0o600 }),
    /** The image that an agent came up from last, unless one ever came up from `version`. */
    lastWorking: Effect.fnUntraced(function* (agent_id: AgentId, version: ImageVersion) {
      if (Option.isSome(yield* workedAt(agent_id, version))) return Option.none<ImageVersion>()
      let best: { readonly version: ImageVersion; readonly at_ms: number } | undefined
      for (const name of yield* fs.readDirectory(folderOf(agent_id))) {
        const other = Option.getOrUndefined(versionOf(name))
        const at_ms = other === undefined ? undefined : Option.getOrUndefined(yield* workedAt(agent_id, other))
        if (other !== undefined && at_ms !== undefined && at_ms >= (best?.at_ms ?? 0)) best = { version: other, at_ms }
      }
      return Option.map(Option.fromUndefinedOr(best), ({ version }) => version)
    })
  }
})
