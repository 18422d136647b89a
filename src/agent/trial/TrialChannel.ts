/** The connection of a contained trial to choird: one socket, one line of JSON a message, the task first. */
import { connect, type Socket } from "node:net"
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import { type ContainedTask, FromTrial, ToTrial, TRIAL_MESSAGE_BYTES_MAX } from "#schema/ContainedTrial.ts"
import type { CallId } from "#schema/Ids.ts"
import type { HostCall, HostReply } from "#src/agent/control/ControlPlane.ts"
import { Denied, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { makeJsonLines } from "#src/shared/wire/jsonLines.ts"

const VERB = "EXECUTE_HOST_TOOL"
/** Host calls whose answers are waited for at once. */
const HOST_CALLS_MAX = 16

/** choird sent no task, or went away. */
export class TrialBroken extends Schema.TaggedError<TrialBroken>()("TrialBroken", { problem: Schema.String }) {
  override get message() {
    return this.problem
  }
}

/** choird, as a trial reaches it. */
export class TrialChannel extends Context.Service<
  TrialChannel,
  {
    /** The one task of this process. */
    readonly task: Effect.Effect<ContainedTask, TrialBroken>
    /** Runs a tool of the host. */
    execute(call: HostCall): Effect.Effect<HostReply, Denied | Unreachable>
    /** Sends the outcome; it has left this process when the effect ends. */
    send(message: FromTrial): Effect.Effect<void>
  }
>()("choir/agent/TrialChannel") {
  /** @param path choird's socket of this container. */
  static readonly layer = (path: string) => Layer.effect(TrialChannel, make(path))
}

type HostAnswer = Extract<ToTrial, { readonly type: "host_reply" }>["reply"]

const decode = Schema.decodeUnknownOption(ToTrial, { onExcessProperty: "error" })
const encode = Schema.encodeSync(FromTrial)

const open = (path: string): Effect.Effect<Socket, TrialBroken, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Socket, TrialBroken>((resume) => {
      const socket = connect(path)
      socket.once("connect", () => resume(Effect.succeed(socket)))
      socket.once("error", ({ message }) => resume(Effect.fail(new TrialBroken({ problem: message }))))
      return Effect.sync(() => socket.destroy())
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

const make = Effect.fnUntraced(function* (path: string) {
  const socket = yield* open(path)
  const task = yield* Deferred.make<ContainedTask, TrialBroken>()
  const waiting = new Map<CallId, Deferred.Deferred<HostAnswer>>()
  const gone = (problem: string) => Deferred.doneUnsafe(task, Effect.fail(new TrialBroken({ problem })))
  const lost = yield* Deferred.make<void>()

  const receive = (value: unknown) => {
    const message = decode(value)
    if (message._tag === "None") return gone("choird sent something that is not a task")
    if (message.value.type === "task") return Deferred.doneUnsafe(task, Effect.succeed(message.value.task))
    const { call_id, reply } = message.value
    const asked = waiting.get(call_id)
    return asked === undefined ? false : Deferred.doneUnsafe(asked, Effect.succeed(reply))
  }
  const lines = makeJsonLines(TRIAL_MESSAGE_BYTES_MAX, receive)
  const end = (problem: string) => {
    gone(problem)
    Deferred.doneUnsafe(lost, Effect.void)
  }
  socket.on("data", (chunk: Buffer) => {
    const problem = lines(chunk)
    if (problem !== undefined) socket.destroy(new Error(problem))
  })
  socket.on("error", ({ message }) => end(message))
  socket.on("close", () => end("choird closed the connection"))

  const send = (message: FromTrial) =>
    Effect.callback<void>((resume) => {
      socket.write(`${JSON.stringify(encode(message))}\n`, () => resume(Effect.void))
    })

  const execute = Effect.fn("TrialChannel.execute")(function* ({ call_id, input, timeout_ms, tool_name }: HostCall) {
    if (waiting.size >= HOST_CALLS_MAX)
      return yield* new Unreachable({ verb: VERB, reason: `already waiting for ${waiting.size} host tool calls` })
    const answered = yield* Deferred.make<HostAnswer>()
    waiting.set(call_id, answered)
    const unreachable = (reason: string) => new Unreachable({ verb: VERB, reason })
    const reply = yield* Effect.andThen(
      send({ type: "host_call", tool_name, call_id, input }),
      Effect.raceFirst(
        Deferred.await(answered),
        Effect.andThen(Deferred.await(lost), Effect.fail(unreachable("choird closed the connection")))
      )
    ).pipe(
      Effect.timeoutOrElse({
        duration: timeout_ms,
        orElse: () => Effect.fail(unreachable(`there was no answer within ${timeout_ms} ms`))
      }),
      Effect.ensuring(Effect.sync(() => waiting.delete(call_id)))
    )
    return "refused" in reply
      ? yield* new Denied({ verb: VERB, type: reply.refused, reason: reply.reason })
      : { status: reply.status, output: reply.output }
  })

  return TrialChannel.of({ task: Deferred.await(task), execute, send })
})
