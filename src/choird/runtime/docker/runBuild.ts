/** One build in the engine, by its classic builder: the context goes in, events come out, and nothing is tagged yet. */
import type { Readable } from "node:stream"
import type Docker from "dockerode"
import { Effect, Schema, Stream } from "effect"
import { lineCutter } from "#src/choird/runtime/ContainerOutput.ts"
import { makeBuildReader } from "./buildEvents.ts"
import { DockerEngine } from "./DockerEngine.ts"
import { createReadStream } from "node:fs"
import type { Pack } from "tar-stream"
import type { RepoFile } from "#src/choird/repos/Tree.ts"

/** A file of a context, in memory or on this host; a folder has no content. */
export interface ContextEntry {
  readonly name: string
  readonly mode: number
  readonly content: Uint8Array | HostFile | "folder"
}

/** A file that is too large to hold in memory. */
interface HostFile {
  readonly path: string
  readonly bytes: number
  /** Of its content, in lowercase hex, where that is known. */
  readonly sha256?: string
}

/** A context that could not be read to its end. */
export class ContextUnreadable extends Schema.TaggedError<ContextUnreadable>()("ContextUnreadable", {
  reason: Schema.String
}) {
  override get message() {
    return `the files of the build cannot be read: ${this.reason}`
  }
}

/** Files of a repository, whose contents were asked for. */
export const repoEntries = (files: ReadonlyArray<RepoFile>): ReadonlyArray<ContextEntry> =>
  files.map(({ bytes, executable, path }) => ({
    name: path,
    mode: executable ? 0o755 : 0o644,
    content: bytes instanceof Uint8Array ? bytes : { path: bytes.file ?? "", bytes: bytes.size, sha256: bytes.sha256 }
  }))

/** One entry; the engine reads it before the next one is begun. */
const write = (pack: Pack, { content, mode, name }: ContextEntry) =>
  Effect.callback<void, ContextUnreadable>((resume) => {
    const header = { name, mode, mtime: new Date(0), uid: 0, gid: 0, uname: "", gname: "" }
    const done = (error?: Error | null) =>
      resume(error ? Effect.fail(new ContextUnreadable({ reason: error.message })) : Effect.void)
    if (content === "folder") {
      pack.entry({ ...header, type: "directory" }, done)
    } else if (content instanceof Uint8Array) {
      pack.entry(header, Buffer.from(content.buffer, content.byteOffset, content.byteLength), done)
    } else {
      const file = createReadStream(content.path)
      const entry = pack.entry({ ...header, size: content.bytes }, done)
      file.on("error", done)
      entry.on("error", done)
      file.pipe(entry)
      return Effect.sync(() => void file.destroy())
    }
    return undefined
  })

/**
 * A stream of the tar, and the work of filling it, which waits for the reader. The stream ends with an error when the work fails or its
 * scope closes early.
 */
export const buildContext = Effect.fnUntraced(function* (entries: ReadonlyArray<ContextEntry>) {
  const { pack } = yield* Effect.promise(() => import("tar-stream"))
  const tar = yield* Effect.acquireRelease(
    Effect.sync(() => pack()),
    (tar) => Effect.sync(() => tar.destroy())
  )
  const fill = Effect.forEach(entries, (entry) => write(tar, entry), { discard: true }).pipe(
    Effect.andThen(Effect.sync(() => tar.finalize())),
    Effect.tapError((error) => Effect.sync(() => tar.destroy(error)))
  )
  return { stream: tar as unknown as Readable, fill }
})

/** Time for a build of an image in the Docker engine, with packages fetched and programs compiled. */
export const IMAGE_BUILD_MS_MAX = 30 * 60_000
/** Processes and threads of one step of a build; a compiler's or a package manager's need far fewer. */
export const BUILD_PROCESSES_MAX = 2048
/** One line of that response, as JSON. */
const BUILD_LINE_BYTES_MAX = 256 * 1024
/** The whole response of the engine to a build. */
export const BUILD_OUTPUT_BYTES_MAX = 64 * 1024 * 1024

export interface BuildRequest {
  /** The beginning of a sentence about a failure. */
  readonly what: string
  readonly entries: ReadonlyArray<ContextEntry>
  /** The Dockerfile's place among them. */
  readonly dockerfile: string
  /** Whether its RUN instructions reach a network. */
  readonly network: boolean
  readonly memory_mb: number
  readonly cpus: number
  /** Runs every instruction, also where the engine has its result. */
  readonly nocache: boolean
}

