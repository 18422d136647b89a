import type { AgentId, ResourceName } from "#schema/Ids.ts"

/** The person who typed a command, and the identity by which a repetition is the same request. */
export interface Speaker {
  readonly agent_id: AgentId
  readonly gateway: ResourceName
  /** The chat: of a group, the group's DM. */
  readonly dm: ResourceName
  /** The person's own DM, whose rights count. The same as `dm` in a private chat. */
  readonly writer: ResourceName
  readonly request_id: string
  /** Whether this person is an admin here: of a group, the one who wrote and not the group. */
  readonly admin: boolean
  /** This person's time zone, where it is not the home's. */
  readonly zone?: string | undefined
}

/** Characters of a stranger's identity, which can be any text, in an audit row. */
export const USER_ID_CHARS_MAX = 40
