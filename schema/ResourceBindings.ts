/** What a session holds of the configuration. It stands by itself, so that who only reads states needs not load all of Config. */
import { Schema } from "effect"
import { ResourceName } from "./Ids.ts"

/** What an agent's session is bound to (spec 6.4); names of config.json. */
export const ResourceBindings = Schema.Struct({
  workspace: ResourceName,
  llm: ResourceName,
  core_llm: ResourceName,
  dm: ResourceName,
  voice_profile: Schema.optionalKey(ResourceName),
  git_identity: Schema.optionalKey(ResourceName),
  notion: Schema.optionalKey(ResourceName),
  email: Schema.optionalKey(ResourceName)
})
export type ResourceBindings = typeof ResourceBindings.Type

/** The bindings that a start may name; core jobs' model follows from the rest. */
export const NAMED_BINDINGS = ["workspace", "llm", "dm", "voice_profile", "git_identity", "notion", "email"] as const
export type NamedBinding = (typeof NAMED_BINDINGS)[number]

/** The bindings of a run, with those that its start named and that a restart therefore keeps. Absent in rows of earlier versions. */
export const RunBindings = Schema.Struct({
  ...ResourceBindings.fields,
  explicit: Schema.optionalKey(Schema.Array(Schema.Literals(NAMED_BINDINGS)))
})
export type RunBindings = typeof RunBindings.Type
