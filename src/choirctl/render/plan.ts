/** What applying a configuration would change, and what it did. */
import type { ErrorDetail } from "#schema/ApiError.ts"
import type { ApplyReport, ConfigChange, PlannedChange } from "#schema/ConfigApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import { paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine, safeText } from "#src/choirctl/terminal/safeText.ts"

/** What became of an agent that was to take the changes over; one that was refused its restart still runs, and one that failed does not. */
export interface Restarted {
  readonly agent_id: AgentId
  readonly outcome: "restarted" | "not running" | "refused" | "failed"
  readonly error?: Pick<ErrorDetail, "type" | "message" | "hint">
}

/** What `config apply` prints: choird's own report, the restarts that were tried, and the agents that still need one. */
export interface Applied extends ApplyReport {
  readonly restarted: ReadonlyArray<Restarted>
  readonly needs_restart: ReadonlyArray<AgentId>
}

const SIGNS: Readonly<Record<string, string>> = { added: "+", removed: "-" }

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
  if (outcome === "not running") return `${agent_id} does not run and takes the changes over when it starts`
  const [what, next] =
    outcome === "refused" ? ["was not restarted and keeps running", "restart"] : ["did not come up again", "start"]
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
    ...unbuiltOf(pending).map(
      (id) => `${id} was not restarted: its repository has new commits, and its image was not built since.`
    ),
    ...(needs_restart.length === 0 || restarted.length > 0
      ? []
      : [
          `To take the changes over, restart ${needs_restart.join(", ")}:`,
          `  ${needs_restart.map((id) => `choirctl agent restart ${id}`).join(" && ")}`
        ]),
    ...leftLines(done)
  ].join("\n")
}
