/**
 * The class of each change of config.json: whether it takes effect at once or needs a restart, and of what. The table is
 * docs/configuration.md's; a key of config.json without a row does not compile.
 */
import type { Config } from "#schema/Config.ts"
import type { ChangeClass, ConfigChange } from "#schema/ConfigApi.ts"
import { AgentId } from "#schema/Ids.ts"
import { BINDINGS, NAMED_BINDINGS, type NamedBinding } from "#schema/Resources.ts"
import { type AgentUse, type Difference, differences, resourcesOf, SECTIONS } from "./resourcesInUse.ts"

/**
 * How a key takes effect. `apply`: at once. `choird`: read at choird's start alone. `image`: by a build. `agents`: at once if no
 * running agent is affected, else at that agent's next start. `kept`: the same for the one field of an entry that agents keep from
 * their start ({@link BINDINGS}), and at once for the others.
 */
type Reach = "apply" | "choird" | "image" | "agents" | "kept"

/** The sections that {@link BINDINGS} has such a field for. */
type KeptSections = {
  readonly [
    K in NamedBinding as (typeof BINDINGS)[K]["kept"] extends null ? never : (typeof BINDINGS)[K]["section"]
  ]: "kept"
}

export const REACH = {
  $schema: "apply",
  global_repo: "image",
  timezone: "choird",
  workspaces: "kept",
  models: "apply",
  tts: "apply",
  voice_profiles: "apply",
  stt: "apply",
  git_identities: "apply",
  notion_integrations: "apply",
  email_accounts: "kept",
  search: "apply",
  embedding: "choird",
  gateways: "apply",
  dms: "apply",
  postgres: "choird",
  runtime: "choird",
  transport: "choird",
  agents: "agents",
  budgets: "apply",
  memory: "apply",
  jobs: "apply",
  approvals: "apply",
  skills: "apply",
  heartbeat_interval_ms: "apply",
  crash_detection_threshold_ms: "apply",
  rate_limit_retry_ms: "apply",
  log_archive_threshold_lines: "apply",
  retention: "apply",
  telemetry: "choird",
  tls: "choird"
} as const satisfies Record<keyof Config, Reach> & KeptSections

/** The fields of the entries that a binding names which an agent keeps from its start. */
const KEPT = NAMED_BINDINGS.flatMap((binding) => {
  const { kept: field, section } = BINDINGS[binding]
  return field === null ? [] : [{ binding, field, section }]
})

/** The keys that choird reads only at its start. */
export const STARTED_WITH = Object.keys(REACH)
  .map((key) => key as keyof typeof REACH)
  .filter((key) => REACH[key] === "choird")

export const APPLY = "choirctl config apply"
export const RESTART_CHOIRD = "choirctl daemon stop && choirctl daemon start"

/** The commands for each of the agents, or for one as an example if there are many. */
export const forAgents = (agents: ReadonlyArray<AgentId>, command: (id: string) => string): string =>
  (agents.length > 3 ? ["<agent-id>"] : agents).map(command).join(" && ")

const restart = (id: string) => `choirctl agent restart ${id}`
/** A resource in use is removed when its agent has stopped and the same configuration is applied again. */
const letGo = (id: string) => `choirctl agent stop ${id} && ${APPLY} && choirctl agent start ${id}`
const letAgentGo = (id: string) => `choirctl agent stop ${id} && ${APPLY}`
const build = (uses: ReadonlyArray<AgentUse>) => (id: string) =>
  uses.some(({ agent_id }) => agent_id === id)
    ? `choirctl agent build ${id} && ${restart(id)}`
    : `choirctl agent build ${id}`

/** A build reads the repositories of the configuration that runs, so a new address or ref is applied first. */
const BEFORE_BUILD = `${APPLY} && `

/** The commands that are left of a change once it was applied. */
export const onceApplied = (command: string): string =>
  command.startsWith(BEFORE_BUILD) ? command.slice(BEFORE_BUILD.length) : command

/** A change with the running agents that adopt it by a restart alone. */
export interface ClassifiedChange extends ConfigChange {
  readonly restarts: ReadonlyArray<AgentId>
}

type Verdict = Pick<ClassifiedChange, "class" | "command" | "restarts">
const verdict = (kind: ChangeClass, command: string, restarts: ReadonlyArray<AgentId> = []): Verdict => ({
  class: kind,
  command,
  restarts
})
const HOT = verdict("hot-reload", APPLY)
const restarting = (agents: ReadonlyArray<AgentId>, command: (id: string) => string): Verdict =>
  agents.length === 0 ? HOT : verdict("restart-required", forAgents(agents, command), agents)

