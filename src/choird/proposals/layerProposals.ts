/** The types of proposals, each with the service that previews and executes it. */
import { Effect, Layer } from "effect"
import { makeKeyedLock } from "#src/choird/config/keyedLock.ts"
import { AgentChange } from "./AgentChange.ts"
import { ConfigChange } from "./ConfigChange.ts"
import { MUCH_TO_READ, PROPOSAL_SHOWN_CHARS_MAX } from "./Difference.ts"
import type { Execution } from "#src/choird/approvals/Execution.ts"
import type { Proposal } from "#src/choird/approvals/Proposal.ts"
import { largeProposal, type ProposalType } from "#src/choird/approvals/ProposalType.ts"
import { RepoChange } from "./RepoChange.ts"
import { Proposals } from "#src/choird/approvals/Proposals.ts"

export const layerProposals = Layer.effect(
  Proposals,
  Effect.gen(function* () {
    const agent = yield* AgentChange
    const config = yield* ConfigChange
    const repo = yield* RepoChange
    const locked = yield* makeKeyedLock

    const previewOf: ProposalType<Proposal>["preview"] = (proposer, proposal) => {
      switch (proposal.kind) {
        case "config_change":
          return config.preview(proposer, proposal)
        case "repo_change":
          return repo.preview(proposer, proposal)
        default:
          return agent.preview(proposer, proposal)
      }
    }

    return Proposals.of({
      preview: Effect.fn("Proposals.preview")(function* (proposer, proposal) {
        // An agent that proposes a lot keeps only one git busy.
        const preview = yield* locked(proposer.agent_id)(previewOf(proposer, proposal))
        return preview.shown.length > PROPOSAL_SHOWN_CHARS_MAX ? yield* largeProposal(MUCH_TO_READ) : preview
      }),
      execute: ({ proposal, ...rest }: Execution, standing) => {
        switch (proposal.kind) {
          case "config_change":
            return config.execute({ ...rest, proposal }, standing)
          case "repo_change":
            return repo.execute({ ...rest, proposal }, standing)
          default:
            return agent.execute({ ...rest, proposal }, standing)
        }
      }
    })
  })
)
