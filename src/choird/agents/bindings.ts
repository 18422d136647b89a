/** The resources that a run is bound to: an agent's defaults, and what its start overrides. */
import { Effect, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import { boundDms, dmList, type ResourceBindings, type RunBindings } from "#schema/ResourceBindings.ts"
import {
  BINDINGS,
  NAMED_BINDINGS,
  type NamedBinding,
  OPTIONAL_BINDINGS,
  type OptionalBinding
} from "#schema/Resources.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { RestartAgent, RestartedAgent } from "#schema/AgentsApi.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"

/** False for an invalid file, too: `config validate` then says what is wrong with it. */
export const isInFile = (home: string, agent_id: AgentId) =>
  loadFiles(home).pipe(
    Effect.match({
      onSuccess: ({ config }) => Object.hasOwn(config.agents, agent_id),
      onFailure: () => false
    })
  )

/** The reason why there are none, and a hint. */
export interface BindingProblem {
  readonly reason: string
  readonly hint: string
}

const choiceHint = (known: ReadonlyArray<string>) =>
  known.length === 1 ? `the only one is ${known[0]}` : `choose one of ${known.join(", ")}`

/** The first binding whose name is not in config.json; bindings may come from an older configuration. */
export const unknownBinding = (config: Config, bindings: ResourceBindings): BindingProblem | undefined => {
  for (const key of NAMED_BINDINGS) {
    const { label, section } = BINDINGS[key]
    const names = key === "dm" ? boundDms(bindings) : [bindings[key]]
    const name = names.find((one) => one !== undefined && !Object.hasOwn(config[section], one))
    if (name === undefined) continue
    const known = Object.keys(config[section])
    return {
      reason: `there is no ${label} "${name}"`,
      hint: known.length === 0 ? `add one to ${section} in config.json` : choiceHint(known)
    }
  }
  return undefined
}

/** The names that a start is given. `explicit` lists those that a person chose rather than carried over; absent: all. */
interface StartNames extends RestartAgent {
  readonly explicit?: ReadonlyArray<NamedBinding>
}

type Agent = Config["agents"][AgentId]

/** An `llm` of the start is edge's; core jobs use it as well unless the start or the agent names a `core_llm` (E14). */
export const bindingsOf = (
  config: Config,
  agent_id: AgentId,
  { defaults }: Agent,
  options: StartNames
): Result.Result<RunBindings, BindingProblem> => {
  const dms = dmList(options.dm ?? defaults.dm)
  const [dm] = dms
  if (dm === undefined) {
    const known = Object.keys(config.dms).join(" or ")
    return Result.fail({
      reason: `${agent_id} has no DM to speak through`,
      hint: known === "" ? "add a DM to dms in config.json" : `choirctl agent start ${agent_id} --dm ${known}`
    })
  }
  const llm = options.llm ?? defaults.llm
  const rest: Partial<Record<OptionalBinding, ResourceName>> = {}
  for (const key of OPTIONAL_BINDINGS) {
    const name = options[key] ?? defaults[key]
    if (name !== undefined) rest[key] = name
  }
  const core_llm = options.core_llm ?? defaults.core_llm ?? llm
  const bindings = { workspace: options.workspace ?? defaults.workspace, llm, core_llm, dm, dms, ...rest }
  const unknown = unknownBinding(config, bindings)
  if (unknown !== undefined) return Result.fail(unknown)
  const explicit = (options.explicit ?? NAMED_BINDINGS).filter((key) => options[key] !== undefined)
  return Result.succeed({ ...bindings, explicit })
}

/** The value of one binding in a run or in an agent's defaults; DMs always as a list. */
const bound = (bindings: RunBindings, key: NamedBinding) => (key === "dm" ? boundDms(bindings) : bindings[key])
const usualOf = (defaults: Agent["defaults"], key: NamedBinding) => {
  if (key === "core_llm") return defaults.core_llm ?? defaults.llm
  return key === "dm" ? (defaults.dm === undefined ? undefined : dmList(defaults.dm)) : defaults[key]
}

const isSame = (one: unknown, other: unknown) => canonicalJson({ one }) === canonicalJson({ one: other })

/**
 * The bindings that a start named. A run of an earlier version does not record them: they are those that differ from `defaults`, with
 * which it began, except for `core_llm`, which no such start could name.
 */
export const explicitOf = (bindings: RunBindings, defaults: Agent["defaults"]): ReadonlyArray<NamedBinding> =>
  bindings.explicit ??
  NAMED_BINDINGS.filter((key) => key !== "core_llm" && !isSame(bound(bindings, key), usualOf(defaults, key)))

/** Bindings that come from the defaults as they are, although the start of the run named them. */
export type Rebound = ReadonlySet<string>
const NOTHING_REBOUND: Rebound = new Set()

/** These bindings of a run, its DMs as the whole list. */
const namesOf = (bindings: RunBindings, keys: ReadonlyArray<NamedBinding>): RestartAgent =>
  Object.fromEntries(
    keys.flatMap((key) => {
      const name = bound(bindings, key)
      return name === undefined ? [] : [[key, name]]
    })
  )

/**
 * The bindings of a run that is started again: what its start named and what `options` name, and for the rest the defaults as they are.
 * `before` is the run with the defaults that it began with.
 */
export const restartBindings = (
  config: Config,
  agent_id: AgentId,
  agent: Agent,
  before: { readonly bindings: RunBindings; readonly defaults: Agent["defaults"] },
  options: RestartAgent,
  rebound = NOTHING_REBOUND
): Result.Result<RunBindings, BindingProblem> => {
  const { bindings, defaults } = before
  const kept = explicitOf(bindings, defaults).filter((key) => !rebound.has(key))
  return bindingsOf(config, agent_id, agent, { ...namesOf(bindings, kept), ...options })
}

/** The bindings of a start with the same resources as an earlier run. A core model that no start named is the defaults'. */
export const bindingsAsBefore = (
  config: Config,
  agent_id: AgentId,
  agent: Agent,
  before: RunBindings,
  rebound = NOTHING_REBOUND
): Result.Result<RunBindings, BindingProblem> => {
  const explicit = explicitOf(before, agent.defaults).filter((key) => !rebound.has(key))
  const carried = NAMED_BINDINGS.filter((key) => !rebound.has(key) && (key !== "core_llm" || explicit.includes(key)))
  return bindingsOf(config, agent_id, agent, { ...namesOf(before, carried), explicit })
}

/** The options by which a restart binds one more DM: a list that the start named has to be named again, and the defaults name it by now. */
export const withDm = (bindings: RunBindings, dm: ResourceName): RestartAgent =>
  bindings.explicit?.includes("dm") === true ? { dm: [...new Set([...boundDms(bindings), dm])] } : {}

const text = (value: string | ReadonlyArray<string>) => [value].flat().join(", ")

/** The bindings that a run keeps from its start although its agent's defaults differ. */
export const keptOf = (bindings: RunBindings, { defaults }: Agent): RestartedAgent["keeps"] =>
  (bindings.explicit ?? []).flatMap((binding) => {
    const name = bound(bindings, binding)
    const usual = usualOf(defaults, binding)
    if (name === undefined || isSame(name, usual)) return []
    return [{ binding, name: text(name), default: usual === undefined ? null : text(usual) }]
  })

/** The flags of `agent start` and `agent restart` that say the same as these options. */
export const flagsOf = (options: RestartAgent): string =>
  NAMED_BINDINGS.flatMap((key) =>
    [options[key] ?? []].flat().map((name) => ` --${key.replaceAll("_", "-")} ${name}`)
  ).join("")
