/** The socket of a trial's container: one connection, one line of JSON a message. What comes from it is hostile. */
import { chmodSync, rmSync } from "node:fs"
import { createServer, type Socket } from "node:net"
import { dirname } from "node:path"
import { Deferred, Effect, Option, Schema, Stream } from "effect"
import { FromTrial, ToTrial, TRIAL_MESSAGE_BYTES_MAX } from "#schema/ContainedTrial.ts"
import { EVENT_DEPTH_MAX, isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { makeJsonLines } from "#src/shared/wire/jsonLines.ts"
import { claimSocketPath, SocketRefused } from "#src/shared/wire/sockets.ts"

/** How deep a message may nest: an output as deep as an event may be, and what it is in. Outcomes are compared by recursion. */
const TRIAL_MESSAGE_DEPTH_MAX = EVENT_DEPTH_MAX + 10

/** Characters of the reason why there is no outcome. */
const REASON_CHARS_MAX = 500

/** A trial that gave no outcome. */
export class TrialUnfinished extends Schema.TaggedError<TrialUnfinished>()("TrialUnfinished", {
  reason: Schema.String
}) {
  override get message() {
    return `the trial gave no outcome: ${this.reason}`
  }
}

const decode = Schema.decodeUnknownOption(FromTrial, { onExcessProperty: "error" })
const decodeBounded = (value: unknown) => (isDeeperThan(value, TRIAL_MESSAGE_DEPTH_MAX) ? Option.none() : decode(value))
const encode = Schema.encodeSync(ToTrial)

export const unfinished = (reason: string) =>
  new TrialUnfinished({
    reason: reason
      .replaceAll(/[\p{C}\s]+/gu, " ")
      .slice(0, REASON_CHARS_MAX)
      .toWellFormed()
  })

/** Waits for the one connection that a container's program opens; later ones, which its tools could open, are cut. */
export const listenOnce = Effect.fnUntraced(function* (path: string) {
  yield* claimSocketPath(path)
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(dirname(path), { recursive: true, force: true })))
  const first = yield* Deferred.make<Socket>()
  yield* Effect.acquireRelease(
    Effect.callback<{ readonly close: () => void }, SocketRefused>((resume) => {
      let taken: Socket | undefined
      const server = createServer((socket) => {
        if (taken !== undefined) return socket.destroy()
        taken = socket
        socket.on("error", () => socket.destroy())
        return Deferred.doneUnsafe(first, Effect.succeed(socket))
      })
      const close = () => {
        taken?.destroy()
        server.close()
      }
      server.once("error", ({ message }) =>
        resume(Effect.fail(new SocketRefused({ path, reason: "failed", detail: message })))
      )
      server.listen(path, () => {
        chmodSync(path, 0o600)
        resume(Effect.succeed({ close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )
  return Deferred.await(first)
})

export const writeTo = (socket: Socket, message: ToTrial) =>
  Effect.callback<void>((resume) => {
    if (!socket.writable) return resume(Effect.void)
    return void socket.write(`${JSON.stringify(encode(message))}\n`, () => resume(Effect.void))
  })

/** The messages of a container, one by one and no faster than they are taken. */
export const messagesOf = (socket: Socket) => {
  const read: Array<unknown> = []
  const lines = makeJsonLines(TRIAL_MESSAGE_BYTES_MAX, (value) => void read.push(value))
  return Stream.fromAsyncIterable(socket as AsyncIterable<Buffer>, (cause) => unfinished(String(cause))).pipe(
    Stream.mapEffect((chunk) => {
      const problem = lines(chunk)
      return problem === undefined ? Effect.succeed(read.splice(0)) : Effect.fail(unfinished(problem))
    }),
    Stream.flatMap((values) => Stream.fromIterable(values)),
    Stream.mapEffect((value) =>
      Option.match(decodeBounded(value), {
        onNone: () => Effect.fail(unfinished("its container sent something that is not a valid message")),
        onSome: Effect.succeed
      })
    )
  )
}
