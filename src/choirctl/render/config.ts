/** Configurations for people: whether a file is valid, what would change, and what ran when. */
import type {
  ApplyReport,
  ChangeClass,
  ConfigChange,
  LoadReport,
  SecretReport,
  VersionSummary
} from "#schema/ConfigApi.ts"
import type { ConfigWarning } from "#src/shared/config/configFiles.ts"
import { paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { table } from "#src/choirctl/terminal/table.ts"

export const validText = ({
  path,
  warnings
}: {
  readonly path: string
  readonly warnings: ReadonlyArray<ConfigWarning>
}): string => [`${path} is valid`, ...warnings.map(({ message, path }) => `warning: ${path}: ${message}`)].join("\n")

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "-" }
const STYLES: Readonly<Record<ChangeClass, "green" | "yellow">> = {
  "hot-reload": "green",
  "restart-required": "yellow"
}

/** The line of one change; the commits of a repository stand behind its name. */
const changeLine = (color: boolean) => (row: ConfigChange) => {
  const { change, command, path } = row
  const commits = change.includes("->") ? `: ${change}` : ""
  const place = safeLine(`${SIGNS[change] ?? "~"} ${path}${commits}`)
  return `${place} ${paint(color, STYLES[row.class], `[${row.class}]`)} → ${safeLine(command)}`
}

const changeLines = (rows: ReadonlyArray<ConfigChange>, color: boolean) => rows.map(changeLine(color)).join("\n")

export const diffText = (rows: ReadonlyArray<ConfigChange>, color: boolean): string =>
  rows.length === 0 ? "No pending changes. To read config.json again: choirctl config load" : changeLines(rows, color)

export const loadText = ({ changes, repos }: LoadReport, color: boolean): string => {
  const read = repos.map(
    ({ commit, repo, stale }) =>
      `${repo} at ${commit === null ? "no commit" : commit.slice(0, 7)}${stale ? " (stale)" : ""}`
  )
  const head = `staged: config.json, secrets.json, ${read.join(", ")}`
  return changes.length === 0
    ? `${head}\nnothing differs from what runs`
    : `${head}\n${changeLines(changes, color)}\nTo apply what is [hot-reload]: choirctl config apply`
}

export const applyText = ({ applied, pending, previous, version }: ApplyReport, color: boolean): string =>
  [
    version === previous
      ? `nothing was applied, and version ${version} keeps running`
      : `version ${version} runs, after ${previous}`,
    ...(applied.length === 0 ? [] : [changeLines(applied, color)]),
    ...(pending.length === 0 ? [] : [`still to be done:\n${changeLines(pending, color)}`])
  ].join("\n")

export const secretsText = ({ changed, pending, version }: SecretReport, color: boolean): string =>
  [
    `version ${version} runs with ${changed.length === 0 ? "the same secrets" : changed.map(({ change, name }) => `${name} (${change})`).join(", ")}`,
    ...(pending.length === 0 ? [] : [`still to be done:\n${changeLines(pending, color)}`])
  ].join("\n")

export const historyTable = (rows: ReadonlyArray<VersionSummary>, color: boolean): string =>
  table(
    ["VERSION", "FROM", "BY", "WHO", ""],
    rows.map(({ action, created_at, running, version, who }) => [
      String(version),
      created_at,
      action,
      who,
      running ? { text: "runs", style: "green" } : ""
    ]),
    color
  )