/** A build that did not end with an image. */
export class BuildBroke extends Schema.TaggedError<BuildBroke>()("BuildBroke", {
  problem: Schema.String,
  /** The instruction that ran last. */
  step: Schema.optionalKey(Schema.String),
  /** The end of what it printed. */
  output: Schema.Array(Schema.String)
}) {
  override get message() {
    return this.problem
  }
}

const broke = (problem: string) => new BuildBroke({ problem, output: [] })

const CPU_PERIOD_US = 100_000
const BYTES_PER_MB = 1024 * 1024

/**
 * The builder has no limit on processes, and no way to forbid new privileges; RLIMIT_NPROC binds root of a mapped namespace, which is
 * nobody's root on the host.
 */
const BUILD_ULIMITS = [
  { Name: "nproc", Soft: BUILD_PROCESSES_MAX, Hard: BUILD_PROCESSES_MAX },
  { Name: "core", Soft: 0, Hard: 0 }
]

/** The response of the engine. Closing the connection tells the engine that nobody waits for the build. */
const answered = (request: BuildRequest, context: Readable) =>
  Effect.acquireRelease(
    Effect.flatMap(DockerEngine, ({ use }) =>
      use(
        request.what,
        (docker, abortSignal) =>
          docker.buildImage(context, {
            version: "1",
            dockerfile: request.dockerfile,
            networkmode: request.network ? "default" : "none",
            memory: request.memory_mb * BYTES_PER_MB,
            memswap: request.memory_mb * BYTES_PER_MB,
            cpuperiod: CPU_PERIOD_US,
            cpuquota: Math.round(request.cpus * CPU_PERIOD_US),
            nocache: request.nocache,
            ulimits: JSON.stringify(BUILD_ULIMITS),
            rm: true,
            forcerm: true,
            abortSignal
            // The client's types do not know `ulimits`; the engine's do.
          } as Docker.ImageBuildOptions),
        { ms_max: IMAGE_BUILD_MS_MAX }
      )
    ),
    (stream) => Effect.sync(() => void (stream as Readable).destroy()),
    { interruptible: true }
  )

const events = Effect.fnUntraced(function* (
  request: BuildRequest,
  context: Readable,
  progress: (line: string) => Effect.Effect<void>
) {
  const stream = yield* answered(request, context)
  const reader = makeBuildReader()
  const cutter = lineCutter(BUILD_LINE_BYTES_MAX)
  let bytes = 0
  const push = Effect.fnUntraced(function* (line: string) {
    const lines = reader.push(line)
    if (lines === undefined) return yield* broke("the engine's answer has an unknown format")
    yield* Effect.forEach(lines, progress, { discard: true })
  })
  yield* Stream.fromAsyncIterable(stream as unknown as AsyncIterable<Buffer>, (cause) => broke(String(cause))).pipe(
    Stream.runForEach((chunk) => {
      bytes += chunk.length
      return bytes > BUILD_OUTPUT_BYTES_MAX
        ? Effect.fail(broke(`it printed more than ${BUILD_OUTPUT_BYTES_MAX} bytes`))
        : Effect.forEach(cutter.push(chunk), push, { discard: true })
    })
  )
  yield* Effect.forEach(cutter.end(), push, { discard: true })
  return reader.outcome()
})

/** Builds and gives the id of the image, which has no name yet. A build that is interrupted ends in the engine too. */
export const runBuild = Effect.fn("runBuild")(
  function* (request: BuildRequest, progress: (line: string) => Effect.Effect<void>) {
    const { fill, stream } = yield* buildContext(request.entries)
    // A context that cannot be read matters more than what the engine says of the part that it got.
    const failedFill = Effect.andThen(fill, Effect.never)
    const { error, image_id, step, tail } = yield* Effect.raceFirst(events(request, stream, progress), failedFill)
    if (image_id !== undefined && error === undefined) return image_id
    return yield* new BuildBroke({
      problem: error ?? "the engine aborted it",
      ...(step === undefined ? {} : { step }),
      output: tail
    })
  },
  Effect.scoped,
  Effect.timeoutOrElse({
    duration: IMAGE_BUILD_MS_MAX,
    orElse: () => Effect.fail(broke(`it took longer than ${IMAGE_BUILD_MS_MAX / 60_000} minutes`))
  })
)
