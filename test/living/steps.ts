/** What people do in a step of a day. */
import { Effect } from "effect"
import type { SentMessage } from "../support/testing/telegramMethods.ts"
import type { Step } from "./Day.ts"
import { FACTS } from "./facts.ts"
import { type Home, PEOPLE, type Person } from "./Home.ts"

type Time = Step["at"]

export const writes = (who: Person, at: Time, text: string, until: string): Step => ({
  at,
  act: ({ bot }) => bot.text(PEOPLE[who], text),
  until
})

const factOf = (key: string) => FACTS.find((fact) => fact.key === key) ?? { told: key, question: key, answer: key }

/** Ada tells a fact, by its key. */
export const tells = (at: Time, key: string): Step =>
  writes("Ada", at, `Remember that ${factOf(key).told}`, "I will remember that.")

/** Ada asks for a fact of an earlier day, by its key. */
export const asks = (at: Time, key: string): Step => writes("Ada", at, factOf(key).question, factOf(key).answer)

const JPEG = Uint8Array.from([
  0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 0xff, 0xd9
])

export const sendsPhoto = (at: Time): Step => ({
  at,
  act: ({ bot }) => bot.file(PEOPLE.Ada, "photo", { name: "photo.jpg", mime: "image/jpeg", bytes: JPEG }),
  until: "receipt"
})

export const sendsFile = (at: Time, name: string, text: string, until: string): Step => ({
  at,
  act: ({ bot }) =>
    bot.file(PEOPLE.Ada, "document", { name, mime: "text/plain", bytes: new TextEncoder().encode(text) }),
  until
})

/** Ada does something at the computer, and writes from her phone. */
const atComputer =
  (title: string, work: (home: Home) => Effect.Effect<unknown, unknown>) =>
  (at: Time, text: string, until: string): Step => ({
    at,
    title,
    act: (home) => Effect.andThen(work(home), home.bot.text(PEOPLE.Ada, text)),
    until
  })

export const restarts = atComputer("Ada has restarted the computer.", ({ terminal }) =>
  // She looks first: a message that the phone shows already may not be recorded as delivered yet, and would come again.
  terminal
    .run("choirctl status")
    .pipe(Effect.andThen(terminal.run("choirctl daemon stop")), Effect.andThen(terminal.run("choirctl daemon start")))
)

export const beginsSession = atComputer("Ada has begun a new session at the computer.", ({ terminal }) =>
  terminal.run("choirctl agent stop choir && choirctl agent start choir --fresh")
)

/** A day on which nobody writes, and Ada looks at the computer once whether all is well. */
export const passes = Effect.fnUntraced(function* (home: Home, date: string) {
  yield* home.turnTo(date, "12:00")
  yield* home.terminal.run("choirctl status")
})

const buttonData = (message: SentMessage, wanted: string): string | undefined => {
  const { inline_keyboard: rows = [] } = (message.reply_markup ?? {}) as {
    readonly inline_keyboard?: ReadonlyArray<ReadonlyArray<{ readonly text: string; readonly callback_data: string }>>
  }
  return rows.flat().find(({ text }) => text === wanted)?.callback_data
}

/** Somebody taps a button of the newest message that has it. */
export const taps = (who: Person, at: Time, button: string, until: string): Step => ({
  at,
  title: `${who} taps ${button}.`,
  act: ({ bot }) =>
    Effect.gen(function* () {
      for (const { chat, message_id } of (yield* bot.sent.all).toReversed()) {
        const message = yield* bot.message(message_id)
        const data = chat.id === PEOPLE[who] && message !== undefined ? buttonData(message, button) : undefined
        if (message !== undefined && data !== undefined) return yield* bot.tap(PEOPLE[who], message, data)
      }
      return yield* Effect.die(new Error(`no message has a button ${button}`))
    }),
  until
})
