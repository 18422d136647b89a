/**
 * Numbered lists that a chat was shown where a command lacked its argument. The number that the person sends next means the whole
 * command. They are kept in memory: after a restart of choird a number is a message like any other.
 */
import { Context, Effect, Layer } from "effect"
import type { CommandWords } from "#schema/ChatCommand.ts"
import { withPlainDigits } from "#src/shared/text/typedText.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import type { Answer, Choice } from "./Answer.ts"
import type { Speaker } from "./Speaker.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/** How long a list waits for its number, how many wait, and how long one is. */
const CHOICE_MS_MAX = 600_000
const CHOICES_WAITING_MAX = 256
const CHOICES_LISTED_MAX = 20

interface Offered {
  readonly words: CommandWords
  readonly options: ReadonlyArray<Choice>
  readonly offered_ms: number
}

/** The chat that was shown a list. */
type Place = Pick<Speaker, "gateway" | "dm">

const NUMBER = /^\s*[#\u{ff03}]?(\p{Nd}{1,18})[.\u{3002}\u{ff0e}]?\s*$/u

/** Whether a text may choose from a list. */
export const isNumber = (text: string): boolean => NUMBER.test(text)

/** Options with the numbers 1, 2, 3, … */
export const numbered = (values: ReadonlyArray<string>): ReadonlyArray<Choice> =>
  values.slice(0, CHOICES_LISTED_MAX).map((value, index) => ({ number: String(index + 1), value, label: value }))

/** The list as a chat shows it. */
const choiceLines = (options: ReadonlyArray<Choice>): string =>
  [...options.map(({ label, number }) => `${number}. ${label}`), "Send the number."].join("\n")

/** An answer that asks for one of these. */
export const choose = (title: string, words: CommandWords, options: ReadonlyArray<Choice>): Answer => ({
  kind: "notice",
  text: `${title}\n${choiceLines(options)}`,
  choices: { words, options }
})

export class Choices extends Context.Service<
  Choices,
  {
    /** Notes that the chat was shown a list; it replaces an earlier one. */
    offer(place: Place, words: CommandWords, options: ReadonlyArray<Choice>): Effect.Effect<void>
    /** The command that a text chooses, or undefined. Any text that comes to the chat ends its list. */
    take(place: Place, text: string): Effect.Effect<string | undefined>
  }
>()("choir/choird/Choices") {
  static readonly layer = Layer.sync(Choices, () => {
    const waiting = new BoundedMap<string, Offered>(CHOICES_WAITING_MAX)
    const keyOf = ({ dm, gateway }: Place) => `${gateway} ${dm}`
    return Choices.of({
      offer: Effect.fnUntraced(function* (place, words, options) {
        waiting.set(keyOf(place), { words, options, offered_ms: yield* monotonicMs })
      }),
      take: Effect.fnUntraced(function* (place, text) {
        const offered = waiting.get(keyOf(place))
        waiting.delete(keyOf(place))
        if (offered === undefined || (yield* monotonicMs) - offered.offered_ms > CHOICE_MS_MAX) return undefined
        const [, digits = ""] = NUMBER.exec(text) ?? []
        const number = withPlainDigits(digits)
        const chosen = offered.options.find((option) => option.number === number)
        return chosen === undefined ? undefined : `/${offered.words} ${chosen.value}`
      })
    })
  })
}
