/** What people do in a step of a day. */
import { Deferred, Effect } from "effect"
import { failing, hang, type Reply } from "../support/testing/Provider.ts"
import type { SentMessage } from "../support/testing/telegramMethods.ts"
import type { Step } from "./Day.ts"
import { FACTS } from "./facts.ts"
import { COUNTING } from "./habits.ts"
import { BOT, GROUP, type Home, PEOPLE, type Person, type Trouble } from "./Home.ts"
import { killAgent, killChoird } from "./killed.ts"
import { seenIn } from "./Model.ts"

type Time = Step["at"]

export const writes = (who: Person, at: Time, text: string, until: string): Step => ({
  at,
  act: ({ bot }) => bot.text(PEOPLE[who], text),
  until
})

/** Nobody does anything. */
export const nothing = (at: Time, until: string): Step => ({ at, act: () => Effect.void, until })

/** Somebody writes in the group. */
export const writesInGroup = (who: Person, at: Time, text: string, until: string): Step => ({
  at,
  act: ({ bot }) => bot.textInGroup(GROUP, PEOPLE[who], text.replace("@bot", `@${BOT}`)),
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

/** Ada does something at the computer, and may write from her phone. */
const atComputer =
  (title: string, work: (home: Home) => Effect.Effect<unknown, unknown>) =>
  (at: Time, text: string | undefined, until: string): Step => ({
    at,
    title,
    act: (home) => Effect.andThen(work(home), text === undefined ? Effect.void : home.bot.text(PEOPLE.Ada, text)),
    until
  })

export const restarts = atComputer("Ada has restarted the computer.", ({ terminal }) =>
  Effect.andThen(terminal.run("choirctl daemon stop"), terminal.run("choirctl daemon start"))
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

/** The first requests get this answer, and those after them the model's. */
const first = (count: number, reply: Reply): Trouble => {
  let left = count
  return () => (left-- > 0 ? reply : undefined)
}

const DOWN = failing(500, "an internal server error occurred")

/** What the provider does in this step, and from then on. */
const withProvider = (title: string, trouble: () => Trouble, { act, ...step }: Step): Step => ({
  ...step,
  title,
  act: (home) => Effect.andThen(home.ail(trouble()), act(home))
})

/** The provider fails at first and once more five seconds later, and answers ten seconds after that. */
export const whileItFailsForSeconds = (step: Step) =>
  withProvider("The provider is down for some seconds.", () => first(2, DOWN), step)

/** Requests of a job that fail until its wait for the provider is surely in the log: by the second one the first has been committed. */
const FAILED_MIN = 2
/** How long its second request may take; it waits for five seconds. */
const AGAIN_MS_MAX = 120_000

/** The provider fails once a job asks it, of which the person has read that it began. */
export const whenItGoesDown = ({ act, ...step }: Step): Step => ({
  ...step,
  title: "The provider goes down.",
  act: (home) =>
    Effect.gen(function* () {
      const read = (yield* home.bot.sent.all).length
      const isDown = yield* Deferred.make<void>()
      let failed = 0
      const down = Effect.gen(function* () {
        yield* home.bot.sent.first(({ text }) => text === COUNTING, read)
        if (++failed === FAILED_MIN) yield* Deferred.succeed(isDown, undefined)
        return yield* DOWN
      })
      yield* home.ail((request) => (seenIn(request).isJob ? down : undefined))
      yield* act(home)
      yield* Effect.timeoutOrElse(Deferred.await(isDown), {
        duration: AGAIN_MS_MAX,
        orElse: () => Effect.die(new Error("the job does not ask the provider again"))
      })
    })
})

export const whileItHangs = (step: Step) =>
  withProvider("The provider takes questions and says nothing.", () => () => hang, step)

export const whileItRefusesTheKey = (step: Step) =>
  withProvider("The provider refuses the key for a while.", () => () => failing(401, "invalid x-api-key"), step)

export const onceItIsBack = (title: string, { act, ...step }: Step): Step => ({
  ...step,
  title,
  act: (home) => Effect.andThen(home.repair, act(home))
})

/** Ada restarts the computer, reads that a job waits for the provider, and then it is back. */
export const restartsWhileItIsDown = (at: Time, waits: string, until: string): Step => ({
  at,
  title: "Ada restarts the computer, and a moment later the provider is back.",
  act: (home) =>
    Effect.gen(function* () {
      const read = (yield* home.bot.sent.all).length
      yield* restarts(at, undefined, waits).act(home)
      yield* home.bot.sent.first(({ text }) => text?.includes(waits) === true, read)
      yield* home.repair
    }),
  until
})

/** Ada writes, and the agent is killed while the model thinks about it. */
export const losesAgent = (at: Time, text: string, until: string): Step => ({
  at,
  title: "The agent is killed while it waits for the model.",
  act: (home) =>
    Effect.gen(function* () {
      yield* home.ail(() => hang)
      yield* home.bot.text(PEOPLE.Ada, text)
      yield* home.repair
      yield* killAgent(home, [])
    }),
  until
})

/** The agent is killed again and again, until Choir starts it no more. */
export const crashes = (at: Time, times: number, until: string): Step => ({
  at,
  title: "The agent is killed again and again.",
  act: (home) =>
    Effect.gen(function* () {
      const gone: Array<number> = []
      for (let time = 0; time < times; time += 1) gone.push(yield* killAgent(home, gone))
    }),
  until
})

/** choird is killed with a message on its way to it. */
export const losesChoird = (at: Time, text: string, until: string): Step => ({
  at,
  title: "choird is killed while the model thinks, and Ada starts it again.",
  act: (home) =>
    Effect.gen(function* () {
      yield* home.ail(() => hang)
      yield* home.bot.text(PEOPLE.Ada, text)
      yield* home.repair
      yield* killChoird(home)
      yield* home.terminal.run("choirctl daemon start")
    }),
  until
})
