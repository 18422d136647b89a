/**
 * The screens of days: after each step, what the phones show anew or otherwise than before, compared with a text in `screens` that a person has read.
 * `CHOIR_GOLDEN=write` writes the texts again.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import type { Day, Step } from "./Day.ts"
import { GROUP, GROUP_TITLE, type Home, PEOPLE } from "./Home.ts"
import { type Bubble, Phone } from "./Phone.ts"
import { steadyText } from "./steadyText.ts"

/** How long a step may take on a busy machine. */
const STEP_MS_MAX = 150_000
/** How long the phones have to show what is expected once the words that end a step are there. */
const SETTLE_MS_MAX = 30_000
/** How long nothing may happen until a step counts as over while its text is written. */
const QUIET_MS = 4000
const LABEL_CHARS = 8
/** Lines of a changed message that were there before and are shown again. */
const KEPT_LINES_MAX = 5

const isWriting = process.env["CHOIR_GOLDEN"] === "write"
const screenFile = (day: Day) => join(import.meta.dirname, "screens", `${day.date}.txt`)

const chatName = (chat_id: number): string => {
  if (chat_id === GROUP) return `in the group "${GROUP_TITLE}"`
  const [name = String(chat_id)] = Object.entries(PEOPLE).find(([, id]) => id === chat_id) ?? []
  return `on the phone of ${name}`
}

const shownLines = ({ from = "choir", lines }: Bubble, mark: string): ReadonlyArray<string> => {
  const text = lines.map(steadyText)
  const label = from.padEnd(LABEL_CHARS)
  const blank = " ".repeat(LABEL_CHARS)
  return [`${label}${mark}${text[0] ?? ""}`, ...text.slice(1).map((line) => `${blank}${line}`)].map((line) =>
    line.trimEnd()
  )
}

/** The lines of a changed message, where many that were there before stand together as one. */
const withoutKept = (bubble: Bubble, old: ReadonlyArray<string>): Bubble => {
  const known = new Set(old)
  const runs: Array<{ readonly isKnown: boolean; readonly lines: Array<string> }> = []
  for (const line of bubble.lines) {
    const isKnown = known.has(line)
    if (runs.at(-1)?.isKnown === isKnown) runs.at(-1)?.lines.push(line)
    else runs.push({ isKnown, lines: [line] })
  }
  const lines = runs.flatMap((run) =>
    run.isKnown && run.lines.length > KEPT_LINES_MAX ? [`[${run.lines.length} lines as before]`] : run.lines
  )
  return { ...bubble, lines }
}

/** What differs between two looks at all phones, chat by chat. */
const difference = (before: ReadonlyArray<Bubble>, after: ReadonlyArray<Bubble>): ReadonlyArray<string> => {
  const old = new Map(before.map((bubble) => [bubble.message_id, bubble]))
  const now = new Set(after.map(({ message_id }) => message_id))
  const gone = before.filter(({ message_id }) => !now.has(message_id))
  const changed = after.filter((bubble) => !isDeepStrictEqual(old.get(bubble.message_id), bubble))
  const chats = [...new Set([...changed, ...gone].map(({ chat_id }) => chat_id))]
  return chats.flatMap((chat) => [
    ...(chat === PEOPLE.Ada ? [] : [`${chatName(chat)}:`]),
    ...gone.filter(({ chat_id }) => chat_id === chat).flatMap((bubble) => shownLines(bubble, "(removed) ")),
    ...changed
      .filter(({ chat_id }) => chat_id === chat)
      .flatMap((bubble) => {
        const earlier = old.get(bubble.message_id)
        return earlier === undefined
          ? shownLines(bubble, "")
          : shownLines(withoutKept(bubble, earlier.lines), "(changed) ")
      })
  ])
}

/** The expected lines of each step, by its heading. */
export const expectedOf = (day: Day): ReadonlyMap<string, string> => {
  const file = screenFile(day)
  if (!existsSync(file)) return new Map()
  const [, ...sections] = readFileSync(file, "utf8").split(/^## /mu)
  return new Map(
    sections.map((section) => [section.split("\n", 1)[0] ?? "", section.split("\n").slice(1).join("\n").trim()])
  )
}

export const headingOf = ({ at, title }: Step) => (title === undefined ? at : `${at} ${title}`)

/** Keeps a diary of a home. */
export const makeDiary = (home: Home) => {
  const phone = new Phone()
  let before: ReadonlyArray<Bubble> = []

  const look = Effect.map(home.bot.changes.all, (changes) => {
    phone.readAll(changes)
    return { shown: difference(before, phone.bubbles).join("\n").trim(), seen: changes.length }
  })

  /** Waits until the phones show something that fits. */
  const until = (fits: (shown: string) => boolean): Effect.Effect<string> =>
    Effect.flatMap(look, ({ seen, shown }) =>
      fits(shown) ? Effect.succeed(shown) : Effect.andThen(home.bot.changes.at(seen), until(fits))
    )

  const untilQuiet: Effect.Effect<string> = Effect.flatMap(look, ({ seen, shown }) =>
    Effect.flatMap(Effect.timeoutOption(home.bot.changes.at(seen), QUIET_MS), (more) =>
      Option.isSome(more) ? untilQuiet : Effect.succeed(shown)
    )
  )

  const missing = (what: string, words: string) =>
    Effect.flatMap(look, ({ shown }) =>
      Effect.die(new Error(`${what}: the phones do not show ${words}, but:\n${shown}`))
    )

  const live = Effect.fnUntraced(function* (day: Day, step: Step, expected: string | undefined) {
    const heading = headingOf(step)
    yield* home.turnTo(day.date, step.at)
    yield* step.act(home)
    const ends = until((shown) => shown.includes(step.until))
    yield* Effect.timeoutOrElse(ends, { duration: STEP_MS_MAX, orElse: () => missing(heading, step.until) })
    const shown = isWriting
      ? yield* untilQuiet
      : yield* Effect.timeoutOrElse(
          until((all) => all === expected),
          {
            duration: SETTLE_MS_MAX,
            orElse: () => Effect.map(look, (seen) => seen.shown)
          }
        )
    before = phone.bubbles
    if (!isWriting) assert.strictEqual(shown, expected, `${day.date} ${heading}`)
    return shown
  })

  /** Lives a day; answers with what the phones showed anew after each step. */
  return Effect.fnUntraced(function* (day: Day) {
    const expected = expectedOf(day)
    const sections: Array<string> = [`# ${day.name}\n`]
    const screens: Array<string> = []
    for (const step of day.steps) {
      const shown = yield* live(day, step, expected.get(headingOf(step)))
      screens.push(shown)
      sections.push(`## ${headingOf(step)}\n\n${shown}\n`)
      if (isWriting) yield* Effect.sync(() => writeFileSync(screenFile(day), sections.join("\n")))
    }
    return screens
  })
}
