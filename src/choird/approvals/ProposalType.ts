/** The contract of a type of proposal: a preview before a person is asked, and an execution in steps once a person approved. */
import { Effect } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import { type ApprovalRefused, refused } from "./ApprovalRefused.ts"
import type { Execution, Facts, Next, Standing } from "./Execution.ts"
import type { ExecutionFailed } from "./ExecutionFailed.ts"
import type { Proposal } from "./Proposal.ts"

/** The session that proposes. */
export interface Proposer {
  readonly agent_id: AgentId
  readonly session_id: SessionId
}

export interface Preview {
  readonly facts: Facts
  /** The complete text that the person reads. */
  readonly shown: string
}

export interface ProposalType<P extends Proposal> {
  /**
   * Finds out what the proposal would change, and changes nothing. Refused with BAD_REQUEST if it cannot be executed, TOO_LARGE if it is more
   * than a person reads, CHANGED if its branch moved, REPOSITORY if the agent's repository cannot be read.
   */
  preview(proposer: Proposer, proposal: P): Effect.Effect<Preview, ApprovalRefused>
  /** Takes one step, which may have been taken before choird died. */
  execute(execution: Execution<P>, standing: Standing): Effect.Effect<Next, ExecutionFailed>
}

const HINT = "change the proposal, or drop it"

export const badProposal = (reason: string) => refused("BAD_REQUEST", reason.slice(0, API_PROBLEM_CHARS_MAX), HINT)

export const largeProposal = (reason: string) => refused("TOO_LARGE", reason, "propose it in smaller parts")

/** The agent's repository cannot be read or pushed to. */
export const badRepository = (reason: string) => refused("REPOSITORY", reason.slice(0, API_PROBLEM_CHARS_MAX), HINT)

interface Unreadable {
  readonly message: string
  readonly _tag?: string
  readonly command?: string
  readonly hint?: string
  readonly url?: string
}

/** The failure in choird's words: those of git may be a server's, and an agent reads them as choird's. */
const ownWords = ({ _tag, command, hint, message, url }: Unreadable): string => {
  if (_tag === "FetchFailed") return `${url} cannot be fetched. ${hint}`
  return _tag === "GitFailed" ? `git ${command} failed` : message
}

export const unreachable = (error: Unreadable) => badRepository(`the repository cannot be read: ${ownWords(error)}`)
