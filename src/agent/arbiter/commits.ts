/**
 * The two ways to commit what nobody waits for. A lane works out its next step from the state, so that one that passes over a refusal would
 * propose the same again without end.
 */
import { Effect } from "effect"
import type { SessionState } from "#src/shared/session/State.ts"
import type { Arbiter, Refused } from "./Arbiter.ts"
import type { Proposal } from "./Proposal.ts"

type Committer = Pick<Arbiter["Service"], "commit" | "state">

const broken = ({ type }: Proposal, { reason }: Refused) => Effect.die(new Error(`${type} was refused: ${reason}`))

/** Commits what may have been settled meanwhile. A refusal is fine, unless no event can hold the proposal. */
export const commitIfDue = (arbiter: Committer, proposal: Proposal): Effect.Effect<void> =>
  arbiter.commit(proposal).pipe(
    Effect.asVoid,
    Effect.catch((refused) => (refused.unfit === true ? broken(proposal, refused) : Effect.void))
  )

/**
 * Commits what has to end. Content that no event can hold gives way to `smaller`. A refusal is fine where somebody else ended it; where
 * `isOpen` still holds after it, it is a defect.
 */
export const commitEnd = (
  arbiter: Committer,
  proposal: Proposal,
  isOpen: (state: SessionState) => boolean,
  smaller?: (reason: string) => Proposal
): Effect.Effect<void> =>
  arbiter.commit(proposal).pipe(
    Effect.asVoid,
    Effect.catch((refused) => {
      if (refused.unfit === true && smaller !== undefined) return commitEnd(arbiter, smaller(refused.reason), isOpen)
      return isOpen(arbiter.state()) ? broken(proposal, refused) : Effect.void
    })
  )
