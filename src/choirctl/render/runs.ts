/** Runs of skills and jobs for people. */
import type { Schema } from "effect"
import type { JobRun, ProfileDetail, SkillRun } from "#schema/RunsApi.ts"
import { ago, type Cell, fields, type Paint, safeLine, span, table } from "#src/choirctl/terminal/text.ts"

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

const judgeCell = ({ judge_score, verdict }: Pick<SkillRun, "judge_score" | "verdict">): Cell =>
  judge_score === null || verdict === null
    ? ""
    : { text: `${judge_score} ${verdict}`, style: verdict === "passed" ? "green" : "red" }

export const skillRunTable = (
  rows: ReadonlyArray<SkillRun>,
  now_ms: number,
  color: boolean,
  skill: string | undefined
): string =>
  rows.length === 0
    ? skill === undefined
      ? "no skill has run"
      : `the skill ${skill} has not run`
    : table(
        [
          "SKILL",
          "CLASS",
          "TIER",
          "LANE",
          "TRIGGER",
          "STARTED",
          "OUTCOME",
          "JUDGE",
          "RETRIES",
          "STEPS",
          "TOOK",
          "TOKENS",
          "COST",
          "SESSION",
          "REVISION"
        ],
        rows.map((row) => [
          row.skill,
          row.execution_class ?? "",
          row.tier ?? "",
          row.lane,
          safeLine(row.trigger ?? ""),
          ago(row.started_at, now_ms),
          outcomeCell(row.outcome, `at ${row.state}`),
          judgeCell(row),
          String(row.retries ?? 0),
          String(row.steps),
          took(row),
          String(row.tokens),
          cost(row),
          row.session_id,
          String(row.started_rev)
        ]),
        color
      )

const writebackCell = ({ orphan, writeback }: JobRun): Cell => {
  if (orphan) return { text: "orphan", style: "red" }
  return writeback === null ? "" : `${writeback.status} ${writeback.progress}%`
}

export const jobRunTable = (rows: ReadonlyArray<JobRun>, now_ms: number, color: boolean): string =>
  rows.length === 0
    ? "no job has run"
    : table(
        [
          "JOB",
          "TYPE",
          "SKILL",
          "STARTED",
          "STATE",
          "JUDGE",
          "WRITEBACK",
          "STEPS",
          "TOOK",
          "TOKENS",
          "COST",
          "SESSION",
          "REVISION"
        ],
        rows.map((row) => [
          row.job_name,
          row.agent_type ?? row.pool ?? "",
          row.skill ?? "",
          ago(row.started_at, now_ms),
          outcomeCell(row.outcome, row.lifecycle.toLowerCase()),
          judgeCell(row),
          writebackCell(row),
          String(row.steps),
          took(row),
          String(row.tokens),
          cost(row),
          row.session_id,
          String(row.started_rev)
        ]),
        color
      )

const percent = (rate: number): string => `${Math.round(rate * 100)}%`

export const profileTable = (rows: ReadonlyArray<ProfileDetail>, color: boolean): string =>
  rows.length === 0
    ? "no job profiles"
    : table(
        ["TYPE", "POOL", "WRITES", "AT ONCE", "RUNS", "SUCCESS", "MEAN TIME", "DESCRIPTION"],
        rows.map(({ history, profile: { agent_type, description, limits, permissions, pool } }) => [
          agent_type,
          pool,
          permissions.write_access ? "yes" : "no",
          String(limits.max_concurrent_tasks),
          String(history?.total_runs ?? 0),
          history === null ? "" : percent(history.success_rate),
          history === null ? "" : span(history.avg_duration_ms),
          safeLine(description ?? "")
        ]),
        color
      )

export const profileText = ({ history, profile }: ProfileDetail): string => {
  const { limits, permissions } = profile
  return fields([
    ["type", profile.agent_type],
    ["pool", profile.pool],
    ["description", safeLine(profile.description ?? "")],
    ["tools", permissions.tools.join(", ") || "all that jobs have"],
    ["writes", permissions.write_access ? "yes" : "no: only tools without an effect"],
    ["skills", profile.skills.join(", ") || "all"],
    ["at once", String(limits.max_concurrent_tasks)],
    ["tokens", limits.token_budget === undefined ? "no limit of its own" : `at most ${limits.token_budget}`],
    [
      "time",
      limits.timeout_ms === undefined
        ? "budgets.per_job_wall_time_ms of config.json"
        : `at most ${span(limits.timeout_ms)}`
    ],
    [
      "history",
      history === null
        ? "no runs in the last 90 days"
        : `${history.total_runs} runs in the last 90 days, ${percent(history.success_rate)} completed with a writeback, ${span(history.avg_duration_ms)} on average`
    ]
  ])
}

/** A skill that a person ran: that it began, or how it ended. */
export const skillRunText = (run: {
  readonly job_name: string
  readonly refused: string | null
  readonly rev: number | null
  readonly outcome?: string
  readonly summary?: string
  readonly result?: Schema.Json
}): string => {
  if (run.refused !== null) return `not started: ${safeLine(run.refused)}`
  // The words of a job are cut, and its result is not.
  const words = run.result === undefined ? (run.summary ?? "") : JSON.stringify(run.result)
  if (run.outcome !== undefined) return `${run.job_name} ${run.outcome}: ${safeLine(words)}`
  return run.rev === null
    ? "the agent has not answered yet"
    : `runs as the job ${run.job_name}, from revision ${run.rev}`
}
