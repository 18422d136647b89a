/** Each kind of message to Telegram by each answer of it: how its row ends. What ends as delivered has arrived, and nothing else. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { JobName } from "#schema/Ids.ts"
import { arrivedFiles, leave, setUpOutgoing, withFiles } from "../../support/outgoingWorld.ts"
import { SESSION, USER } from "../../support/telegramBot.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"
import type { Fault } from "../../support/testing/TelegramFaults.ts"

const start = Effect.forkChild({ startImmediately: true })

type World = Effect.Success<typeof setUpOutgoing>

const latin = (text: string) => Buffer.from(text, "latin1")
const PNG = latin("\x89PNG\r\n\x1a\nx")
const TABLE = "| a | b |\n|---|---|\n| 1 | two words |"
const DIG = JobName.make("dig")

const file =
  (...files: ReadonlyArray<Buffer>) =>
  ({ put, workspace }: World) =>
    put("**caption**", withFiles(...files.map((bytes, at) => leave(workspace, `x/${at}.bin`, bytes))))

interface Kind {
  /** The method that sends it first. */
  readonly method: string
  put(world: World): Effect.Effect<void>
  /** What must be in the chat in the end: words of its texts, or so many files. */
  readonly words?: string
  readonly files?: number
  /** Refusals of its content in Telegram's words, each of which it survives in another form. */
  readonly refusals: ReadonlyArray<string>
}

const KINDS: Readonly<Record<string, Kind>> = {
  "a text": {
    method: "sendMessage",
    put: ({ put }) => put("it is **done**"),
    words: "it is done",
    refusals: [
      "can't parse entities: unsupported type",
      "message is too long",
      "message text is empty",
      "ENTITY_BOUNDS_INVALID"
    ]
  },
  "an answer to a message": {
    method: "sendMessage",
    put: ({ put }) => put("it is done", { reply_to: 1, thread_id: 7 }),
    words: "it is done",
    refusals: ["message thread not found", "TOPIC_CLOSED", "TOPIC_DELETED", "message to be replied not found"]
  },
  "a rich message": {
    method: "sendRichMessage",
    put: ({ put, world }) => Effect.suspend(() => ((world.rich = true), put(TABLE))),
    words: "two words",
    refusals: ["RICH_MESSAGE_INVALID", "can't parse rich message: too many columns"]
  },
  "a long text": {
    method: "sendDocument",
    put: ({ put }) => put("word ".repeat(7000)),
    files: 1,
    refusals: []
  },
  "a document": {
    method: "sendDocument",
    put: file(latin("\0\x01")),
    files: 1,
    refusals: ["CAPTION_ENTITIES_INVALID"]
  },
  "a photo": {
    method: "sendPhoto",
    put: file(PNG),
    files: 1,
    refusals: ["PHOTO_INVALID_DIMENSIONS", "IMAGE_PROCESS_FAILED", "PHOTO_SAVE_FILE_INVALID"]
  },
  "a voice note": {
    method: "sendVoice",
    put: file(latin(`OggS${"\0".repeat(24)}OpusHead`)),
    files: 1,
    refusals: ["VOICE_MESSAGES_FORBIDDEN", "user restricted receiving of voice messages"]
  },
  "a video": {
    method: "sendVideo",
    put: file(latin("\0\0\0 ftypisom\0")),
    files: 1,
    refusals: ["VIDEO_CONTENT_TYPE_INVALID"]
  },
  "a sound": { method: "sendAudio", put: file(latin("ID3\x04")), files: 1, refusals: ["wrong file type"] },
  "an album": {
    method: "sendMediaGroup",
    put: file(PNG, Buffer.concat([PNG, PNG])),
    files: 2,
    refusals: ['failed to send message #1 with the error message "PHOTO_INVALID_DIMENSIONS"', "group send failed"]
  },
  "a card": {
    method: "sendMessage",
    put: ({ put }) =>
      put("approve?", {
        source: "choird",
        source_id: "approval/1",
        form: { buttons: [[{ text: "Approve", data: "a:1:0" }]] }
      }),
    words: "approve?",
    refusals: ["BUTTON_DATA_INVALID", "reply markup is too long"]
  },
  "the edit of a card": {
    method: "editMessageText",
    put: ({ bot, put, telegram }) =>
      Effect.gen(function* () {
        const card = { chat_id: USER, text: "approve?" }
        const headers = { "content-type": "application/json" }
        const send = { method: "POST", headers, body: JSON.stringify(card) }
        yield* Effect.promise(() => fetch(`${telegram.url}/bot${bot.token}/sendMessage`, send))
        const edited_id = String((yield* bot.sent.at(0)).message_id)
        yield* put("approved.", {
          source: "choird",
          source_id: "approval/1/end",
          form: { edits: "approval/1" },
          edited_id
        })
      }),
    words: "approved.",
    refusals: [
      "message to edit not found",
      "message can't be edited",
      "MESSAGE_ID_INVALID",
      "there is no text in the message to edit"
    ]
  },
  "a line on a job": {
    method: "sendMessage",
    put: ({ bot, jobs, put }) =>
      Effect.suspend(() => {
        jobs.set(DIG, false)
        return Effect.andThen(bot.switchTopicsOn, put("step 1", { source_id: `${SESSION}:4:dig`, kind: "notice" }))
      }),
    words: "step 1",
    refusals: ["message thread not found", "TOPIC_CLOSED"]
  }
}

