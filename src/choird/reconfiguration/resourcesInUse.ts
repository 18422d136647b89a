/** The resources of config.json that running agents use, as `section.name`. */
import type { Config } from "#schema/Config.ts"
import { dmList, type DmNames, type ResourceBindings } from "#schema/ResourceBindings.ts"
import { BINDINGS, BOUND_SECTIONS, NAMED_BINDINGS } from "#schema/Resources.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

/** A difference between two JSON values, by path. */
export interface Difference {
  readonly path: ReadonlyArray<string>
  readonly change: "added" | "changed" | "removed"
}

type Json = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

const text = (value: unknown) => (value === undefined ? undefined : canonicalJson(value))

/** A value on one side only is one difference, however large; lists are compared as a whole. */
export const differences = (
  before: unknown,
  after: unknown,
  path: ReadonlyArray<string> = []
): ReadonlyArray<Difference> => {
  if (!isRecord(before) || !isRecord(after)) return text(before) === text(after) ? [] : [{ path, change: "changed" }]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((key) => {
    const at = [...path, key]
    if (!Object.hasOwn(after, key)) return [{ path: at, change: "removed" as const }]
    if (!Object.hasOwn(before, key)) return [{ path: at, change: "added" as const }]
    return differences(before[key], after[key], at)
  })
}

/** An agent that runs or is about to: what it is bound to now, and the configuration that its run began with. */
export interface AgentUse {
  readonly agent_id: AgentId
  readonly bindings: ResourceBindings
  readonly started_with: Config
}

export const isUp = ({ status }: AgentView): boolean => status !== "stopped" && status !== "crashed"

/** The use that each running agent makes of resources. */
export const usesOf = (running: Config, views: ReadonlyArray<AgentView>): ReadonlyArray<AgentUse> =>
  views.flatMap((view) =>
    isUp(view) && view.bindings !== null
      ? [{ agent_id: view.agent_id, bindings: view.bindings, started_with: view.started_with ?? running }]
      : []
  )

/** The sections whose entries a binding can name, directly or by way of another entry. */
export const SECTIONS = [...BOUND_SECTIONS, "tts", "gateways"] as const satisfies ReadonlyArray<keyof Config>
type Section = (typeof SECTIONS)[number]

const entryOf = <S extends Section>(config: Config, section: S, name: string) => {
  const table = config[section] as Readonly<Record<string, Config[S][keyof Config[S]]>>
  return Object.hasOwn(table, name) ? table[name] : undefined
}

/** The resources that an entry names in turn. */
const onwards = (config: Config, section: Section, name: string): ReadonlyArray<readonly [Section, string]> => {
  switch (section) {
    case "models":
      return (entryOf(config, "models", name)?.fallback ?? []).map((other) => ["models", other] as const)
    case "voice_profiles":
      return [entryOf(config, "voice_profiles", name)?.tts].flatMap((tts) =>
        tts === undefined ? [] : [["tts", tts] as const]
      )
    case "dms":
      return [entryOf(config, "dms", name)?.gateway].flatMap((gateway) =>
        gateway === undefined ? [] : [["gateways", gateway] as const]
      )
    default:
      return []
  }
}

/** The names of a session's bindings, or of an agent's defaults. */
type Names = Partial<Omit<ResourceBindings, "dm">> & { readonly dm?: DmNames }

/** Everything that these names lead to in a configuration, itself included. */
export const resourcesOf = (config: Config, names: Names): ReadonlySet<string> => {
  const waiting: Array<readonly [Section, string]> = NAMED_BINDINGS.flatMap((key) => {
    const bound = key === "dm" ? (names.dms ?? dmList(names.dm)) : [names[key] ?? []].flat()
    return bound.map((name) => [BINDINGS[key].section, name] as const)
  })
  const found = new Set<string>()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [section, name] = next
    const key = `${section}.${name}`
    if (found.has(key)) continue
    found.add(key)
    waiting.push(...onwards(config, section, name))
  }
  return found
}
