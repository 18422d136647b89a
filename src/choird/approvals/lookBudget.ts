/** How often choird looks at what an agent proposes: each look starts programs of git, and a proposal that is refused leaves no trace. */
import type { AgentId } from "#schema/Ids.ts"
import { take, type TokenBucket } from "#src/choird/listeners/TokenBucket.ts"

/** Proposals of one agent that choird looks at in a row, which starts programs of git; beyond it, one each PROPOSAL_LOOK_MS. */
export const PROPOSAL_LOOKS_BURST = 10
export const PROPOSAL_LOOK_MS = 10_000

const RATE = { perSecond: 1000 / PROPOSAL_LOOK_MS, burst: PROPOSAL_LOOKS_BURST }

/** Counts a look of an agent; the time in ms to wait when it is one too many, else 0. An entry an agent, for the life of choird. */
export const makeLookBudget = () => {
  const buckets = new Map<AgentId, TokenBucket>()
  return (agent_id: AgentId, now_ms: number): number => {
    const bucket = buckets.get(agent_id) ?? { tokens: RATE.burst, at_ms: now_ms }
    const [next, wait_ms] = take(bucket, RATE, now_ms)
    buckets.set(agent_id, next)
    return wait_ms
  }
}
