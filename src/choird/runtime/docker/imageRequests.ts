/** What the engine is asked to build: the Dockerfile and the files of a base and of an agent's image. Pure. */
import {
  BASE_NAME,
  dockerfileProblems,
  DOCKERFILES,
  type DockerfileRole,
  onBase
} from "#src/choird/repos/dockerfile.ts"
import { isHeld, type RepoFile } from "#src/choird/repos/Tree.ts"
import type { ImageSource } from "#src/choird/runtime/ContainerRuntime.ts"
import { bakedFrom, OWN } from "./bakedFolder.ts"
import { type ContextEntry, repoEntries } from "./buildContext.ts"
import type { BuildRequest } from "./runBuild.ts"

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
    return `the global repository has no ${DOCKERFILES.base}: copy the one of docker/starter`
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

/** The agent's Dockerfile on a base, and behind it what is `baked` in; nothing of the repository stands in the way of that. */
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
