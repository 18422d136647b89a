/** Reads when a plan is due from people's words, which come before or after what it is about. Pure: the caller says what time it is. */
import { Cron, Result } from "effect"
import { doubtOf, restDoubt } from "./doubts.ts"
import { dueOnce, type At } from "./dueOnce.ts"
import { findWords, goesOn } from "./foundWords.ts"
import type { Language } from "./Language.ts"
import { languagesOf } from "./languages.ts"
import { gapOf, numberOf, wordOf } from "./patterns.ts"
import { checkSchedule, type Schedule } from "./schedule.ts"
import { scheduleOf } from "./scheduleOf.ts"
import { wallOf } from "./wallClock.ts"
import type { When } from "./When.ts"

export interface ReadWhen {
  readonly when: When
  /** The words beside the time, without those that join them; empty where there are none. */
  readonly rest: string
  /** One sentence, where the words could mean another time. */
  readonly doubt?: string
}

type Read<A> = Result.Result<A, string>

const PLAN_TEXT_CHARS_MAX = 4000

const EXAMPLES = 'write for example "in 20 minutes", "tomorrow 9:00", "24 Dec 18:00" or "every monday 8:00"'
const OTHER_REPETITION =
  'Plans do not repeat in this way: write "every monday 8:00", "monthly on the 1st at 9:00" or "every 3 days".'
const NO_TIME = `There is no time in it: ${EXAMPLES}, before the text or after it.`

/** The beginning of a request in a whole sentence, which adds nothing to the command. */
const ASKED =
  /^(?:(?:please )?remind me|me|erinner(?:e|) mich|mich|rappelle[- ]moi|recuérdame|ricordami|lembr[ae][- ]me|herinner (?:me|mij)|напомни(?:те)?(?: мне)?|нагадай(?:те)?(?: мені)?|提醒我)(?:[\s,:]+|(?<=提醒我))/iu

const cronOf = (text: string, { zone }: At): Read<ReadWhen> | undefined => {
  const [found = "", fields = ""] =
    /^((?:[\d*,/-]|[a-z]{3}(?=[\s,-]))+(?:\s+(?:[\d*,/-]|[a-z]{3}(?=[\s,-]|$))+){4})(?:\s|$)/iu.exec(text) ?? []
  if (found === "" || !/^[\d*]/u.test(fields)) return undefined
  const isCron = Result.isSuccess(Cron.parse(fields))
  if (!isCron) {
    const problem = `"${fields}" is not a cron expression of five fields: write "0 8 * * 1-5", which is minute, hour, day, month and weekday.`
    return fields.includes("*") ? Result.fail(problem) : undefined
  }
  const schedule: Schedule = { kind: "cron", schedule: fields.replaceAll(/\s+/gu, " ") }
  return Result.map(checkSchedule(schedule, zone), (when) => ({
    when,
    rest: text
      .slice(found.length)
      .replace(/^\s*\(cron\)/u, "")
      .trim()
  }))
}

/** The text without the words and marks that joined it to the time. */
const trimmed = (language: Language, text: string): string => {
  const marks = text.trim().replaceAll(/^[\s,:;–—-]+|(?<![\s,:;–—-])[\s,:;–—-]+$/gu, "")
  const word = new RegExp(
    language.isSpaced ? String.raw`^${wordOf(language, language.joiners)}\s+` : `^(?:${language.joiners})`,
    "iu"
  )
  return marks.replace(word, "").trim()
}

/** Whether the words of a repetition were left beside one time: "every first friday … at 9" is not one nine o'clock. */
const isHalfRead = (language: Language, rest: string): boolean => {
  const numbered = `(?:${numberOf(language)}|${language.other === "" ? "(?!)" : language.other})`
  const every = wordOf(language, language.every)
  return new RegExp(`^${every}${gapOf(language)}${numbered}|${every}$`, "iu").test(rest)
}

/** Reads when a text says that it is due; the time is at its beginning or at its end. A failure says what to write. */
export const readWhen = (text: string, at: At): Read<ReadWhen> => {
  if (text.length > PLAN_TEXT_CHARS_MAX)
    return Result.fail(`The text has more than ${PLAN_TEXT_CHARS_MAX} characters: write a shorter one.`)
  const asked = text.trim().replace(ASKED, "")
  const cron = cronOf(asked, at)
  if (cron !== undefined) return cron
  const [languages, wall_ms] = [languagesOf(asked), wallOf(at.now_ms, at.zone)]
  const found = findWords(languages, asked, wall_ms)
  if (found === undefined) return Result.fail(NO_TIME)
  const { language, repetition } = found
  const rest = trimmed(language, found.rest)
  if (repetition === undefined && isHalfRead(language, rest)) return Result.fail(OTHER_REPETITION)
  const when: Read<When> =
    repetition === undefined
      ? dueOnce(found, at)
      : Result.flatMap(scheduleOf(repetition, found), (schedule) => checkSchedule({ kind: "every", schedule }, at.zone))
  const isFirst = found.rest.trim() !== "" && asked.endsWith(found.rest)
  const isCut = isFirst && goesOn(languages, found, rest, wall_ms)
  const doubt = isCut ? restDoubt(rest) : doubtOf(found)
  return Result.map(when, (due) => ({ when: due, rest, ...(doubt !== undefined && { doubt }) }))
}
