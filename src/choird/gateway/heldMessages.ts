/** Messages that are parts of one (R42): Telegram cuts a long text into several messages, and sends an album file by file. */
import { createHash } from "node:crypto"
import { Clock, Effect, Queue } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { retryDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import type { Join } from "#src/choird/queues/messageJoin.ts"
import type { Arrival } from "./Arrival.ts"
import { arrivalText } from "./arrivalText.ts"

/** UTF-16 units above which a text may be a piece of a longer one: apps cut it at 4,096, or before that at the end of a paragraph or a word. */
const JOIN_TEXT_CHARS_MIN = 2048
/** UTF-16 units of a full piece, which has one less where a pair would have been cut. */
const JOIN_TEXT_CHARS_FULL = 4095
/** UTF-16 units at the end of a piece in which every app finds a blank to cut at. */
const JOIN_TEXT_BLANK_CHARS = 300
/** The wait for the next piece of a text, and for the next file of an album. */
const JOIN_TEXT_QUIET_MS = 1500
const JOIN_ALBUM_QUIET_MS = 1000
/** The wait for the next one of several messages that a person forwards at once. */
const JOIN_FORWARD_QUIET_MS = 1000

/** The key of messages that a person forwards one after the other. */
const FORWARDS = "forwards"

/** A single message that was forwarded in private. In a group each is a message of its own. */
const isForward = ({ album, forwarded, group }: Arrival): boolean =>
  forwarded === true && album === undefined && group === undefined

/** A piece of full length without a blank near its end was cut within a word; at every other cut a blank is lost. */
const isCutInWord = (text: string): boolean =>
  text.length >= JOIN_TEXT_CHARS_FULL && !/\s/u.test(text.slice(-JOIN_TEXT_BLANK_CHARS))

/** Characters of the name of what a message brings of others. */
const KEY_CHARS = 16

const wordKey = (value: unknown): string =>
  createHash("sha256")
    .update(JSON.stringify(value ?? null))
    .digest("hex")
    .slice(0, KEY_CHARS)

/**
 * The messages of a person that belong together. Pure.
 *
 * @param problem choird's remark on a file that did not arrive
 * @param next the message behind it, where that is known: an app sends what a person adds to a forward before it
 */
export const joinOf = (arrival: Arrival, problem: string | undefined, next?: Arrival): Join => {
  const { album, file, forwarded = false, origin, reply_on, quoted, text = "", thread_id, user_id } = arrival
  const sender = `${user_id}/${thread_id ?? ""}`
  const words = [text, problem ?? ""].filter((line) => line !== "").join("\n")
  if (isForward(arrival)) {
    // Each has a label of its own, since each may be from somebody else.
    const all = [arrivalText(arrival), problem ?? ""].filter((line) => line !== "").join("\n")
    return { sender, key: FORWARDS, text: all, glue: "\n", quiet_ms: JOIN_FORWARD_QUIET_MS }
  }
  const isRemark = next !== undefined && isForward(next) && next.user_id === user_id && next.thread_id === thread_id
  if (isRemark && album === undefined && text.length <= JOIN_TEXT_CHARS_MIN)
    return { sender, key: `${FORWARDS}/remark`, text: words, glue: "\n", quiet_ms: JOIN_FORWARD_QUIET_MS }
  // What somebody else wrote has its label before its first piece alone, and a reply has its quote there.
  const whose = forwarded ? `forwarded ${wordKey([origin?.kind, origin?.name, origin?.handle])}` : "own"
  const own = quoted === undefined ? whose : `${whose}/reply ${wordKey([quoted, reply_on])}`
  if (file !== undefined)
    return album === undefined
      ? { sender, key: "file", text: words, glue: "\n", quiet_ms: 0 }
      : { sender, key: `album/${album}/${own}`, text: words, glue: "\n", quiet_ms: JOIN_ALBUM_QUIET_MS }
  return {
    sender,
    key: `text/${own}`,
    text: words,
    glue: isCutInWord(text) ? "" : "\n",
    quiet_ms: text.length > JOIN_TEXT_CHARS_MIN ? JOIN_TEXT_QUIET_MS : 0
  }
}

/** The shortest and the longest wait between two looks at the messages that are held. */
const HELD_LOOK_MS_MIN = 200
const HELD_LOOK_MS_MAX = 60_000

/**
 * Releases held messages once no further part of them is expected, until the scope ends. A further part may still come from a gateway that is
 * storing messages, or that has stored none in this life of choird; its messages are held up to JOIN_MS_MAX. Returns what the storing of a
 * gateway's messages is wrapped in.
 */
export const makeHeldMessages = Effect.gen(function* () {
  const inbox = yield* Inbox
  const looks = yield* Queue.sliding<void>(1)
  const ready = new Set<ResourceName>()

  const look = Effect.gen(function* () {
    const due_ms = yield* retryDatabase(inbox.release([...ready]))
    if (due_ms === undefined) return yield* Queue.take(looks)
    const wait_ms = due_ms - (yield* Clock.currentTimeMillis)
    const wait = Effect.sleep(Math.min(Math.max(wait_ms, HELD_LOOK_MS_MIN), HELD_LOOK_MS_MAX))
    return yield* Effect.raceFirst(wait, Queue.take(looks))
  })
  yield* look.pipe(
    Effect.catchDefect((defect) =>
      Effect.andThen(Effect.logError("releasing held messages failed", defect), Effect.sleep(HELD_LOOK_MS_MAX))
    ),
    Effect.forever,
    restarted("the release of held messages"),
    Effect.forkScoped
  )

  return <A, E, R>(gateway: ResourceName, storing: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      ready.delete(gateway)
      const stored = yield* storing
      ready.add(gateway)
      yield* Queue.offer(looks, undefined)
      return stored
    })
})
