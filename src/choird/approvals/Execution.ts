/** The execution of an approved proposal by its row: what was proposed and seen, and which step is next. Pure. */
import { Result, Schema } from "effect"
import { CommitId } from "#schema/Image.ts"
import { RunBindings } from "#schema/ResourceBindings.ts"
import type { ProofOfApproval } from "./ProofOfApproval.ts"
import { type ExecutionFailed, unreadable } from "./ExecutionFailed.ts"
import type { Proposal } from "./Proposal.ts"
import { readStored } from "./requestTypes.ts"

/** Attempts at a step while the configuration is busy or the remote unreachable, and the pause between them. */
export const PROPOSAL_TRIES_MAX = 5
export const PROPOSAL_RETRY_MS = 1000

/** A path of config.json and its value at the time of the proposal; without `value` there was none. */
export const Before = Schema.Struct({
  path: Schema.Array(Schema.String),
  value: Schema.optionalKey(Schema.Json)
})
export type Before = typeof Before.Type

/** The state whose change the person saw. The execution fails as `CHANGED` if it is different by then (R54). */
export const Facts = Schema.Struct({
  repo: Schema.optionalKey(Schema.Struct({ url: Schema.String, ref: Schema.String, base: CommitId })),
  /** A tool that a person has to finish: it is committed and not built. */
  is_draft: Schema.optionalKey(Schema.Boolean),
  before: Schema.optionalKey(Schema.Array(Before))
})
export type Facts = typeof Facts.Type

/** `commit` and `push` belong to the repository, `write` and `apply` to config.json. */
export const Step = Schema.Literals(["commit", "push", "build", "write", "apply", "update"])
export type Step = typeof Step.Type

/** The results of earlier steps, so that a later choird takes the next step as this one would have. */
export const Job = Schema.Struct({
  commit: Schema.optionalKey(CommitId),
  identity: Schema.optionalKey(Schema.Struct({ name: Schema.String, email: Schema.String })),
  image_version: Schema.optionalKey(Schema.String),
  /** The agent's bindings when it was about to be restarted; absent before, and for an agent that does not run. */
  bindings: Schema.optionalKey(RunBindings)
})
export type Job = typeof Job.Type

/** The step that is taken next, with the results of those before it. */
export interface Standing {
  readonly step: Step
  readonly job: Job
}

/** A decoded proposal with its proof. */
export interface Execution<P extends Proposal = Proposal> {
  readonly approved: ProofOfApproval
  readonly proposal: P
  readonly facts: Facts
}

/** The outcome of a step: the next one, or the end of the execution. */
export type Next =
  | { readonly type: "next"; readonly standing: Standing }
  | { readonly type: "done"; readonly outcome: string }

export const next = (step: Step, job: Job): Next => ({ type: "next", standing: { step, job } })
export const done = (outcome: string): Next => ({ type: "done", outcome })

const decodeFacts = Schema.decodeUnknownResult(Facts)
const decodeStanding = Schema.decodeUnknownResult(Schema.Struct({ step: Step, job: Job }))

/** It was understood when it was stored, perhaps by another version. */
export const executionOf = (approved: ProofOfApproval): Result.Result<Execution, ExecutionFailed> => {
  const { canonical, facts, request_type } = approved.row
  const asked = readStored(request_type, canonical)
  if (Result.isFailure(asked)) return Result.fail(unreadable(asked.failure.reason))
  if (asked.success.type !== "proposal") return Result.fail(unreadable("it is not a proposal"))
  const { proposal } = asked.success
  return Result.mapBoth(decodeFacts(facts), {
    onSuccess: (facts) => ({ approved, proposal, facts }),
    onFailure: ({ message }) => unreadable(message)
  })
}

/** The step at which an execution stands, or begins. */
export const standingOf = ({ approved: { row }, proposal }: Execution): Result.Result<Standing, ExecutionFailed> =>
  row.status === "executing"
    ? Result.mapError(decodeStanding({ step: row.step, job: row.job }), ({ message }) => unreadable(message))
    : Result.succeed({ step: proposal.kind === "config_change" ? "write" : "commit", job: {} })
