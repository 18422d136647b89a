/** One build in the engine, by its classic builder: the context goes in, events come out, and nothing is tagged yet. */
import type { Readable } from "node:stream"
import type Docker from "dockerode"
import { Effect, Schema, Stream } from "effect"
import { lineCutter } from "#src/choird/runtime/ContainerOutput.ts"
import { buildContext, type ContextEntry } from "./buildContext.ts"
import { makeBuildReader } from "./buildEvents.ts"
import type { DockerEngine } from "./DockerEngine.ts"

/** A build of an image in the Docker engine, packages fetched and programs compiled. */
export const IMAGE_BUILD_MS_MAX = 30 * 60_000
/** Processes and threads of one step of a build; a compiler's or a package manager's need far fewer. */
export const BUILD_PROCESSES_MAX = 2048
/** One line of what the engine tells of a build, as JSON. */
const BUILD_LINE_BYTES_MAX = 256 * 1024
/** All that the engine tells of a build. */
export const BUILD_OUTPUT_BYTES_MAX = 64 * 1024 * 1024

export interface BuildRequest {
  /** What is built, as a sentence's beginning. */
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

/** The engine is told that nobody waits for the build any more by the end of the connection. */
const answered = (engine: DockerEngine["Service"], request: BuildRequest, context: Readable) =>
  Effect.acquireRelease(
    engine.use(
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
    ),
    (stream) => Effect.sync(() => void (stream as Readable).destroy()),
    { interruptible: true }
  )

const events = Effect.fnUntraced(function* (
  engine: DockerEngine["Service"],
  request: BuildRequest,
  context: Readable,
  progress: (line: string) => Effect.Effect<void>
) {
  const stream = yield* answered(engine, request, context)
  const reader = makeBuildReader()
  const cutter = lineCutter(BUILD_LINE_BYTES_MAX)
  let bytes = 0
  const push = Effect.fnUntraced(function* (line: string) {
    const lines = reader.push(line)
    if (lines === undefined) return yield* broke("the engine's answer has an unknown form")
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
  function* (engine: DockerEngine["Service"], request: BuildRequest, progress: (line: string) => Effect.Effect<void>) {
    const { fill, stream } = yield* buildContext(request.entries)
    // A context that cannot be read matters more than what the engine says of the part that it got.
    const failedFill = Effect.andThen(fill, Effect.never)
    const { error, image_id, step, tail } = yield* Effect.raceFirst(
      events(engine, request, stream, progress),
      failedFill
    )
    if (image_id !== undefined && error === undefined) return image_id
    return yield* new BuildBroke({
      problem: error ?? "the engine broke it off",
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
