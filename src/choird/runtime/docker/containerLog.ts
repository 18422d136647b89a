/** The output of a container, read from the engine until the container ends, across restarts of the engine (json-file logs). */
import type { Readable } from "node:stream"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Effect, Option, Result, Stream } from "effect"
import { type ContainerOutput, OUTPUT_REST_MS } from "#src/choird/runtime/ContainerOutput.ts"
import { DockerEngine, dockerError, type DockerError } from "./DockerEngine.ts"
import { DOCKER_RECONNECT_MS } from "./ContainerWatch.ts"

/** One piece of a container's output, as the engine sends it: parts of long lines have 16 KiB. */
const DOCKER_FRAME_BYTES_MAX = 256 * 1024

const WHAT = "the container's output could not be read"
const HEADER_BYTES = 8
const STDERR = 2
const SPACE = 32

export interface LogFrame {
  readonly stderr: boolean
  /** The engine's time of it, of fixed width, so that texts compare as times do. */
  readonly at: string
  readonly bytes: Buffer
}

/** Cuts the engine's multiplexed stream into frames, each with its time in front. Throws at what cannot be one. */
export const frameCutter = () => {
  let held = Buffer.alloc(0)
  return (chunk: Uint8Array): ReadonlyArray<LogFrame> => {
    held = Buffer.concat([held, chunk])
    const frames: Array<LogFrame> = []
    while (held.length >= HEADER_BYTES) {
      const length = held.readUInt32BE(4)
      if (length > DOCKER_FRAME_BYTES_MAX) throw new Error(`a frame of ${length} bytes in a container's log`)
      if (held.length < HEADER_BYTES + length) break
      const payload = held.subarray(HEADER_BYTES, HEADER_BYTES + length)
      const space = payload.indexOf(SPACE)
      frames.push({
        stderr: held[0] === STDERR,
        at: payload.subarray(0, Math.max(space, 0)).toString("latin1"),
        bytes: Buffer.from(payload.subarray(space + 1))
      })
      held = held.subarray(HEADER_BYTES + length)
    }
    return frames
  }
}

/**
 * Forwards the log until the container has `ended` and its log was read to its end. An engine that goes away interrupts it; once it is
 * back, the output since then is read, and nothing twice.
 */
export const followLog = Effect.fn("followLog")(function* (
  container_id: string,
  output: ContainerOutput,
  ended: Effect.Effect<unknown>
) {
  const engine = yield* DockerEngine
  const stdout = output.reader()
  const stderr = output.reader()
  let last = ""

  const read = Effect.gen(function* () {
    const frames = frameCutter()
    const from = last
    const since = from === "" ? {} : { since: Math.floor(Date.parse(from) / 1000) }
    const log = yield* engine.use(WHAT, (docker, abortSignal) =>
      docker
        .getContainer(container_id)
        .logs({ follow: true, stdout: true, stderr: true, timestamps: true, ...since, abortSignal })
    )
    /** Whether all of it was looked at. */
    const pass = (chunk: Uint8Array) => {
      let taken = true
      for (const { at, bytes, stderr: isError } of frames(chunk)) {
        // Parts of one long line have the same time, so that only what an earlier reading saw is left out.
        if (at <= from) continue
        last = at
        taken = (isError ? stderr : stdout).data(bytes) && taken
      }
      return taken
    }
    yield* NodeStream.fromReadable<Uint8Array, DockerError>({
      evaluate: () => log as Readable,
      onError: (cause) => dockerError(WHAT, cause)
    }).pipe(
      Stream.runForEach((chunk) =>
        Effect.try({ try: () => pass(chunk), catch: (cause) => dockerError(WHAT, cause) }).pipe(
          Effect.flatMap((taken) =>
            taken ? Effect.void : Effect.race(Effect.sleep(OUTPUT_REST_MS), Effect.asVoid(ended))
          )
        )
      )
    )
  })

  for (let over = false; !over;) {
    const result = yield* Effect.result(read)
    const waited = yield* Effect.timeoutOption(ended, DOCKER_RECONNECT_MS)
    // A log that ended by itself is whole; one that broke off is asked for once more, for which a removed container has no answer.
    over = Option.isSome(waited) && (Result.isSuccess(result) || result.failure.reason === "missing")
  }
  stdout.end()
  stderr.end()
  output.end()
})
