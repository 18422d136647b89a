/** What a base image is made of, as files of a build and as one key that changes when any of them does. */
import { createHash } from "node:crypto"
import { basename } from "node:path"
import { Effect, FileSystem } from "effect"
import type { AgentPrograms } from "#src/choird/runtime/AgentPrograms.ts"
import type { RepoFile } from "#src/choird/repos/Tree.ts"
import { partOf, partsOf } from "#src/choird/runtime/programParts.ts"
import { type ContextEntry, ContextUnreadable, repoEntries } from "./buildContext.ts"
import { IMAGE_PROGRAMS } from "./imageNames.ts"

/** Raised when the same files shall give another image, because this program builds it differently. */
export const BUILDER_VERSION = 2

/** Files of the agent's own, which none of a repository can be. */
const OFFLINE_PROGRAM = basename(partOf(IMAGE_PROGRAMS.program, "offline"))
const COMPILED = basename(partOf(IMAGE_PROGRAMS.program, "cache"))

/** The base's programs; none of them comes from a repository. Node may be run and not read (D13). */
const programEntries = Effect.fnUntraced(function* ({ node, program }: AgentPrograms) {
  const fs = yield* FileSystem.FileSystem
  const code = yield* fs.readFile(program)
  const bytes = Number((yield* fs.stat(node)).size)
  const parts = yield* Effect.forEach(Object.values(partsOf(program)), (path) =>
    Effect.map(fs.readFile(path), (content): ContextEntry => {
      const name = basename(path)
      return { name, mode: name === OFFLINE_PROGRAM ? 0o755 : 0o644, content }
    })
  )
  return [
    { name: "bin", mode: 0o755, content: "folder" },
    { name: "bin/node", mode: 0o111, content: { path: node, bytes } },
    { name: basename(program), mode: 0o644, content: code },
    ...parts
  ] satisfies ReadonlyArray<ContextEntry>
})

/**
 * Of Node, which is large and comes with its version, the size; of what V8 made of the agent, which is never the same twice, the name:
 * it follows from the code and Node's version. Of everything else the content.
 */
const keyOf = (entries: ReadonlyArray<ContextEntry>, node_version: string) => {
  const hash = createHash("sha256").update(`choir-base/${BUILDER_VERSION}\0${node_version}\0`)
  for (const { content, mode, name } of entries) {
    hash.update(`${name}\0${mode}\0`)
    if (name === COMPILED) continue
    if (content instanceof Uint8Array) hash.update(`${content.length}\0`).update(content)
    else hash.update(content === "folder" ? "/" : `${content.bytes}\0${content.sha256 ?? ""}`)
  }
  return hash.digest("hex").slice(0, 16)
}

/** The whole context of a base and its key. */
export const baseOf = Effect.fnUntraced(function* (programs: AgentPrograms, files: ReadonlyArray<RepoFile>) {
  const own = yield* Effect.mapError(
    programEntries(programs),
    ({ message }) => new ContextUnreadable({ reason: message })
  )
  const taken = new Set(own.map(({ name }) => name))
  const entries = [...repoEntries(files).filter(({ name }) => !taken.has(name)), ...own]
  return { entries, key: keyOf(entries, process.version) }
})
