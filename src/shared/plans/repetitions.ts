/** Words for what repeats: "every monday", "alle 20 Minuten", "по будням", "毎月1日". */
import type { Language, Unit } from "./Language.ts"
import { gapOf, numberOf, numberValue, windowOf, wordOf } from "./patterns.ts"

/** A repetition: days that need a time of day, or an interval. */
export type Repetition =
  | { readonly kind: "days"; readonly days: string; readonly isEvening?: boolean }
  /** A weekday in some weeks only, for which there is no schedule. */
  | { readonly kind: "some weeks" }
  | { readonly kind: "interval"; readonly count: number; readonly unit: Unit }

export interface TakenRepetition {
  readonly language: Language
  readonly repetition: Repetition
  readonly before: string
  readonly after: string
  readonly chars: number
}

const NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const
const UNITS = ["second", "minute", "hour", "day", "week", "month", "year"] as const

type Build = (found: RegExpExecArray) => Repetition

interface Form {
  readonly source: string
  readonly repetition: Build
}

const named =
  (days: string): Build =>
  () => ({ kind: "days", days })

/** The weekdays of a list of words, in the order of the week from Monday. */
const weekdaysOf = (language: Language, text: string): string => {
  const found = NAMES.filter((_, index) =>
    [language.repeated[index], language.weekdays[index]].some(
      (source) => source !== undefined && new RegExp(wordOf(language, source), "iu").test(text)
    )
  )
  return found.toSorted((a, b) => ((NAMES.indexOf(a) + 6) % 7) - ((NAMES.indexOf(b) + 6) % 7)).join(", ")
}

const listForms = (language: Language): ReadonlyArray<Form> => {
  const { and, every, isSpaced, leads, other, repeated, units, weekdays } = language
  const gap = gapOf(language)
  const between = isSpaced ? String.raw`(?:\s?,\s?|\s)(?:(?:${and})\s)?` : String.raw`\s?(?:${and}|、|，)?\s?`
  const listOf = (day: string, more: string) => `(?:${day})(?:${between}(?:${day})){${more}}`
  const days = weekdays.join("|")
  const repetition: Build = ([whole]) => ({ kind: "days", days: weekdaysOf(language, whole) })
  const weekly = String.raw`(?:${every})${gap}(?:${units.week})${gap}(?:(?:${leads})${gap})?`
  return [
    { source: `${weekly}${listOf(days, "0,6")}`, repetition },
    { source: `(?:${every})${gap}${listOf(days, "0,6")}`, repetition },
    {
      source: `(?:${every})${gap}(?:${numberOf(language)}|${other === "" ? "(?!)" : other})(?:st|nd|rd|th|\\.|er|e)?${gap}(?:${days})`,
      repetition: () => ({ kind: "some weeks" })
    },
    { source: `(?:(?:${leads})${gap})?${listOf(repeated.join("|"), "0,6")}`, repetition },
    // Names without a word for "every" are one day each; several of them are a schedule, as plans write it.
    ...(language.code === "en" ? [{ source: `${listOf(days, "1,6")}(?=\\s+at\\s)`, repetition }] : [])
  ]
}

const formsOf = (language: Language): ReadonlyArray<Form> => {
  const { code, daily, evenings, every, monthly, other, units, weekends, workdays } = language
  const gap = gapOf(language)
  const unit = UNITS.map((name) => `(?<${name}>${units[name]})`).join("|")
  const number = `(?:(?:(?<number>${numberOf(language)})|(?<other>${other === "" ? "(?!)" : other}))${gap})?`
  const interval: Build = ({ groups = {} }) => ({
    kind: "interval",
    count: groups["other"] === undefined ? numberValue(language, groups["number"] ?? "1") : 2,
    unit: UNITS.find((name) => groups[name] !== undefined) ?? "day"
  })
  return [
    ...monthly.map((source) => ({
      source,
      repetition: ({ groups }: RegExpExecArray): Repetition => ({
        kind: "days",
        days: `monthly on ${Number(groups?.["day"])}`
      })
    })),
    ...listForms(language),
    { source: workdays, repetition: named("weekdays") },
    { source: weekends, repetition: named("weekends") },
    { source: daily, repetition: named("daily") },
    { source: evenings, repetition: () => ({ kind: "days", days: "daily", isEvening: true }) },
    code === "ja"
      ? { source: `(?<number>${numberOf(language)})(?:${unit})(?:ごとに?|おきに?)`, repetition: interval }
      : { source: `(?:${every})${gap}${number}(?:${unit})`, repetition: interval }
  ]
}

interface Compiled extends Form {
  readonly first: RegExp
  readonly any: RegExp
}

const FORMS = new WeakMap<Language, ReadonlyArray<Compiled>>()

const forms = (language: Language): ReadonlyArray<Compiled> => {
  const found =
    FORMS.get(language) ??
    formsOf(language).map((form) => {
      const source = wordOf(language, form.source)
      return { ...form, first: new RegExp(`^${source}`, "iu"), any: new RegExp(source, "giu") }
    })
  FORMS.set(language, found)
  return found
}

const longest = (all: ReadonlyArray<TakenRepetition>): TakenRepetition | undefined =>
  all.reduce<TakenRepetition | undefined>(
    (best, one) => (best === undefined || one.chars > best.chars ? one : best),
    undefined
  )

export const firstRepetition = (languages: ReadonlyArray<Language>, text: string): TakenRepetition | undefined =>
  longest(
    languages.flatMap((language) =>
      forms(language).flatMap(({ first, repetition }) => {
        const found = first.exec(windowOf("first", text))
        if (found === null) return []
        const chars = found[0].length
        return [{ language, repetition: repetition(found), before: "", after: text.slice(chars), chars }]
      })
    )
  )

/** The repetitions near the end of a text, those that have most words first. */
export const laterRepetitions = (languages: ReadonlyArray<Language>, text: string): ReadonlyArray<TakenRepetition> => {
  const start = text.length - windowOf("last", text).length
  return languages
    .flatMap((language) =>
      forms(language).flatMap(({ any, repetition }) =>
        [...text.slice(start).matchAll(any)].map((found) => ({
          language,
          repetition: repetition(found),
          before: text.slice(0, start + found.index),
          after: text.slice(start + found.index + found[0].length),
          chars: found[0].length
        }))
      )
    )
    .toSorted((a, b) => b.chars - a.chars)
}
