/** The names of the configuration that a session holds. They have a file of their own, so that code that only reads states need not load all of Config. */
import { Schema } from "effect"
import { ResourceName } from "./Ids.ts"
import { NAMED_BINDINGS } from "./Resources.ts"

/** As many chats as one agent talks in at once. */
export const DMS_PER_AGENT_MAX = 16

/** The DMs of an agent, as a person writes them: one name or a list. The first gets the messages that answer nobody. */
export const DmNames = Schema.Union([
  ResourceName,
  Schema.Array(ResourceName).check(
    Schema.isMinLength(1, { message: "must name at least one DM" }),
    Schema.isMaxLength(DMS_PER_AGENT_MAX, { message: `must name at most ${DMS_PER_AGENT_MAX} DMs` }),
    Schema.isUnique({ message: "must name each DM once" })
  )
])
export type DmNames = typeof DmNames.Type

/** The DMs as a list, in the order written; empty where nothing is written. */
export const dmList = (names: DmNames | undefined): ReadonlyArray<ResourceName> =>
  typeof names === "string" ? [names] : (names ?? [])

/**
 * The bindings of an agent's session, names of config.json. `dms` has all its DMs and `dm` is the first of them; sessions
 * that were stored before there could be several have `dm` alone.
 */
export const ResourceBindings = Schema.Struct({
  workspace: ResourceName,
  llm: ResourceName,
  core_llm: ResourceName,
  dm: ResourceName,
  dms: Schema.optionalKey(Schema.Array(ResourceName)),
  voice_profile: Schema.optionalKey(ResourceName),
  git_identity: Schema.optionalKey(ResourceName),
  notion: Schema.optionalKey(ResourceName),
  email: Schema.optionalKey(ResourceName),
  search: Schema.optionalKey(ResourceName)
})
export type ResourceBindings = typeof ResourceBindings.Type

/** Every DM of a session, the first one first. */
export const boundDms = ({ dm, dms }: Pick<ResourceBindings, "dm" | "dms">): ReadonlyArray<ResourceName> => dms ?? [dm]

/** The bindings of a run, with those that its start named and that a restart therefore keeps. Absent in rows of earlier versions. */
export const RunBindings = Schema.Struct({
  ...ResourceBindings.fields,
  explicit: Schema.optionalKey(Schema.Array(Schema.Literals(NAMED_BINDINGS)))
})
export type RunBindings = typeof RunBindings.Type
