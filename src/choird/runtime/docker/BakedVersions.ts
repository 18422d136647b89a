/** The version that the image in a container claims, read before anything in it runs. */
import type { Readable } from "node:stream"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import type Docker from "dockerode"
import { extract } from "tar-stream"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { DockerEngine, type DockerError } from "./DockerEngine.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

/** Images whose `version.json` choird remembers; the one read first is forgotten first. */
const BAKED_VERSIONS_MAX = 256

const PATH = "/choir/version.json"

/** The one file of an archive, up to its allowed size. */
const firstFile = async (archive: Readable): Promise<string> => {
  const entries = extract()
  archive.on("error", (error) => entries.destroy(error)).pipe(entries)
  for await (const entry of entries) {
    if (entry.header.type !== "file" || (entry.header.size ?? 0) > MANIFEST_BYTES_MAX) break
    const chunks: Array<Uint8Array> = []
    for await (const chunk of entry) chunks.push(chunk as Uint8Array)
    return Buffer.concat(chunks).toString("utf8")
  }
  throw new Error("it is not a file")
}

/** Checks the versions that images claim. */
export class BakedVersions extends Context.Service<
  BakedVersions,
  {
    /**
     * Compares the image's version with the folder that it was built from; a container of anything else is not started. An image never
     * changes under its id, so its version is read once, from its first container.
     */
    require(
      container: Docker.Container,
      image_id: string,
      folder: string
    ): Effect.Effect<void, ContainerError | DockerError>
  }
>()("choir/choird/BakedVersions") {
  static readonly layer = Layer.effect(
    BakedVersions,
    Effect.suspend(() => make)
  )
}

const builtVersion = (folder: string) =>
  Effect.try({
    try: () => readFileSync(join(folder, "choir", "version.json"), "utf8"),
    catch: (cause) =>
      new ContainerError({
        reason: "failed",
        problem: `the image folder ${folder} cannot be read: ${String(cause)}`,
        fix: "Build the agent again: choirctl agent build"
      })
  })

const make = Effect.gen(function* () {
  const engine = yield* DockerEngine
  const known = new BoundedMap<string, string>(BAKED_VERSIONS_MAX)

  const bakedVersion = Effect.fnUntraced(function* (container: Docker.Container, image_id: string) {
    const read = known.get(image_id)
    if (read !== undefined) return read
    const baked = yield* engine.use(`${PATH} of the image could not be read`, (_, abortSignal) =>
      container.getArchive({ path: PATH, abortSignal }).then((archive) => firstFile(archive as Readable))
    )
    known.setInPlace(image_id, baked)
    return baked
  })

  return BakedVersions.of({
    require: Effect.fn("BakedVersions.require")(function* (container, image_id, folder) {
      if ((yield* bakedVersion(container, image_id)) === (yield* builtVersion(folder))) return
      return yield* new ContainerError({
        reason: "refused",
        problem: `the image has a different ${PATH} from the one that was built`,
        fix: "Build the agent again: choirctl agent build --force"
      })
    })
  })
})
