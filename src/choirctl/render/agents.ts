/** Agents for people. */
import type { AgentDetail, BuildProgress, RestartedAgent } from "#schema/AgentsApi.ts"
import type { AgentStatus, AgentSummary } from "#schema/AgentSummary.ts"
import type { UpdateOutcome } from "#schema/AgentsApi.ts"
import { boundDms, type ResourceBindings } from "#schema/ResourceBindings.ts"
import { fields, paint, type Paint, safeLine, safeText, span, table } from "#src/choirctl/terminal/text.ts"
import { approvalsWaiting } from "./approvals.ts"
import { counted } from "#src/shared/text/counts.ts"

/** A session's bindings by kind, with all DMs under `dm`. */
export const bindingEntries = (
  bindings: ResourceBindings
): ReadonlyArray<readonly [kind: string, names: ReadonlyArray<string>]> => {
  const { dms: _, ...single } = bindings
  return Object.entries(single).map(([kind, name]) => [kind, kind === "dm" ? boundDms(bindings) : [name]])
}

const STYLES: Readonly<Record<AgentStatus, Paint>> = {
  stopped: "dim",
  building: "yellow",
  starting: "yellow",
  running: "green",
  stopping: "yellow",
  paused: "yellow",
  crashed: "red"
}

/** The version that an agent runs with, and the newest one while it has not taken that over. */
const configVersion = ({
  config_version,
  config_version_latest
}: Pick<AgentSummary, "config_version" | "config_version_latest">) =>
  config_version_latest === undefined ? String(config_version) : `${config_version} (behind ${config_version_latest})`

type Health = Pick<AgentSummary, "health">

/** Epoch, lag, age of the heartbeat, and crashes before the breaker (R78). */
const healthText = ({ health }: Health) => {
  if (health === undefined) return ""
  const { crashes, crashes_max, epoch, heartbeat_age_ms, lag_revs } = health
  return [
    `epoch ${epoch}`,
    ...(lag_revs === null ? [] : [`lag ${lag_revs}`]),
    ...(heartbeat_age_ms === null ? [] : [`heartbeat ${span(heartbeat_age_ms)} ago`]),
    `crashes ${crashes}/${crashes_max}`
  ].join(", ")
}

/** The same with what is spent (R78). */
const healthAndSpent = ({ health }: Health) => {
  if (health === undefined) return ""
  const { cost_usd, tokens } = health
  const cost = cost_usd.limit === null && cost_usd.used === 0 ? [] : [costText(cost_usd)]
  return [healthText({ health }), `tokens ${spent(tokens)}`, ...cost].join(", ")
}

const uptime = (ms: number) => (ms === 0 ? "" : span(ms))

export const agentTable = (rows: ReadonlyArray<AgentSummary>, color: boolean): string => {
  if (rows.length === 0) return "no agent is configured: choirctl agent init <agent-id>"
  const isKnown = rows.some(({ health }) => health !== undefined)
  return table(
    ["AGENT", "STATUS", "UPTIME", "SESSION", "IMAGE", "CONFIG", ...(isKnown ? ["HEALTH"] : [])],
    rows.map(({ agent_id, image_version, session_id, status, uptime_ms, ...row }) => [
      agent_id,
      { text: status, style: STYLES[status] },
      uptime(uptime_ms),
      session_id ?? "",
      image_version ?? "",
      configVersion(row),
      ...(isKnown ? [healthAndSpent(row)] : [])
    ]),
    color
  )
}

/** The state of an agent after a change. */
export const agentLine = ({ agent_id, session_id, status }: AgentSummary, color: boolean): string =>
  `${agent_id} is ${paint(color, STYLES[status], status)}${session_id === null ? "" : `, session ${session_id}`}`

/** Bindings that a restarted agent keeps from its start, and the command that uses the defaults. */
export const keptLines = ({ agent_id, keeps }: RestartedAgent): ReadonlyArray<string> => {
  if (keeps.length === 0) return []
  const lines = keeps.map(({ binding, default: usual, name }) => {
    const key = binding.replaceAll("_", "-")
    return `keeps ${key} ${name} from agent start --${key}; the default is ${usual ?? "none"}`
  })
  return [...lines, `to use the defaults: choirctl agent stop ${agent_id} && choirctl agent start ${agent_id}`]
}

