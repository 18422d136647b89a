/** The checks of a finished image before it gets a name: nothing in it may change how, or beside what, an agent is started. */
import { Effect, FileSystem, Option, Schema } from "effect"
import type { DockerfileRole } from "#src/choird/repos/dockerfile.ts"
import { type AgentPrograms, partOf, partsOf } from "#src/choird/runtime/AgentCommand.ts"
import { removeContainer } from "./removeContainer.ts"
import { DockerEngine } from "./DockerEngine.ts"
import { IMAGE_PROGRAMS, MANAGED_LABEL } from "./imageNames.ts"
import { BuildBroke, type ContextEntry, ContextUnreadable, repoEntries } from "./runBuild.ts"
import { createHash } from "node:crypto"
import { basename } from "node:path"
import type { RepoFile } from "#src/choird/repos/Tree.ts"

/** Increased when this program builds the image of the same files differently. */
const BASE_VERSION = 2

/** Files of the agent's own, which no repository can provide. */
const APART_PROGRAM = basename(partOf(IMAGE_PROGRAMS.program, "apart"))
const COMPILED = basename(partOf(IMAGE_PROGRAMS.program, "cache"))

/** The base's programs; none of them comes from a repository. Node may be run and not read (D13). */
const programEntries = Effect.fnUntraced(function* ({ node, program }: AgentPrograms) {
  const fs = yield* FileSystem.FileSystem
  const code = yield* fs.readFile(program)
  const bytes = Number((yield* fs.stat(node)).size)
  const parts = yield* Effect.forEach(Object.values(partsOf(program)), (path) =>
    Effect.map(fs.readFile(path), (content): ContextEntry => {
      const name = basename(path)
      return { name, mode: name === APART_PROGRAM ? 0o755 : 0o644, content }
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
  const hash = createHash("sha256").update(`choir-base/${BASE_VERSION}\0${node_version}\0`)
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

const Names = Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)))
const Texts = Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))

/** The fields of an image that are checked; the engine reports many more. */
export const ImageFacts = Schema.Struct({
  Id: Schema.String,
  Config: Schema.Struct({
    Env: Texts,
    ExposedPorts: Names,
    Healthcheck: Schema.optionalKey(Schema.NullOr(Schema.Unknown)),
    Labels: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.String))),
    OnBuild: Texts,
    Volumes: Names
  })
})
export type ImageFacts = typeof ImageFacts.Type

/** Variables that would change what the agent's own process loads or believes. */
const RESERVED = /^(?:NODE_[A-Z_]*|LD_[A-Z_]*|CHOIR_[A-Z_]*|AGENT_ID)=/u

/** The reason why an image is refused; only this check finds an inherited trigger or volume. */
export const imageProblem = ({ Config: config }: ImageFacts): string | undefined => {
  const reserved = config.Env?.find((entry) => RESERVED.test(entry))
  if (reserved !== undefined)
    return `it sets ${reserved.split("=")[0]}, which would change the agent's own process: set it where it is needed, within RUN`
  if (Object.keys(config.Volumes ?? {}).length > 0)
    return "it has a volume, which an agent cannot have: use another base image"
  if ((config.OnBuild ?? []).length > 0) return "it has ONBUILD triggers: use another base image"
  if (Object.keys(config.ExposedPorts ?? {}).length > 0) return "it exposes a port: use another base image"
  return config.Healthcheck === null || config.Healthcheck === undefined
    ? undefined
    : "it has a health check: use another base image"
}

/** The engine's description of a path, in a header of its answer. */
const PathStat = Schema.Struct({
  headers: Schema.Struct({
    "x-docker-container-path-stat": Schema.StringFromBase64.pipe(
      Schema.decodeTo(Schema.fromJsonString(Schema.Struct({ mode: Schema.Natural })))
    )
  })
})
const decodeStat = Schema.decodeUnknownOption(PathStat)

/** Bits of a file's mode as the engine reports them; the upper ones are its own. */
const PERMISSIONS = 0o777
const COPY_PROGRAM = "COPY choir-agent.* /opt/choir/"
const MODES = new Map<string, { readonly mode: number; readonly fix: string }>([
  [IMAGE_PROGRAMS.node, { mode: 0o111, fix: "COPY --chown=65534:65534 bin/node /opt/choir/bin/node" }],
  [IMAGE_PROGRAMS.tini, { mode: 0o111, fix: "RUN chown 65534:65534 /usr/bin/tini && chmod 0111 /usr/bin/tini" }],
  [IMAGE_PROGRAMS.program, { mode: 0o644, fix: COPY_PROGRAM }],
  [partOf(IMAGE_PROGRAMS.program, "code"), { mode: 0o644, fix: COPY_PROGRAM }],
  [IMAGE_PROGRAMS.rg, { mode: 0o755, fix: "RUN apt-get install --yes ripgrep" }]
])

/** The file that the loader of every program reads first, like LD_PRELOAD. */
const PRELOAD = "/etc/ld.so.preload"

/** The problem of a path; `found` is its mode, undefined for a missing one. */
const pathProblem = (role: DockerfileRole, path: string, found: number | undefined): string | undefined => {
  const wanted = MODES.get(path)
  if (wanted?.mode === found) return undefined
  if (wanted === undefined)
    return `it has ${path}, which would change the agent's own process: set LD_PRELOAD where it is needed, within RUN`
  const is = found === undefined ? "is missing" : `has mode 0${found.toString(8)}`
  const needed = `agents need it with mode 0${wanted.mode.toString(8)}`
  return role === "base"
    ? `${path} ${is}, and ${needed}: write ${wanted.fix}`
    : `the Dockerfile changed ${path}: it ${is}, and ${needed}. Change the Dockerfile so that it leaves this file alone`
}

/**
 * Checks an image's programs without starting any. A program that can read node or tini in a container can read the agent's memory and
 * environment (D13).
 */
export const checkPrograms = Effect.fnUntraced(function* (role: DockerfileRole, image_id: string) {
  const engine = yield* DockerEngine
  const what = "the new image could not be inspected"
  const { id } = yield* Effect.acquireRelease(
    engine.use(what, (docker, abortSignal) =>
      docker.createContainer({ Image: image_id, Cmd: ["true"], Labels: { [MANAGED_LABEL]: "true" }, abortSignal })
    ),
    ({ id }) => Effect.ignore(removeContainer(id), { log: true })
  )
  for (const path of [...MODES.keys(), PRELOAD]) {
    const found = yield* engine
      .use(what, (docker, abortSignal) => docker.getContainer(id).infoArchive({ path, abortSignal }))
      .pipe(
        Effect.map(statOf),
        Effect.catchIf(
          (error) => error.reason === "missing",
          () => Effect.undefined
        )
      )
    const problem = pathProblem(role, path, found)
    if (problem !== undefined) return yield* new BuildBroke({ problem, output: [] })
  }
  return undefined
}, Effect.scoped)

const statOf = (response: unknown): number | undefined =>
  Option.match(decodeStat(response), {
    onNone: () => undefined,
    onSome: ({ headers }) => headers["x-docker-container-path-stat"].mode & PERMISSIONS
  })
