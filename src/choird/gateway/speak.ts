/** The delivery of a DM's outbox to its chat, in order: each message is sent and recorded, or given up and told. */
import { Duration, Effect, Queue, Stream } from "effect"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import { restarted } from "#src/shared/background.ts"
import type { ChannelChat } from "./Channel.ts"
import { Gateways } from "./Gateways.ts"
import { OutgoingFiles } from "./OutgoingFiles.ts"
import { CHANNEL_RETRY, tolerant } from "./tolerant.ts"
import { untilRecorded } from "./untilRecorded.ts"

/** The source of notices about undeliverable messages; an undeliverable notice causes no further one. */
const GIVEN_UP = "given-up/"

/** Sends a row and records that, or gives up on it, and then reports that in the log, in `status` and to the person. */
const deliver = Effect.fnUntraced(function* (chat: ChannelChat, row: Outgoing) {
  const gateways = yield* Gateways
  const outbox = yield* Outbox
  const outgoing = yield* OutgoingFiles
  const { refused, sent } = yield* chat.send(row)
  if (refused === undefined) {
    yield* outbox.delivered([row.outbox_id], sent)
    return yield* outgoing.end(row, true)
  }
  const { agent_id, dm, outbox_id } = row
  yield* Effect.logError("gave up on a message", { agent_id, dm, outbox_id, reason: refused.message })
  const isNew = yield* outbox.giveUp(outbox_id, refused.message)
  yield* outgoing.end(row, false)
  if (!isNew || row.source_id.startsWith(GIVEN_UP)) return undefined
  // A person who cannot be reached in this chat gets the notice in another one, if the agent has one.
  const place = refused.is_closed ? yield* gateways.otherPlace(row) : row
  if (place === undefined) return undefined
  return yield* outbox.tell({
    gateway: place.gateway,
    dm: place.dm,
    agent_id,
    source_id: `${GIVEN_UP}${outbox_id}`,
    kind: "notice",
    text: `A message from ${agent_id} to the DM ${dm} could not be delivered: ${refused.description}. An operator can find it with choirctl session events.`,
    in_reply_to: null
  })
})

/**
 * Reads a DM's outbox, answers and notices in order each, until it is interrupted. A stop waits until what is under way is noted; a death between
 * sending and noting it sends one message twice, never none (R43).
 */
export const speak = Effect.fnUntraced(function* (chat: ChannelChat) {
  const outbox = yield* Outbox
  const drain = Effect.gen(function* () {
    for (;;) {
      const row = yield* outbox.next(chat.dm)
      if (row === undefined) break
      yield* untilRecorded(chat, deliver(chat, row))
    }
    return yield* chat.settle?.work ?? Effect.undefined
  })
  const patient = Effect.retry(tolerant(drain), { schedule: CHANNEL_RETRY })
  const wakes = yield* Queue.sliding<void>(1)
  yield* Stream.merge(outbox.wakes(chat.dm), chat.settle?.wakes ?? Stream.never).pipe(
    Stream.runForEach(() => Queue.offer(wakes, undefined)),
    restarted("what wakes the delivery of a chat"),
    Effect.forkScoped({ startImmediately: true })
  )
  let again_ms: number | undefined
  for (;;) {
    yield* Effect.timeoutOption(Queue.take(wakes), again_ms ?? Duration.infinity)
    again_ms = yield* patient
  }
}, Effect.scoped)

/** Copies the files of a DM's messages as soon as they are there, however long the messenger takes none: the agent may change them. */
export const stageFiles = Effect.fnUntraced(function* ({ dm }: Pick<ChannelChat, "dm">) {
  const files = yield* OutgoingFiles
  const outbox = yield* Outbox
  const stage = Effect.gen(function* () {
    for (const row of yield* outbox.filed(dm)) yield* files.stage(row)
  })
  const patient = Effect.retry(tolerant(stage), { schedule: CHANNEL_RETRY })
  yield* Stream.runForEach(outbox.wakes(dm), () => patient)
})
