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
