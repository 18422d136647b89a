/** The host uids that sandboxes run under when choird is root: one for each agent, so that no agent is another's user. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { AgentId } from "#schema/Ids.ts"

/** Host uids that sandboxes run under when choird is root; a range that distributions and systemd leave unused. */
export const SANDBOX_UID_FIRST = 1_900_000_000
export const SANDBOX_UID_COUNT = 65_536

/** An agent that runs, and its uid. */
interface UidLease {
  readonly agent_id: AgentId
  readonly uid: number
}

/** The uid of an agent: the same at each start, unless another running agent has it, then the next free one. */
export const uidOf = (agent_id: AgentId, running: ReadonlyArray<UidLease>): number => {
  const wanted = createHash("sha256").update(agent_id).digest().readUInt32BE(0)
  for (let step = 0; step < SANDBOX_UID_COUNT; step++) {
    const uid = SANDBOX_UID_FIRST + ((wanted + step) % SANDBOX_UID_COUNT)
    if (running.every((lease) => lease.uid !== uid || lease.agent_id === agent_id)) return uid
  }
  return SANDBOX_UID_FIRST + (wanted % SANDBOX_UID_COUNT)
}

/** Hands uids out for as long as a scope lives. */
export const makeUids = () => {
  const running = new Set<UidLease>()
  return (agent_id: AgentId) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const lease = { agent_id, uid: uidOf(agent_id, [...running]) }
        running.add(lease)
        return lease
      }),
      (lease) => Effect.sync(() => running.delete(lease))
    ).pipe(Effect.map(({ uid }) => uid))
}
