/** The names of an installation's things in an engine, so that those of several homes do not get into each other's way. */
import { createHash } from "node:crypto"
import type { AgentId, SessionId } from "#schema/Ids.ts"

export interface Installation {
  /** Of the home's real path; the value of the label that everything of it carries. */
  readonly id: string
  /** Its network, and the bridge of the host below it: the kernel allows 15 characters. */
  readonly network: string
}

export const installationOf = (home: string): Installation => {
  const id = createHash("sha256").update(home).digest("hex").slice(0, 16)
  return { id, network: `choir-${id.slice(0, 8)}` }
}

/** An engine gives a name once, which is a second lock on there being one instance of an agent (invariant 11). */
export const containerName = ({ id }: Installation, agent_id: AgentId): string => `choir-${agent_id}.${id.slice(0, 8)}`

/** A trial runs beside its agent's container, and several at once. */
export const trialName = ({ id }: Installation, session_id: SessionId): string =>
  `choir-trial-${session_id}.${id.slice(0, 8)}`