/** Runs one row against faults, until it has ended; returns its end, and what was sent meanwhile. */
const ended = Effect.fnUntraced(function* (kind: Kind, fail: (world: World) => Effect.Effect<void>) {
  const world = yield* setUpOutgoing
  // The message that the answer quotes.
  yield* world.bot.text(USER, "hello")
  yield* kind.put(world)
  yield* fail(world)
  const running = yield* start(world.run)
  const ends = Effect.map(world.outcomes.all, (all) => all.filter((one) => /^(?:delivered|given up) 1\b/u.test(one)))
  while ((yield* ends).length === 0) {
    yield* TestClock.adjust("500 millis")
    for (let turn = 0; turn < 4; turn += 1) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
  running.interruptUnsafe()
  const [end = ""] = yield* ends
  return { end, sent: yield* world.bot.sent.all, files: yield* arrivedFiles(world.bot), world }
})

type Ended = Effect.Success<ReturnType<typeof ended>>

/** How often the whole of a row is in the chat. */
const arrivals = ({ files, sent, world }: Ended, kind: Kind) =>
  Effect.gen(function* () {
    if (kind.files !== undefined) return files.length / kind.files
    const shown = yield* Effect.forEach(sent, ({ message_id }) => world.bot.message(message_id))
    const texts = shown.map((message) => message?.text ?? message?.rich_shown?.text ?? "")
    const withWords = texts.filter((text) => text.includes(kind.words ?? "")).length
    return withWords + files.filter(({ bytes }) => bytes.toString().includes(kind.words ?? "")).length
  })

const strike =
  (method: string, what: Fault, times = 1) =>
  ({ bot }: World) =>
    bot.fail(method, what, times)

/** Answers after which the same call is made again. */
const PASSING: Readonly<Record<string, Fault>> = {
  "429": fault.tooManyRequests(3),
  "500": fault.serverError,
  "502 as a page": fault.badGateway,
  "a cut before the call": fault.cut,
  "a person who blocked the bot for a while": fault.blocked,
  "a person who has not written yet": fault.unknownChat
}

/** Answers after which nothing will ever reach the chat. */
const FINAL: ReadonlyArray<string> = [
  "bot was kicked from the group chat",
  "bot was kicked from the supergroup chat",
  "bot is not a member of the supergroup chat",
  "user is deactivated",
  "the group chat was deleted"
]

for (const [name, kind] of Object.entries(KINDS))
  describe(`${name} to Telegram`, () => {
    const edits = kind.method === "editMessageText"

    it.effect("is delivered once after what passes: 429, 5xx, a cut before the call, a bot that was blocked", () =>
      Effect.gen(function* () {
        for (const [what, passing] of Object.entries(PASSING)) {
          const run = yield* ended(kind, strike(kind.method, passing))
          assert.strictEqual(run.end, "delivered 1", what)
          assert.strictEqual(yield* arrivals(run, kind), 1, what)
        }
      })
    )

    it.effect("arrives at most twice where the connection is cut after the call", () =>
      Effect.gen(function* () {
        const run = yield* ended(kind, strike(kind.method, fault.cutAfterAccept))
        assert.strictEqual(run.end, "delivered 1")
        assert.strictEqual(yield* arrivals(run, kind), edits ? 1 : 2)
      })
    )

    it.effect("is given up at once where the chat is gone, and follows a chat that moved", () =>
      Effect.gen(function* () {
        for (const reason of FINAL) {
          const run = yield* ended(kind, strike(kind.method, fault.forbidden(reason), 100))
          assert.match(run.end, /^given up 1: /u, reason)
          assert.strictEqual(yield* arrivals(run, kind), 0, reason)
        }
        const moved = yield* ended(kind, strike(kind.method, fault.migrated(-1005)))
        assert.strictEqual(moved.end, "delivered 1")
        // The card that is edited stays in the group as it was before.
        const sent = moved.sent.slice(edits ? 1 : 0)
        assert.deepStrictEqual([...new Set(sent.map(({ chat }) => chat.id))], [-1005])
      })
    )

    it.effect("arrives in another form where its content is refused, and else stands as failed", () =>
      Effect.gen(function* () {
        for (const reason of kind.refusals) {
          const run = yield* ended(kind, strike(kind.method, fault.badRequest(reason)))
          assert.strictEqual(run.end, "delivered 1", reason)
          assert.strictEqual(yield* arrivals(run, kind), 1, reason)
        }
        const run = yield* ended(kind, strike("*", fault.refusedContent, 1000))
        assert.match(run.end, /^given up 1: .* 400 /u)
        assert.strictEqual(yield* arrivals(run, kind), 0)
      })
    )
  })

describe("what is not a message", () => {
  it.effect("keeps no message back, whatever Telegram answers to it", () =>
    Effect.gen(function* () {
      const beside = [
        "getMe",
        "getMyCommands",
        "setMyCommands",
        "deleteMyCommands",
        "createForumTopic",
        "editForumTopic"
      ]
      for (const what of [
        ...Object.values(PASSING),
        fault.refusedContent,
        fault.unauthorized,
        fault.forbidden(FINAL[0] ?? ""),
        fault.silence,
        fault.cutAfterAccept
      ]) {
        const run = yield* ended(KINDS["a line on a job"] as Kind, ({ bot }) =>
          Effect.forEach(beside, (method) => bot.fail(method, what, 1000), { discard: true })
        )
        assert.strictEqual(run.end, "delivered 1", JSON.stringify(what))
        assert.strictEqual(yield* arrivals(run, KINDS["a line on a job"] as Kind), 1)
      }
    })
  )
})
