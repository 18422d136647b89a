/** What is copied into an agent's image at `/choir`: the folder that `Images` wrote, and git's helper. */
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import type { ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import { GIT_CRED_HELPER } from "#src/shared/git/gitCredential.ts"
import { type ContextEntry, ContextUnreadable } from "./buildContext.ts"
import { TEST_PROGRAM } from "./failedBuild.ts"
import { IMAGE_PROGRAMS } from "./imageNames.ts"

/** What of an image's repository lies in the way of the builder's own files. */
export const OWN = ".choir"

/** Becomes the agent's program as a helper, so that git itself is the parent of whoever asks for a credential (D14). */
const HELPER = `#!/bin/sh\nexec ${IMAGE_PROGRAMS.node} ${IMAGE_PROGRAMS.program} ${GIT_CRED_HELPER} "$@"\n`

/** The folder with the modes that it has on disk, as files of a build. */
export const bakedEntries = Effect.fnUntraced(
  function* (path: string) {
    const fs = yield* FileSystem.FileSystem
    const entries: Array<ContextEntry> = [{ name: `${OWN}/choir`, mode: 0o755, content: "folder" }]
    for (const name of (yield* fs.readDirectory(path, { recursive: true })).toSorted()) {
      const { mode, size, type } = yield* fs.lstat(join(path, name))
      if (type !== "File" && type !== "Directory")
        return yield* new ContextUnreadable({ reason: `${join(path, name)} is no file and no folder` })
      const content = type === "File" ? { path: join(path, name), bytes: Number(size) } : "folder"
      entries.push({ name: `${OWN}/choir/${name}`, mode: mode & 0o777, content })
    }
    entries.push(
      { name: `${OWN}/choir/bin`, mode: 0o755, content: "folder" },
      { name: `${OWN}/choir/bin/${GIT_CRED_HELPER}`, mode: 0o755, content: Buffer.from(HELPER) }
    )
    return entries
  },
  Effect.catchTag("PlatformError", ({ message }) => Effect.fail(new ContextUnreadable({ reason: message })))
)

/**
 * What every agent's image ends with, whatever its own Dockerfile did. The lists are JSON, so that no shell reads a name and none
 * that the Dockerfile chose is asked.
 */
export const bakedFrom = ({ compiled }: ImageSource) =>
  [
    "USER 0:0",
    `COPY ${OWN}/choir/ /choir/`,
    ...compiled.map((path) => `RUN ${JSON.stringify([TEST_PROGRAM, "-x", `/choir/${path}`])}`),
    "WORKDIR /workspace",
    ""
  ].join("\n")
