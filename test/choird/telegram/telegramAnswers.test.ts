import { pauseAfter } from "#src/choird/telegram/TelegramFailed.ts"
import { assert, describe, it } from "@effect/vitest"
import { readUpdates } from "#src/choird/telegram/readUpdates.ts"

const BOT = { id: "9", name: "double_bot" }

describe("what Telegram answers", () => {
  it("reads only what is a message of a person in a private chat", () => {
    const message = { chat: { id: 7, type: "private" }, from: { id: 7, is_bot: false }, text: "hi" }
    const updates = [{ update_id: 3, message }, { update_id: 4 }]
    assert.deepStrictEqual(readUpdates(BOT, updates), {
      update_id: 4,
      moves: [],
      arrivals: [{ id: "9:3", user_id: "7", text: "hi" }],
      taps: []
    })
    for (const bad of [undefined, {}, "x", [{ update_id: -1 }], [{ update_id: 1.5 }], [{ message }], [null]])
      assert.isUndefined(readUpdates(BOT, bad))
  })

  it("reads a tap by who tapped, whatever chat the button is in, and no other callback", () => {
    const tap = { id: "55", from: { id: 7, is_bot: false }, data: "a:12:0123abcd" }
    const on = { message_id: 4, chat: { id: -100 } }
    const read = (callback_query: unknown) => readUpdates(BOT, [{ update_id: 3, callback_query }])?.taps
    const known = { id: "9:3", user_id: "7", data: tap.data, callback_id: "55" }
    assert.deepStrictEqual(read({ ...tap, message: on }), [{ ...known, on: { chat_id: "-100", message_id: "4" } }])
    assert.deepStrictEqual(read(tap), [{ ...known, on: undefined }])
    const hostile = [
      null,
      { ...tap, from: { id: 7, is_bot: true } },
      { ...tap, from: undefined },
      { ...tap, id: 5 },
      { ...tap, data: undefined },
      { ...tap, data: "a".repeat(65) }
    ]
    for (const bad of hostile) assert.deepStrictEqual(read(bad), [])
  })

  it("knows which message of the bot's own a person replies to", () => {
    const own = { from: { id: 9, is_bot: true }, text: "dig waits" }
    const message = { chat: { id: 7, type: "private" }, from: { id: 7, is_bot: false }, text: "hi" }
    const read = (reply_to_message: unknown) =>
      readUpdates(BOT, [{ update_id: 3, message: { ...message, reply_to_message } }])?.arrivals[0]
    const plain = { id: "9:3", user_id: "7", text: "hi" }
    assert.deepStrictEqual(read(own), { ...plain, quoted: { by: { kind: "own" }, text: "dig waits" } })
    for (const other of [
      { ...own, from: { id: 8, is_bot: true } },
      { ...own, from: { id: 7, is_bot: false } },
      { ...own, forward_origin: { type: "hidden_user", sender_user_name: "Mallory", date: 1 } },
      { ...own, via_bot: { id: 8, is_bot: true } }
    ])
      assert.notStrictEqual(read(other)?.quoted?.by.kind, "own")
    for (const other of [{ ...own, text: 5 }, { from: own.from }, null, "x"]) assert.deepStrictEqual(read(other), plain)
  })

  it("reads an edited reply with what it replies to, so that only its own words differ", () => {
    const own = { message_id: 1, from: { id: 9, is_bot: true }, text: "shall I?" }
    const message = { message_id: 2, chat: { id: 7, type: "private" }, from: { id: 7, is_bot: false } }
    const read = (text: string, kind: "message" | "edited_message") =>
      readUpdates(BOT, [{ update_id: 3, [kind]: { ...message, text, reply_to_message: own } }])?.arrivals[0]
    const quoted = { by: { kind: "own" }, text: "shall I?" }
    assert.deepInclude<object>(read("yes", "message") ?? {}, { text: "yes", quoted })
    assert.deepInclude<object>(read("no", "edited_message") ?? {}, { text: "no", quoted, edited: true })
    const caption = { message_id: 2, chat: message.chat, from: message.from, photo: [{ file_id: "p" }], caption: "new" }
    const [edited] = readUpdates(BOT, [{ update_id: 4, edited_message: caption }])?.arrivals ?? []
    assert.deepInclude(edited, { text: "new", edited: true })
    assert.deepStrictEqual(readUpdates(BOT, [{ update_id: 5, edited_message: message }])?.arrivals, [])
  })

  it("reads of a group what is for the bot: a mention, a reply or a command, with who wrote it and where", () => {
    const from = { id: 7, is_bot: false, first_name: "Ada" }
    const message = {
      chat: { id: -100, type: "supergroup" },
      from,
      message_id: 5,
      message_thread_id: 3,
      is_topic_message: true
    }
    const read = (more: object) => readUpdates(BOT, [{ update_id: 3, message: { ...message, ...more } }])?.arrivals[0]
    const own = { from: { id: 9, is_bot: true }, photo: [] }
    const where = { chat_id: "-100", writer: "Ada" }
    for (const more of [
      { text: "hey @Double_bot!" },
      { text: "/status" },
      // Slashes that look the same and that readCommand takes as well.
      { text: "／stop" },
      { text: "∕stop" },
      { text: "/status@double_bot" },
      { caption: "@double_bot see", document: { file_id: "f" } },
      { text: "yes", reply_to_message: own }
    ])
      assert.deepInclude(read(more), {
        user_id: "7",
        message_id: 5,
        thread_id: 3,
        group: { ...where, addressed: true }
      })
    for (const text of ["hello all", "/status@other_bot", "mail@double_bottle"])
      assert.deepInclude(read({ text }), { group: { ...where, addressed: false } })
    assert.isUndefined(read({ chat: { id: -1, type: "channel" }, text: "/status" }))
  })

  it("takes the button that stops an answer for the command", () => {
    const stopped = { chat: { id: 7, type: "private" }, draft_id: 1 }
    assert.deepStrictEqual(readUpdates(BOT, [{ update_id: 3, stopped_message_generation: stopped }])?.arrivals, [
      { id: "9:3", user_id: "7", text: "/stop" }
    ])
    assert.deepStrictEqual(readUpdates(BOT, [{ update_id: 3, stopped_message_generation: {} }])?.arrivals, [])
  })

  it("doubles its pauses up to a minute, unless it is told how long", () => {
    const none = { retry_after_ms: null }
    assert.deepStrictEqual(
      [0, 1, 5, 6, 50].map((failures) => pauseAfter(none, failures)),
      [1000, 2000, 32_000, 60_000, 60_000]
    )
    assert.deepStrictEqual(
      [0, 5000, 1e9].map((ms) => pauseAfter({ retry_after_ms: ms }, 3)),
      [1000, 5000, 600_000]
    )
  })
})
