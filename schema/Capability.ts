/** The effects that a tool can have and a skill has to declare. An agent is granted them by name (`skills.grants` in config.json). */
import { Schema } from "effect"

/**
 * `fs:read` and `fs:write` are the workspace, `net` is the network, `env:read` are secrets, `exec` runs programs, `agent:spawn` starts and
 * steers jobs, and `human` asks a person.
 */
export const CAPABILITIES = ["fs:read", "fs:write", "net", "env:read", "exec", "agent:spawn", "human"] as const

export const Capability = Schema.Literals(CAPABILITIES)
export type Capability = typeof Capability.Type

/** The effects of a skill or a tool, each once. */
export const Capabilities = Schema.Array(Capability).check(Schema.isMaxLength(CAPABILITIES.length), Schema.isUnique())

/** The grants of an agent that config.json does not name: a skill may use the workspace and ask a person. */
export const GRANTS_DEFAULT: ReadonlyArray<Capability> = ["fs:read", "fs:write", "human"]
