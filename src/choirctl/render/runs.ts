/** Runs of skills and jobs for people. */
import type { JobRun, SkillRun } from "#schema/RunsApi.ts"
import { ago, type Cell, type Paint, span, table } from "#src/choirctl/terminal/text.ts"

const STYLES: Readonly<Record<string, Paint>> = { completed: "green", failed: "red", error: "red", cancelled: "dim" }

/** How it ended; what is at work says so. */
const outcomeCell = (outcome: string | null, otherwise: string): Cell => {
  const style = outcome === null ? undefined : (STYLES[outcome] ?? "yellow")
  const text = outcome ?? otherwise
  return style === undefined ? text : { text, style }
}

const took = ({ ended_at, started_at }: Pick<SkillRun, "started_at" | "ended_at">): string =>
  ended_at === null ? "" : span(Date.parse(ended_at) - Date.parse(started_at))

const cost = ({ cost_usd }: Pick<SkillRun, "cost_usd">): string => (cost_usd > 0 ? `${cost_usd.toFixed(4)} USD` : "")

export const skillRunTable = (rows: ReadonlyArray<SkillRun>, now_ms: number, color: boolean): string =>
  rows.length === 0
    ? "no skill has run"
    : table(
        ["SKILL", "LANE", "STARTED", "OUTCOME", "STEPS", "TOOK", "TOKENS", "COST", "SESSION", "REVISION"],
        rows.map((row) => [
          row.skill,
          row.lane,
          ago(row.started_at, now_ms),
          outcomeCell(row.outcome, `at ${row.state}`),
          String(row.steps),
          took(row),
          String(row.tokens),
          cost(row),
          row.session_id,
          String(row.started_rev)
        ]),
        color
      )

export const jobRunTable = (rows: ReadonlyArray<JobRun>, now_ms: number, color: boolean): string =>
  rows.length === 0
    ? "no job has run"
    : table(
        ["JOB", "STARTED", "OUTCOME", "STEPS", "TOOK", "TOKENS", "COST", "SESSION", "REVISION"],
        rows.map((row) => [
          row.job_name,
          ago(row.started_at, now_ms),
          outcomeCell(row.outcome, "running"),
          String(row.steps),
          took(row),
          String(row.tokens),
          cost(row),
          row.session_id,
          String(row.started_rev)
        ]),
        color
      )
