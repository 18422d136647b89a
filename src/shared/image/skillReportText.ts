/** The judgement of a skill as people read it, on cards and on a terminal. Pure. */
import type { SkillBounds, SkillReport } from "#schema/SkillCheck.ts"

const listed = (names: ReadonlyArray<string>) => (names.length === 0 ? "none" : names.join(", "))

const dollars = (usd: number) => `$${usd < 1 ? usd.toFixed(3) : usd.toFixed(2)}`

/** The most that a run can take. */
export const boundsText = ({ locks, model_calls, tokens, usd }: SkillBounds): string => {
  const asked = [
    `at most ${model_calls} model calls`,
    ...(tokens === null ? [] : [`${tokens} tokens`]),
    ...(usd === null ? [] : [dollars(usd)])
  ]
  return [...(model_calls === 0 ? ["asks no model"] : asked), `locks ${listed(locks)}`].join(", ")
}

export const gradeText = ({ grade, passed, points }: Pick<SkillReport, "grade" | "passed" | "points">): string =>
  `${grade}, ${passed} of ${points.length} points`

/** The times at which a skill begins without a person. */
export const beginsText = ({ begins = [] }: SkillReport): ReadonlyArray<string> =>
  begins.length === 0 ? [] : [`begins by itself: ${begins.join("; ")}`]

/** The facts that a person decides by: the grade, what failed, what a run can take and do, and what it does not. */
export const reportLines = (report: SkillReport): ReadonlyArray<string> => [
  `grade: ${gradeText(report)}`,
  ...report.points.flatMap(({ detail, ok, point }) => (ok ? [] : [`failed: ${point}: ${detail}`])),
  `a run: ${boundsText(report.bounds)}`,
  `capabilities: ${listed(report.capabilities)}`,
  ...beginsText(report),
  ...(report.does === null ? [] : [`does: ${report.does}`]),
  ...(report.does_not === null ? [] : [`does not: ${report.does_not}`])
]
