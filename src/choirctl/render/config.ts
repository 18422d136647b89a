/** Configurations for people: whether a file is valid, what would change, and what ran when. */
import type { ErrorDetail } from "#schema/ApiError.ts"
import type {
  ApplyReport,
  ChangeClass,
  ConfigChange,
  LoadReport,
  PlannedChange,
  SecretReport,
  VersionSummary
} from "#schema/ConfigApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import { paint, safeLine, safeText, table } from "#src/choirctl/terminal/text.ts"
import type { ConfigWarning } from "#src/shared/config/configFiles.ts"

/** The outcome of an agent's restart: an agent whose restart was refused still runs, one whose restart failed does not. */
export interface Restarted {
  readonly agent_id: AgentId
  readonly outcome: "restarted" | "not running" | "refused" | "failed"
  readonly error?: Pick<ErrorDetail, "type" | "message" | "hint">
}

/** The result of `config apply`: choird's report, the restarts that were tried, and the agents that still need one. */
export interface Applied extends ApplyReport {
  readonly restarted: ReadonlyArray<Restarted>
  readonly needs_restart: ReadonlyArray<AgentId>
}

/** Old and new value; of a secret only that it differs, and of a repository its commits. */
const values = ({ after, before, change }: PlannedChange) => {
  if (before !== null && after !== null) return `: ${before} → ${after}`
  if (after !== null) return `: ${after}`
  if (before !== null) return ` (was ${before})`
  return change.includes("->") ? `: ${change}` : ""
}

const SECRET = "secrets."

const name = (row: PlannedChange) =>
  row.path.startsWith(SECRET) ? `secret ${row.path.slice(SECRET.length)} ${row.change}` : `${row.path}${values(row)}`

const effect = ({ class: kind, command, restarts }: PlannedChange) => {
  if (kind === "hot-reload") return "[hot-reload]"
  return restarts.length > 0 ? `[restart-required: ${restarts.join(", ")}]` : `[restart-required] → ${command}`
}

/** A line for each change: its path, its values, and when it takes effect. */
export const planLines = (changes: ReadonlyArray<PlannedChange>, color: boolean): ReadonlyArray<string> =>
  changes.map(
    (row) =>
      `${SIGNS[row.change] ?? "~"} ${safeLine(name(row))} ${paint(color, row.class === "hot-reload" ? "green" : "yellow", safeLine(effect(row)))}`
  )

const restartLine = ({ agent_id, error, outcome }: Restarted) => {
  if (outcome === "restarted") return `restarted ${agent_id}`
  if (outcome === "not running") return `${agent_id} is not running and applies the changes when it starts`
  const [what, next] =
    outcome === "refused" ? ["was not restarted and keeps running", "restart"] : ["did not start again", "start"]
  return [
    `${agent_id} ${what}: ${safeText(error?.message ?? "")}`,
    ...(error?.hint === undefined ? [] : [`  ${safeText(error.hint)}`]),
    `  then: choirctl agent ${next} ${agent_id}`
  ].join("\n")
}

/** The agents that run without new commits of their repositories, because their image was not built since. */
export const unbuiltOf = (changes: ReadonlyArray<Pick<ConfigChange, "command">>): ReadonlyArray<string> => [
  ...new Set(
    changes.flatMap(({ command }) =>
      [...command.matchAll(/\bagent build (\S+) && choirctl agent restart \1(?= |$)/gu)].map(([, id = ""]) => id)
    )
  )
]

/** Commands for what no restart of an agent takes over. */
const leftLines = ({ needs_restart, pending }: Applied) => {
  const byAgents = new Set(needs_restart.map((id) => `choirctl agent restart ${id}`))
  const commands = [...new Set(pending.map(({ command }) => command))].filter(
    (command) => !command.split(" && ").every((each) => byAgents.has(each))
  )
  return commands.length === 0 ? [] : ["To finish:", ...commands.map((command) => `  ${safeLine(command)}`)]
}

/** The result for people. */
export const appliedText = (done: Applied): string => {
  const { applied, needs_restart, pending, previous, restarted, version } = done
  if (version === previous && applied.length + pending.length + restarted.length === 0) return "No pending changes."
  const head =
    version === previous
      ? restarted.length > 0
        ? `Version ${version} keeps running.`
        : `Nothing was applied, and version ${version} keeps running.`
      : `Version ${version} is running; it was ${previous}.`
  return [
    head,
    ...restarted.map(restartLine),
    ...unbuiltOf(pending).map((id) =>
      restarted.some(({ agent_id, outcome }) => agent_id === id && outcome === "restarted")
        ? `${id} was restarted without the new commits of its repository: its image has not been built since.`
        : `${id} was not restarted: its repository has new commits, and its image has not been built since.`
    ),
    ...(needs_restart.length === 0 || restarted.length > 0
      ? []
      : [
          `To apply the changes, restart ${needs_restart.join(", ")}:`,
          `  ${needs_restart.map((id) => `choirctl agent restart ${id}`).join(" && ")}`
        ]),
    ...leftLines(done)
  ].join("\n")
}

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

/** The line of one change; the commits of a repository are behind its name. */
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
    ? `${head}\nno changes from the running configuration`
    : `${head}\n${changeLines(changes, color)}\nTo apply what is [hot-reload]: choirctl config apply`
}

export const applyText = ({ applied, pending, previous, version }: ApplyReport, color: boolean): string =>
  [
    version === previous
      ? `nothing was applied, and version ${version} keeps running`
      : `version ${version} is running; it was ${previous}`,
    ...(applied.length === 0 ? [] : [changeLines(applied, color)]),
    ...(pending.length === 0 ? [] : [`still pending:\n${changeLines(pending, color)}`])
  ].join("\n")

export const secretsText = ({ changed, pending, version }: SecretReport, color: boolean): string =>
  [
    `version ${version} is running with ${changed.length === 0 ? "the same secrets" : changed.map(({ change, name }) => `${name} (${change})`).join(", ")}`,
    ...(pending.length === 0 ? [] : [`still pending:\n${changeLines(pending, color)}`])
  ].join("\n")

export const historyTable = (rows: ReadonlyArray<VersionSummary>, color: boolean): string =>
  table(
    ["VERSION", "FROM", "BY", "WHO", ""],
    rows.map(({ action, created_at, running, version, who }) => [
      String(version),
      created_at,
      action,
      who,
      running ? { text: "running", style: "green" } : ""
    ]),
    color
  )
