/** What a fortnight is measured by (R94), counted in what the phones showed and in what the doubles were asked. */
import { FACTS } from "./facts.ts"
import { seenIn } from "./Model.ts"
import type { ProviderRequest } from "../support/testing/Provider.ts"

/** What the phones showed anew after each step of a day. */
export type Screens = ReadonlyArray<string>

const CARD = /asks for your approval/u

/** The cards of each day. */
export const cardsOf = (days: ReadonlyArray<Screens>): ReadonlyArray<number> =>
  days.map((screens) => screens.filter((shown) => CARD.test(shown)).length)

/** A line of a screen without the name before it. */
const wordsOf = (line: string): string => line.replace(/^\S* +/u, "").trim()

/** The facts that somebody asked for, and those of them that were known. */
export const recalledOf = (days: ReadonlyArray<Screens>) => {
  const screens = days.flat()
  const asked = FACTS.filter(({ question }) => screens.some((shown) => shown.includes(question)))
  const known = asked.filter(({ answer, question }) =>
    screens.some((shown) => shown.includes(question) && shown.split("\n").some((line) => wordsOf(line) === answer))
  )
  return { asked: asked.map(({ key }) => key), known: known.map(({ key }) => key) }
}

/** What requests to the model were about, other than the words of a person. */
export const unaskedOf = (requests: ReadonlyArray<ProviderRequest>, written: RegExp): ReadonlyArray<string> =>
  requests.map((request) => seenIn(request).words).filter((words) => !written.test(words))
