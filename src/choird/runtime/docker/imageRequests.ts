/** Requests to build: the Dockerfile and the files of a base and of an agent's image. */
import {
  BASE_NAME,
  dockerfileProblems,
  type DockerfileRole,
  DOCKERFILES,
  onBase
} from "#src/choird/repos/dockerfile.ts"
import { isHeld, type RepoFile } from "#src/choird/repos/Tree.ts"
import type { ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import { type BuildRequest, type ContextEntry, ContextUnreadable, repoEntries } from "./runBuild.ts"
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import { GIT_CRED_HELPER } from "#src/shared/git/gitCredential.ts"
import { TEST_PROGRAM } from "./failedBuild.ts"
import { IMAGE_PROGRAMS } from "./imageNames.ts"

/** The folder of the builder's own files, which a repository must not have. */
const OWN = ".choir"

/** A helper that becomes the agent's program, so that git itself is the parent of the process that asks for a credential (D14). */
const HELPER = `#!/bin/sh\nexec ${IMAGE_PROGRAMS.node} ${IMAGE_PROGRAMS.program} ${GIT_CRED_HELPER} "$@"\n`

/** The folder with the modes that it has on disk, as files of a build. */
export const bakedEntries = Effect.fnUntraced(
  function* (path: string) {
    const fs = yield* FileSystem.FileSystem
    const entries: Array<ContextEntry> = [{ name: `${OWN}/choir`, mode: 0o755, content: "folder" }]
    for (const name of (yield* fs.readDirectory(path, { recursive: true })).toSorted()) {
      const { mode, size, type } = yield* fs.lstat(join(path, name))
      if (type !== "File" && type !== "Directory")
        return yield* new ContextUnreadable({ reason: `${join(path, name)} is neither a file nor a folder` })
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
 * The end of every agent's image, whatever its own Dockerfile did. The lists are JSON, so that no shell reads a name and the Dockerfile's
 * own shell is not used.
 */
const bakedFrom = ({ compiled }: ImageSource) =>
  [
    "USER 0:0",
    `COPY ${OWN}/choir/ /choir/`,
    ...compiled.map((path) => `RUN ${JSON.stringify([TEST_PROGRAM, "-x", `/choir/${path}`])}`),
    "WORKDIR /workspace",
    ""
  ].join("\n")

/** A build whose limits are the runtime's. */
export type ImageRequest = Omit<BuildRequest, "memory_mb" | "cpus">

type Labels = Readonly<Record<string, string>>

/** One instruction, since each makes an image of its own. Names and values hold nothing that a builder would read. */
const labelLine = (labels: Labels) =>
  `LABEL ${Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ")}\n`

const textOf = (files: ReadonlyArray<RepoFile>, role: DockerfileRole) => {
  const file = files.find(({ path }) => path === DOCKERFILES[role])
  return file === undefined || !isHeld(file) ? undefined : Buffer.from(file.bytes).toString("utf8")
}

/** Repositories are checked where they are merged; nothing reaches the engine that was not. */
export const sourceRefusal = ({ agent, base }: ImageSource): string | undefined => {
  if (textOf(base, "base") === undefined)
    return `the global repository has no ${DOCKERFILES.base}: copy the one from docker/starter`
  const found = (
    [
      ["base", base],
      ["agent", agent]
    ] as const
  ).flatMap(([role, files]) =>
    dockerfileProblems(role, Buffer.from(textOf(files, role) ?? `FROM ${BASE_NAME}`)).map(
      ({ line, reason }) => `${DOCKERFILES[role]}:${line}: ${reason}`
    )
  )
  return found[0]
}

/** The global repository's own Dockerfile with our labels behind it; it is the operator's, and may reach a network. */
export const baseRequest = (
  { force }: ImageSource,
  entries: ReadonlyArray<ContextEntry>,
  labels: Labels
): ImageRequest => ({
  what: "the base image could not be built",
  entries: entries.map((entry) =>
    entry.name === DOCKERFILES.base && entry.content instanceof Uint8Array
      ? { ...entry, content: Buffer.concat([entry.content, Buffer.from(`\n${labelLine(labels)}`)]) }
      : entry
  ),
  dockerfile: DOCKERFILES.base,
  network: true,
  nocache: force === true
})

/** The agent's Dockerfile on a base, followed by the files that are `baked` in, which no file of the repository can replace. */
export const agentRequest = (
  source: ImageSource,
  base_id: string,
  baked: ReadonlyArray<ContextEntry>,
  { labels, network }: { readonly labels: Labels; readonly network: boolean }
): ImageRequest => {
  const written = onBase(textOf(source.agent, "agent") ?? `FROM ${BASE_NAME}\n`, base_id)
  const text = `${written}\n${bakedFrom(source)}${labelLine(labels)}`
  const repo = repoEntries(source.agent).filter(({ name }) => name !== OWN && !name.startsWith(`${OWN}/`))
  return {
    what: `the image of ${source.agent_id} could not be built`,
    entries: [...repo, { name: `${OWN}/Dockerfile`, mode: 0o644, content: Buffer.from(text) }, ...baked],
    dockerfile: `${OWN}/Dockerfile`,
    network,
    nocache: source.force === true
  }
}
