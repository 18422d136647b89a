import { assert, describe, it } from "@effect/vitest"
import { pauseAfter } from "#src/choird/gateway/Telegram.ts"
import { readUpdates } from "#src/choird/gateway/TelegramApi.ts"

describe("what Telegram answers", () => {
  it("reads only what is a message of a person in a private chat", () => {
    const message = { chat: { id: 7, type: "private" }, from: { id: 7, is_bot: false }, text: "hi" }
    const updates = [{ update_id: 3, message }, { update_id: 4 }]
    assert.deepStrictEqual(readUpdates("9", updates), {
      update_id: 4,
      arrivals: [{ id: "9:3", user_id: "7", text: "hi" }],
      taps: []
    })
    for (const bad of [undefined, {}, "x", [{ update_id: -1 }], [{ update_id: 1.5 }], [{ message }], [null]])
      assert.isUndefined(readUpdates("9", bad))
  })

  it("reads a tap by who tapped, whatever chat the button is in, and no other callback", () => {
    const tap = { id: "55", from: { id: 7, is_bot: false }, data: "a:12:0123abcd" }
    const on = { message_id: 4, chat: { id: -100 } }
    const read = (callback_query: unknown) => readUpdates("9", [{ update_id: 3, callback_query }])?.taps
    const known = { id: "9:3", user_id: "7", data: tap.data, callback_id: "55" }
    assert.deepStrictEqual(read({ ...tap, message: on }), [{ ...known, chat_id: "-100", message_id: "4" }])
    assert.deepStrictEqual(read(tap), [{ ...known, chat_id: undefined, message_id: undefined }])
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
      readUpdates("9", [{ update_id: 3, message: { ...message, reply_to_message } }])?.arrivals[0]
    const plain = { id: "9:3", user_id: "7", text: "hi" }
    assert.deepStrictEqual(read(own), { ...plain, replies_to: "dig waits" })
    for (const other of [
      { ...own, from: { id: 8, is_bot: true } },
      { ...own, from: { id: 9, is_bot: false } },
      { ...own, text: 5 },
      { from: own.from },
      null,
      "x"
    ])
      assert.deepStrictEqual(read(other), plain)
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
