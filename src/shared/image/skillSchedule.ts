/** Schedules of skills: the few forms in which a file writes one, and the times that follow. Pure; it reads no clock. */
import { Cron, DateTime, Option, Result } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import { schemaOf } from "#schema/SkillContract.ts"
import { valueProblem } from "./jsonSchema.ts"

/** A schedule as its file writes it. */
export interface SkillSchedule {
  readonly text: string
  /** Its times, in `zone` unless it names a time zone of its own. */
  readonly times: (zone: DateTime.TimeZone) => Cron.Cron
}

const FORMS =
  'write "daily at 07:30", "weekdays at 07:30", "mon, thu at 18:00", "monthly on 1 at 09:00" or "every 6 hours", followed if needed by a time zone, such as "in Europe/Berlin"'

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const
const WEEKDAYS = [1, 2, 3, 4, 5]
const WEEKENDS = [0, 6]
/** The last day that every month has. */
const MONTH_DAY_MAX = 28
/** Hours of a day, which `every` has to divide: so the times are the same each day. */
const DAY_HOURS = 24

type Fields = Pick<Parameters<typeof Cron.make>[0], "days" | "hours" | "minutes" | "weekdays">

const AT = /^(.+) at ([01]\d|2[0-3]):([0-5]\d)$/u
const EVERY = /^every (?:hour|([1-9]\d?) hours)$/u
const MONTHLY = /^monthly on ([1-9]\d?)$/u

const weekdaysOf = (text: string): ReadonlyArray<number> | undefined => {
  if (text === "weekdays") return WEEKDAYS
  if (text === "weekends") return WEEKENDS
  const days = text.split(/, ?/u).map((day) => DAYS.indexOf(day as (typeof DAYS)[number]))
  return days.includes(-1) ? undefined : days
}

/** The days of a schedule, as the fields of a calendar; undefined where the words are none. */
const daysOf = (text: string): Pick<Fields, "days" | "weekdays"> | undefined => {
  if (text === "daily") return { days: [], weekdays: [] }
  const day = Number(MONTHLY.exec(text)?.[1] ?? 0)
  if (day > 0) return day <= MONTH_DAY_MAX ? { days: [day], weekdays: [] } : undefined
  const weekdays = weekdaysOf(text)
  return weekdays === undefined ? undefined : { days: [], weekdays }
}

const fieldsOf = (text: string): Fields | undefined => {
  const every = EVERY.exec(text)
  if (every !== null) {
    const hours = Number(every[1] ?? 1)
    if (DAY_HOURS % hours !== 0) return undefined
    const times = Array.from({ length: DAY_HOURS / hours }, (_, index) => index * hours)
    return { days: [], weekdays: [], hours: times, minutes: [0] }
  }
  const [, days = "", hour, minute] = AT.exec(text) ?? []
  const found = daysOf(days)
  return found === undefined ? undefined : { ...found, hours: [Number(hour)], minutes: [Number(minute)] }
}

/** Reads a schedule, or says what is wrong with it. */
export const readSchedule = (text: string): Result.Result<SkillSchedule, string> => {
  const [words = "", place, ...rest] = text.split(" in ")
  const fields = rest.length === 0 ? fieldsOf(words) : undefined
  if (fields === undefined) return Result.fail(`"${text}" is not a schedule: ${FORMS}`)
  const named = place === undefined ? undefined : Option.getOrUndefined(DateTime.zoneMakeNamed(place))
  if (place !== undefined && named === undefined)
    return Result.fail(`there is no time zone "${place}": write one such as Europe/Berlin, or none`)
  return Result.succeed({
    text,
    times: (zone) => Cron.make({ seconds: [0], months: [], ...fields, tz: named ?? zone })
  })
}

/** The problems of a skill that is to begin by the clock: a schedule starts it, and gives it no input. */
export const scheduleProblems = ({ input_schema, registry }: SkillSpec): ReadonlyArray<string> => {
  const triggers = registry?.triggers ?? []
  const isScheduled = triggers.some(({ kind }) => kind === "schedule")
  const needs = isScheduled && input_schema !== undefined ? valueProblem(schemaOf(input_schema), {}) : undefined
  return triggers.flatMap(({ kind, match, mode }, index) => {
    if (kind !== "schedule") return []
    const at = `at ["registry"]["triggers"][${index}]`
    const read = readSchedule(match)
    return [
      ...(Result.isFailure(read) ? [`${at}["match"]: ${read.failure}`] : []),
      ...(mode === "start"
        ? []
        : [`${at}["mode"]: at a scheduled time there is nobody to suggest it to: write "start"`]),
      ...(needs === undefined
        ? []
        : [`${at}: a schedule gives the skill no input: let input_schema require nothing, or leave the schedule out`])
    ]
  })
}

/** The schedules that begin a skill. A text of another form is a problem of the skill, and begins nothing. */
export const schedulesOf = ({ registry }: SkillSpec): ReadonlyArray<SkillSchedule> =>
  (registry?.triggers ?? []).flatMap(({ kind, match }) =>
    kind === "schedule" ? Option.toArray(Result.getSuccess(readSchedule(match))) : []
  )

/**
 * The times of schedules after `last_ms` up to and with `now_ms`, in milliseconds, the newest first: at most `count_max` of them, since an agent may
 * have been off for years.
 */
export const timesBetween = (
  schedules: ReadonlyArray<SkillSchedule>,
  zone: DateTime.TimeZone,
  last_ms: number,
  now_ms: number,
  count_max: number
): ReadonlyArray<number> => {
  const found = new Set<number>()
  for (const { times } of schedules) {
    const cron = times(zone)
    // The calendar answers times before an instant, and now counts as well.
    let at = Cron.prev(cron, new Date(now_ms + 1)).getTime()
    for (let count = 0; at > last_ms && count < count_max; count += 1) {
      found.add(at)
      at = Cron.prev(cron, new Date(at)).getTime()
    }
  }
  return [...found].toSorted((a, b) => b - a).slice(0, count_max)
}
