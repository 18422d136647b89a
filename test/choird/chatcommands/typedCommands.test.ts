/** Commands, numbers and codes as keyboards of other scripts write them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Choices, numbered } from "#src/choird/chatcommands/Choices.ts"
import { untapped } from "#src/choird/queues/chatText.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { ResourceName } from "#schema/Ids.ts"
import { pairingCodeIn } from "#src/shared/text/pairingCode.ts"
import { withPlainDigits } from "#src/shared/text/typedText.ts"

const CHAT = { gateway: ResourceName.make("telegram"), dm: ResourceName.make("ada") }

const commandOf = (text: string): object | undefined => {
  const read = readCommand(text, true)
  return read?.type === "command" ? read.command : read
}

describe("a command", () => {
  it("may have a full-width slash and letters, and the end of a sentence", () => {
    for (const text of ["/stop", "／stop", "／ｓｔｏｐ", "/STOP", "/stop。", "/stop！", "/stop.", "／stop!", "/stop؟"])
      assert.deepStrictEqual(commandOf(text), { type: "stop" }, text)
    assert.deepStrictEqual(commandOf("／stop　ｓ"), commandOf("/stop ｓ"))
  })

  it("may be copied from a message of the agent, where it has the slash of no command", () => {
    const [copied = ""] = /\S*cancel dig/u.exec(untapped("/cancel dig ends it")) ?? []
    assert.notStrictEqual(copied, "/cancel dig")
    assert.deepStrictEqual(commandOf(copied), { type: "cancel", job_name: "dig" })
  })

  it("may have its words and keys spelt as choirctl spells them", () => {
    assert.deepStrictEqual(commandOf("/update-all"), { type: "update all" })
    assert.deepInclude(commandOf("/start helper voice-profile=calm llm=large"), {
      type: "start agent",
      options: { voice_profile: "calm", llm: "large" }
    })
    for (const text of ["/new yes", "/new Yes", "/new YES"])
      assert.deepStrictEqual(commandOf(text), { type: "new", end_jobs: true }, text)
    for (const text of ["/home-office", "/etc-old", "/update-all-of-it"]) assert.isUndefined(commandOf(text), text)
  })

  it("takes numbers in the digits of any script, with the signs behind them", () => {
    for (const text of [
      "/approve 12",
      "/approve １２",
      "/approve ١٢",
      "/approve ۱۲",
      "/approve १२",
      "/approve ๑๒",
      "／approve　＃１２。"
    ])
      assert.deepInclude(commandOf(text), { type: "decide", resolution: "approved", approval_id: "12" }, text)
    assert.deepInclude(commandOf("/reject ３，太贵了"), { approval_id: "3", reason: "太贵了" })
    assert.deepInclude(commandOf("/reject ٣ غالي"), { approval_id: "3", reason: "غالي" })
    assert.deepInclude(commandOf("/reject 3个太多"), { approval_id: undefined, reason: "3个太多" })
    assert.deepStrictEqual(commandOf("/events ５"), { type: "events", count: 5 })
  })

  it("leaves paths, fractions and other words to the agent", () => {
    for (const text of ["／你好", "/home is full", "/usr/bin", "１/2", "stop。", "/стоп"])
      assert.isUndefined(commandOf(text), text)
    assert.deepStrictEqual(commandOf("/inject ／１２！"), { type: "inject", content: "／１２！" })
  })
})

describe("a pairing code", () => {
  it("may be typed in full-width letters", () => {
    assert.strictEqual(pairingCodeIn("ＡＢＣＤ－２３４５"), "ABCD2345")
  })
})

describe("a digit", () => {
  it("of every script has its value", () => {
    for (let code = 0; code <= 0x1ffff; code++) {
      const digit = String.fromCodePoint(code)
      if (!/^\p{Nd}$/u.test(digit)) continue
      const plain = withPlainDigits(digit)
      assert.match(plain, /^\d$/u)
      const next = String.fromCodePoint(code + 1)
      if (/^\p{Nd}$/u.test(next))
        assert.strictEqual((Number(plain) + 1) % 10, Number(withPlainDigits(next)), code.toString(16))
    }
  })
})

describe("a choice from a list", () => {
  it.effect("may be a number in the digits of any script", () =>
    Effect.gen(function* () {
      const choices = yield* Choices
      for (const text of ["2", "２", "٢", "２。", "＃२"]) {
        yield* choices.offer(CHAT, "model llm", numbered(["a", "b"]))
        assert.strictEqual(yield* choices.take(CHAT, text), "/model llm b", text)
      }
    }).pipe(Effect.provide(Choices.layer))
  )
})