/** The value at a path of a JSON value. */
export const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value
  )

const isSame = (a: unknown, b: unknown) => differences({ a }, { a: b }).length === 0

const isDm = ([section, , part, key]: ReadonlyArray<string>) =>
  section === "agents" && part === "defaults" && key === "dm"

/** One DM may be written as a name or as a list of one. */
const isSameDefault = (path: ReadonlyArray<string>, before: unknown, after: unknown) =>
  isDm(path) ? isSame([before].flat(), [after].flat()) : isSame(before, after)

/** The running agents that are bound to an entry, and to which `path` said something else when they started. */
const startedWithAnother = (target: Config, uses: ReadonlyArray<AgentUse>, path: ReadonlyArray<string>) =>
  uses.flatMap(({ agent_id, bindings, started_with }) =>
    resourcesOf(started_with, bindings).has(path.slice(0, 2).join(".")) &&
    !isSame(at(started_with, path), at(target, path))
      ? [agent_id]
      : []
  )

/** The running agents that use an entry to be removed. */
const holders = (running: Config, uses: ReadonlyArray<AgentUse>, [section = "", name = ""]: ReadonlyArray<string>) =>
  uses.flatMap(({ agent_id, bindings }) => (resourcesOf(running, bindings).has(`${section}.${name}`) ? [agent_id] : []))

const ofAgent = (target: Config, uses: ReadonlyArray<AgentUse>, { change, path }: Difference): Verdict => {
  const [, id = "", part] = path
  const use = uses.find(({ agent_id }) => agent_id === id)
  if (part === "repo") return verdict("restart-required", `${BEFORE_BUILD}${build(uses)(id)}`)
  if (use === undefined) return HOT
  if (part === undefined) return change === "removed" ? verdict("restart-required", letAgentGo(id)) : HOT
  return isSameDefault(path, at(use.started_with, path), at(target, path)) ? HOT : restarting([use.agent_id], restart)
}

const classify = (running: Config, target: Config, uses: ReadonlyArray<AgentUse>, difference: Difference): Verdict => {
  const { change, path } = difference
  const [section = "", , key] = path
  const removed = change === "removed" && path.length === 2 && SECTIONS.some((known) => known === section)
  if (removed) {
    const held = holders(running, uses, path)
    if (held.length > 0) return restarting(held, letGo)
  }
  switch (REACH[section as keyof Config]) {
    case "choird":
      return verdict("restart-required", RESTART_CHOIRD)
    case "image":
      return verdict(
        "restart-required",
        `${BEFORE_BUILD}${forAgents(
          Object.keys(target.agents).map((id) => AgentId.make(id)),
          build(uses)
        )}`
      )
    case "agents":
      return ofAgent(target, uses, difference)
    case "kept":
      return key === undefined || KEPT.some((one) => one.section === section && one.field === key)
        ? restarting(startedWithAnother(target, uses, path), restart)
        : HOT
    default:
      return HOT
  }
}

/** The differences between `target` and what an agent was started with, whatever choird itself has adopted by now. */
export const sinceStart = (
  target: Config,
  { agent_id, bindings, started_with }: AgentUse
): ReadonlyArray<Difference> => {
  const paths: ReadonlyArray<ReadonlyArray<string>> = [
    ["agents", agent_id, "defaults"],
    ["agents", agent_id, "web"],
    ...KEPT.flatMap(({ binding, field, section }) =>
      [bindings[binding] ?? []].flat().map((name) => [section, name, field])
    )
  ]
  return paths.flatMap((path) => {
    const after = at(target, path)
    return after === undefined
      ? []
      : differences(at(started_with, path), after, path).filter(
          (one) => !isSameDefault(one.path, at(started_with, one.path), at(target, one.path))
        )
  })
}

/**
 * Everything that `target` changes in what runs, each with its class and the command that puts it into effect. What an agent has not
 * adopted since its start stays in the list until it is started again.
 */
export const configChanges = (
  running: Config,
  target: Config,
  uses: ReadonlyArray<AgentUse>
): ReadonlyArray<ClassifiedChange> => {
  const found = new Map<string, Difference>()
  for (const difference of [...differences(running, target), ...uses.flatMap((use) => sinceStart(target, use))]) {
    const key = difference.path.join(".")
    if (!found.has(key)) found.set(key, difference)
  }
  return [...found]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, difference]) => ({
      path,
      change: difference.change,
      ...classify(running, target, uses, difference)
    }))
}
