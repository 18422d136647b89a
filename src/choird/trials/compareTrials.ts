/** Whether a proposed skill or tool does worse than today's on the same record. Pure. */
import type { Schema } from "effect"
import type { RehearsedRun, TrialOutcome } from "#schema/Trial.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

/** A trial's tokens against today's from which on a skill counts as dearer, and the tokens by which they have to differ. */
const TOKENS_RATIO_MAX = 1.5
const TOKENS_MARGIN = 1000

/** The reasons are sentences' ends, about the proposed skill; of a run that was not rehearsed, one sentence says why. */
export interface Comparison {
  readonly verdict: RehearsedRun["verdict"]
  readonly reasons: ReadonlyArray<string>
}

type JsonSchema = Readonly<Record<string, Schema.Json>>

const keysOf = (value: Schema.Json | undefined): ReadonlyArray<string> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : []

const times = (count: number): string => (count === 1 ? "once" : `${count} times`)

/** More effects outside than today's, by tool. */
const moreOutside = (today: TrialOutcome, proposed: TrialOutcome): ReadonlyArray<string> =>
  Object.entries(proposed.external).flatMap(([tool, count]) => {
    const before = (today.external as Readonly<Record<string, number>>)[tool] ?? 0
    return count > before ? [`calls ${tool} ${times(count)} (today's: ${before === 0 ? "never" : times(before)})`] : []
  })

const isEmpty = (value: Schema.Json | undefined): boolean =>
  value === null ||
  value === undefined ||
  value === "" ||
  (Array.isArray(value) ? value.length === 0 : typeof value === "object" && Object.keys(value).length === 0)

const memberOf = (value: Schema.Json | undefined, key: string): Schema.Json | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as Readonly<Record<string, Schema.Json>>)[key]
    : undefined

/** The keys of today's output that are missing or empty, or the reason why the output does not fit today's schema. */
export const poorerOutput = (
  today: Schema.Json | undefined,
  proposed: Schema.Json | undefined,
  schema?: JsonSchema
): ReadonlyArray<string> => {
  const keys = keysOf(proposed)
  const missing = keysOf(today).filter((key) => !keys.includes(key))
  const emptied = keys.filter((key) => isEmpty(memberOf(proposed, key)) && !isEmpty(memberOf(today, key)))
  const fewer = keys.flatMap((key) => {
    const [now, then] = [memberOf(proposed, key), memberOf(today, key)]
    return Array.isArray(now) && Array.isArray(then) && now.length > 0 && now.length < then.length
      ? [`has ${now.length === 1 ? "1 entry" : `${now.length} entries`} in ${key} (today's: ${then.length})`]
      : []
  })
  const problem = schema === undefined ? undefined : valueProblem(schema, proposed ?? {})
  return [
    ...(missing.length > 0 ? [`leaves ${missing.join(", ")} out of its output`] : []),
    ...(emptied.length > 0 ? [`leaves ${emptied.join(", ")} empty, which today's version fills`] : []),
    ...fewer,
    ...(problem === undefined || missing.length > 0
      ? []
      : [`gives an output that does not fit today's schema: ${problem}`])
  ]
}

/** The keys with other values than today's. Only scripts give the same values for the same record, so that a difference of theirs is the change's. */
const otherValues = (today: TrialOutcome, proposed: TrialOutcome): ReadonlyArray<string> => {
  if (today.tokens > 0 || proposed.tokens > 0) return []
  const other = keysOf(today.output).filter(
    (key) =>
      canonicalJson(memberOf(today.output, key) ?? null) !== canonicalJson(memberOf(proposed.output, key) ?? null)
  )
  return other.length === 0 ? [] : [`gives different values for ${other.join(", ")} than today's version`]
}

const isDone = ({ outcome }: TrialOutcome) => outcome === "completed"

/**
 * The verdict where today's skill does not complete. Of a run that it failed then, a proposal that completes is better. Otherwise the trial did not
 * repeat what was recorded, and nothing follows from it.
 */
const withoutToday = (today: TrialOutcome, proposed: TrialOutcome, recorded: RecordedOutcome): Comparison =>
  recorded === "failed" && isDone(proposed)
    ? { verdict: "better", reasons: ["completes, while today's version does not"] }
    : { verdict: "not_rehearsed", reasons: [`today's skill ends as ${today.outcome}: ${today.summary}`] }

/** How the run ended that was recorded. */
export type RecordedOutcome = "completed" | "failed"

/** @param output_schema today's. */
export const compareTrials = (
  today: TrialOutcome,
  proposed: TrialOutcome,
  recorded: RecordedOutcome,
  output_schema?: JsonSchema
): Comparison => {
  if (!isDone(today)) return withoutToday(today, proposed, recorded)
  if (!isDone(proposed)) return { verdict: "worse", reasons: [`ends as ${proposed.outcome}: ${proposed.summary}`] }
  const isDearer = (one: TrialOutcome, other: TrialOutcome) =>
    one.tokens > other.tokens * TOKENS_RATIO_MAX && one.tokens > other.tokens + TOKENS_MARGIN
  const worse = [
    ...(proposed.refusals > today.refusals
      ? [`is refused ${times(proposed.refusals)} (today's: ${today.refusals === 0 ? "never" : times(today.refusals)})`]
      : []),
    ...moreOutside(today, proposed),
    ...poorerOutput(today.output, proposed.output, output_schema),
    ...(isDearer(proposed, today) ? [`takes ${proposed.tokens} tokens (today's: ${today.tokens})`] : [])
  ]
  if (worse.length > 0) return { verdict: "worse", reasons: worse }
  const better = [
    ...(proposed.refusals < today.refusals
      ? [`is refused ${times(proposed.refusals)} (today's: ${times(today.refusals)})`]
      : []),
    ...(isDearer(today, proposed) ? [`takes ${proposed.tokens} tokens (today's: ${today.tokens})`] : [])
  ]
  return better.length > 0
    ? { verdict: "better", reasons: better }
    : { verdict: "same", reasons: otherValues(today, proposed) }
}

/**
 * The verdict on a proposed tool: by the calls of the record, by the run of a skill that made some of them, and by its program on their inputs. Where
 * one of these could not be repeated, nothing follows from it, and the verdict of the others says so.
 */
export const withRecord = (worse: ReadonlyArray<string>, ...compared: ReadonlyArray<Comparison>): Comparison => {
  const of = (verdict: Comparison["verdict"]) => compared.filter((one) => one.verdict === verdict)
  const said = (...verdicts: ReadonlyArray<Comparison["verdict"]>) =>
    verdicts.flatMap((verdict) => of(verdict).flatMap(({ reasons }) => reasons))
  if (worse.length > 0 || of("worse").length > 0) return { verdict: "worse", reasons: [...worse, ...said("worse")] }
  const unknown = said("not_rehearsed")
  if (compared.length > 0 && of("not_rehearsed").length === compared.length)
    return { verdict: "not_rehearsed", reasons: unknown }
  const verdict = of("better").length > 0 ? "better" : "same"
  return {
    verdict,
    reasons: [...said(verdict), ...unknown.map((reason) => `was compared only in part: ${reason}`)]
  }
}
