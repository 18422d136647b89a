/** The schedule that found words of a repetition name, as plans write it. */
import { Result } from "effect"
import { clockText, DEFAULT_TIME } from "./doubts.ts"
import type { FoundWords } from "./foundWords.ts"
import type { Repetition } from "./repetitions.ts"

const MONTH_DAY_MAX = 28
const WEEK_DAYS = 7
const HOUR_MINUTES = 60

type Interval = Extract<Repetition, { readonly kind: "interval" }>

const intervalOf = ({ count, unit }: Interval): Result.Result<string, string> => {
  const isPart = unit === "hour" && !Number.isInteger(count)
  const whole = isPart ? { count: count * HOUR_MINUTES, unit: "minute" } : { count, unit }
  const { count: number, unit: of } = unit === "week" ? { count: count * WEEK_DAYS, unit: "day" } : whole
  if (unit === "second" || !Number.isInteger(number))
    return Result.fail('A plan repeats by whole minutes, hours or days: write "every 20 minutes".')
  return Result.succeed(number === 1 ? `every ${of}` : `every ${number} ${of}s`)
}

/** The schedule, or what is wrong with it. */
export const scheduleOf = (
  repetition: Repetition,
  { offset, time }: Pick<FoundWords, "offset" | "time">
): Result.Result<string, string> => {
  if (offset !== undefined)
    return Result.fail("What repeats has the time of your own zone: write the time of day there.")
  if (repetition.kind === "some weeks")
    return Result.fail('A weekday comes every week: write "every monday at 9:00", or "every 14 days" from now.')
  if (repetition.kind === "days") {
    const day = Number(/^monthly on (\d+)$/u.exec(repetition.days)?.[1] ?? 1)
    return day < 1 || day > MONTH_DAY_MAX
      ? Result.fail(`Not every month has a day ${day}: write one from 1 to ${MONTH_DAY_MAX}.`)
      : Result.succeed(`${repetition.days} at ${clockText(time ?? DEFAULT_TIME)}`)
  }
  const { count, unit } = repetition
  if (unit === "year")
    return Result.fail('Write what comes every year as a cron expression: "0 9 24 12 *" is each 24 December at 9:00.')
  if (unit === "month") return Result.fail('Say the day of the month: write "every month on the 1st at 9:00".')
  if (unit === "week" && time !== undefined && count === 1)
    return Result.fail('Say the day of the week: write "every monday at 9:00".')
  if (unit === "day" && count === 1) return Result.succeed(`daily at ${clockText(time ?? DEFAULT_TIME)}`)
  if (time !== undefined)
    return Result.fail(
      'An interval counts from when the plan is made: leave the time of day out, or write "every day" or "every monday" with it.'
    )
  return intervalOf(repetition)
}