type Spent = AgentDetail["budgets"]["tokens"]

const spent = ({ limit, used }: Spent) => {
  const amount = Number.isInteger(used) ? counted(used) : used.toFixed(4)
  return limit === null ? amount : `${amount} of ${counted(limit)}`
}

/** The cost, as far as prices are known. */
const costText = ({ unpriced = [], ...cost }: AgentDetail["budgets"]["cost_usd"]) => {
  if (unpriced.length === 0) return `${spent(cost)} USD`
  const unknown = `unknown: no price for ${unpriced.join(", ")}`
  return cost.used === 0 ? unknown : `${spent(cost)} USD, and more that is ${unknown}`
}

/** The warning of a cost limit that calls of models without a price do not count towards. */
export const unpricedLines = ({ limit, unpriced = [] }: AgentDetail["budgets"]["cost_usd"]): ReadonlyArray<string> => {
  if (limit === null || unpriced.length === 0) return []
  const what = unpriced.length === 1 ? "has no price, so its calls do" : "have no price, so their calls do"
  return [
    `warning: ${unpriced.join(", ")} ${what} not count towards budgets.max_cost_usd (${limit}): add models.<name>.price to config.json`
  ]
}

const bindingText = (bindings: AgentDetail["resource_bindings"]) =>
  bindings === null
    ? "none"
    : bindingEntries(bindings)
        .map(([kind, names]) => `${kind} ${names.join(" and ")}`)
        .join(", ")

export const agentDetail = (detail: AgentDetail, color: boolean): string => {
  const { budgets } = detail
  const head = fields([
    ["agent", detail.agent_id],
    ["status", paint(color, STYLES[detail.status], detail.status)],
    ...(detail.reason === null ? [] : [["reason", safeLine(detail.reason)] as const]),
    ["session", detail.session_id ?? "none"],
    ["uptime", uptime(detail.uptime_ms) || "-"],
    ["config", `version ${configVersion(detail)}`],
    ...(detail.health === undefined ? [] : [["health", healthText(detail)] as const]),
    ["revision", `${detail.last_rev}, acknowledged ${detail.acked_rev}`],
    ["bindings", bindingText(detail.resource_bindings)],
    ["holds", detail.leases.map(({ kind, name }) => `${kind} ${name}`).join(", ") || "nothing"],
    ["tokens", spent(budgets.tokens)],
    ["tool calls", spent(budgets.tool_calls)],
    ["cost", costText(budgets.cost_usd)],
    ["core jobs", spent(budgets.core_jobs)],
    ["approvals", approvalsWaiting(detail.approvals_pending)]
  ])
  if (detail.lanes.length === 0) return head
  const lanes = table(
    ["LANE", "STATE", "SKILL", "STEP"],
    detail.lanes.map(({ lane, skill, skill_state, state, step }) => [
      lane,
      state,
      skill === null ? "" : `${skill} in ${skill_state ?? ""}`,
      String(step)
    ]),
    color
  )
  return `${head}\n\n${lanes}`
}

type BuildReport = Extract<BuildProgress, { readonly type: "done" }>["result"]

const OUTCOMES = {
  built: "has a new image and is not running",
  redeployed: "runs on its new image",
  skipped: "is up to date",
  failed: "failed"
} as const

/** A line for each agent, with the reason and what to do where it failed. */
export const updateLines = (rows: ReadonlyArray<UpdateOutcome>): string =>
  rows
    .map(({ agent_id, error, image_version, outcome }) =>
      error === undefined
        ? `${agent_id} ${OUTCOMES[outcome]}: ${image_version}`
        : `${agent_id} ${OUTCOMES[outcome]}: ${safeText(error.message)}${error.hint === undefined ? "" : `\n  ${safeText(error.hint)}`}`
    )
    .join("\n")

export const buildLine = ({ agent_id, built, image_version }: BuildReport): string =>
  built
    ? `built ${image_version} for ${agent_id}; to use it: choirctl agent start ${agent_id}, or agent restart if it runs`
    : `${image_version} of ${agent_id} is up to date`
