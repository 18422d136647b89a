/**
 * A second messenger, unlike Telegram in all that a channel may be: letters of any length, without buttons, edits, topics or signs of life; ids are
 * words; a failure has no code. It shows that the port is no Telegram in disguise.
 */
import { Deferred, Effect, Queue } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import type { Arrival } from "#src/choird/gateway/Arrival.ts"
import type { ChannelChat, ChannelDm, Sending } from "#src/choird/gateway/Channel.ts"
import { ChannelFailed } from "#src/choird/gateway/ChannelFailed.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { speak, stageFiles } from "#src/choird/gateway/speak.ts"
import { CHANNEL_RETRY, tolerant } from "#src/choird/gateway/tolerant.ts"
import { whileHere } from "#src/choird/gateway/untilRecorded.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { makeJournal } from "./Journal.ts"

/** What happens to the next letter. `held` takes it and says so only once the post is told to. */
export type Weather = "storm" | "hawk" | "loft closed" | "held"

const REFUSED: Readonly<Partial<Record<Weather, Sending>>> = {
  hawk: { refused: { description: "a hawk took it", message: "pigeon post: a hawk took it", is_closed: false } },
  "loft closed": { refused: { description: "the loft is closed", message: "pigeon post: closed", is_closed: true } }
}

/** The pause of a pigeon that turned back. */
const STORM_MS = 10

export const makePigeonPost = Effect.gen(function* () {
  const letters = makeJournal<{ readonly dm: ResourceName; readonly text: string }>()
  const arrivals = yield* Queue.unbounded<Arrival>()
  const files = new Map<string, Uint8Array | ChannelFailed>()
  const weather: Array<Weather> = []
  const released = Deferred.makeUnsafe<void>()

  /** A file that is not there is lost for good. */
  const download = ({ file_id }: { readonly file_id: string }) => {
    const found = files.get(file_id)
    if (found instanceof Uint8Array) return Effect.succeed(found)
    // A pigeon that turned back comes again.
    if (found !== undefined) files.set(file_id, new TextEncoder().encode(file_id))
    return Effect.fail(
      found ?? new ChannelFailed({ description: "the letter was empty", is_final: true, retry_after_ms: null })
    )
  }

  const chatOf = ({ name }: ChannelDm): ChannelChat => {
    const left = Deferred.makeUnsafe<void>()
    const send = (row: Outgoing): Effect.Effect<Sending> =>
      Effect.suspend(() => {
        const sky = weather.shift()
        if (sky === "storm") return Effect.andThen(whileHere({ left }, Effect.sleep(STORM_MS)), send(row))
        const refused = sky === undefined ? undefined : REFUSED[sky]
        if (refused !== undefined) return Effect.succeed(refused)
        letters.record({ dm: name, text: row.text })
        return Effect.as(sky === "held" ? Deferred.await(released) : Effect.void, {})
      })
    return { dm: name, left, send }
  }

  /** Runs a loft until it is interrupted. */
  const run = Effect.fnUntraced(function* (gateway: ResourceName, dms: ReadonlyArray<ChannelDm>) {
    const gateways = yield* Gateways
    const hear = Effect.gen(function* () {
      for (;;) {
        const arrival = yield* Queue.take(arrivals)
        yield* Effect.retry(tolerant(gateways.receive(gateway, [arrival], download)), { schedule: CHANNEL_RETRY })
      }
    })
    const chats = dms.map(chatOf)
    yield* Effect.all([hear, ...chats.flatMap((chat) => [speak(chat), stageFiles(chat)])], {
      concurrency: "unbounded",
      discard: true
    })
  })

  return {
    letters: letters.journal,
    /** A person sends a letter. */
    arrive: (arrival: Arrival) => Queue.offer(arrivals, arrival),
    files,
    weather,
    /** Says that the held letters were taken. */
    release: Deferred.succeed(released, undefined),
    run
  }
})
