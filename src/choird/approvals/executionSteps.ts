/** One step of an execution after the other: what each does, and which one follows. */
import { Effect, Option, Result, Schema } from "effect"
import { readStored } from "./requestTypes.ts"
import type { AgentSteps, Rebound } from "./AgentSteps.ts"
import { isBinding, pathOf } from "./configEdits.ts"
import type { ConfigSteps } from "./ConfigSteps.ts"
import { type ExecutionFailed, unreadable } from "./ExecutionFailed.ts"
import type { Job, Standing, Step } from "./executionRows.ts"
import { type Proposal, readProposal } from "./Proposal.ts"
import { Facts } from "./ProposalFacts.ts"
import type { RepoSteps } from "./RepoSteps.ts"
import type { SqlClient } from "effect/sql"
import { rowId } from "#src/shared/rowId.ts"
import type { ApprovalRow } from "./approvalRows.ts"
import { mayFollow } from "./approvalStatus.ts"

/** Proof that a person said yes. Whatever executes a decision takes one, and only a row in `approved` makes one (R55). */
export class Approved {
  /** A private field, so that no other object has this type. */
  readonly #row: ApprovalRow

  private constructor(row: ApprovalRow) {
    this.#row = row
  }

  /** Undefined for a row that nobody approved, or that was executed before. */
  static of(row: ApprovalRow): Approved | undefined {
    return mayFollow(row.status, "executing") ? new Approved(row) : undefined
  }

  /** Whose execution was begun by a row that was approved, and cut short. Undefined for any other. */
  static begun(row: ApprovalRow): Approved | undefined {
    return row.status === "executing" ? new Approved(row) : undefined
  }

  get row(): ApprovalRow {
    return this.#row
  }
}

/** Begins the one execution of what was approved; fails as a defect where it was begun before. */
export const beginExecution = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { row }: Approved) {
  const begun = yield* sql`UPDATE choir_control.pending_approvals SET status = 'executing'
    WHERE id = ${rowId(row.approval_id) ?? 0n} AND status = 'approved' RETURNING id`
  if (begun.length === 0) return yield* Effect.die(new Error(`the approval ${row.approval_id} was executed twice`))
})

/** What carries the steps out. */
export interface Services {
  readonly agents: AgentSteps["Service"]
  readonly configs: ConfigSteps["Service"]
  readonly repos: RepoSteps["Service"]
}

/** A proposal with its proof, as its row has it. */
export interface Execution {
  readonly approved: Approved
  readonly proposal: Proposal
  readonly facts: Facts
}

/** What a step leads to: the next one, or the end. */
export type Next =
  | { readonly type: "next"; readonly standing: Standing }
  | { readonly type: "done"; readonly outcome: string }

const next = (step: Step, job: Job): Next => ({ type: "next", standing: { step, job } })
const done = (outcome: string): Next => ({ type: "done", outcome })

const decodeFacts = Schema.decodeUnknownResult(Facts)

/** It was understood when it was stored, perhaps by another version. */
export const executionOf = (approved: Approved): Result.Result<Execution, ExecutionFailed> => {
  const { canonical, facts, request_type } = approved.row
  const asked = readStored(request_type, canonical)
  if (Result.isFailure(asked)) return Result.fail(unreadable(asked.failure.reason))
  const proposal =
    asked.success.type === "proposal"
      ? readProposal(asked.success.kind, asked.success.payload)
      : Result.fail("it is no proposal")
  if (Result.isFailure(proposal)) return Result.fail(unreadable(proposal.failure))
  return Result.mapBoth(decodeFacts(facts), {
    onSuccess: (found) => ({ approved, proposal: proposal.success, facts: found }),
    onFailure: ({ message }) => unreadable(message)
  })
}

export const firstStep = ({ proposal }: Execution): Standing => ({
  step: proposal.kind === "config_change" ? "write" : "commit",
  job: {}
})

const short = (id: string | undefined) => (id ?? "").slice(0, 12)

/** The next start is what takes it over; one that runs is started anew. */
const toUpdate = Effect.fnUntraced(function* ({ agents }: Services, { row }: Approved, job: Job, what: string) {
  const bindings = yield* agents.running(row.agent_id)
  return Option.match(bindings, {
    onNone: () => done(`${what}; the agent takes it over with its next start`),
    onSome: (bindings) => next("update", { ...job, bindings })
  })
})

/** In the repository, and in an image where there is one. */
const inRepo = ({ commit, image_version }: Job) =>
  `it is in the repository as commit ${short(commit)}${image_version === undefined ? "" : `, image ${image_version} was built`}`

const reboundBy = ({ proposal }: Execution): Rebound =>
  new Set(
    proposal.kind === "config_change" ? proposal.edits.filter(isBinding).map((edit) => pathOf(edit).at(-1) ?? "") : []
  )

/** Takes one step of a repository's proposal. */
const repoStep = Effect.fnUntraced(function* (
  services: Services,
  { approved, facts, proposal }: Execution,
  { job, step }: Standing
): Effect.fn.Return<Next, ExecutionFailed> {
  if (proposal.kind === "config_change") return yield* Effect.die(new Error("it has no repository"))
  const proposed = { proposal, facts }
  switch (step) {
    case "commit":
      return next("push", { ...job, ...(yield* services.repos.commit(approved, proposed)) })
    case "push":
      yield* services.repos.push(approved, proposed, job)
      return facts.is_draft === true
        ? done(`${inRepo(job)}, as a draft without a program, which a person writes`)
        : next("build", job)
    default: {
      const image_version = yield* services.agents.build(approved, job)
      const built = { ...job, image_version }
      return yield* toUpdate(services, approved, built, inRepo(built))
    }
  }
})

/** Takes one step of a proposal for config.json. */
const configStep = Effect.fnUntraced(function* (
  services: Services,
  execution: Execution,
  { job, step }: Standing
): Effect.fn.Return<Next, ExecutionFailed> {
  const { approved, facts, proposal } = execution
  if (proposal.kind !== "config_change") return yield* Effect.die(new Error("it is not of config.json"))
  if (step === "write") {
    yield* services.configs.write(approved, proposal.edits, facts.before ?? [])
    return next("apply", job)
  }
  const version = yield* services.configs.apply(approved, proposal.edits, facts.before ?? [])
  const what = `config.json was changed and is applied as version ${version}`
  return reboundBy(execution).size === 0 ? done(what) : yield* toUpdate(services, approved, job, what)
})

/** Takes a step, which may have been taken before a death of choird. */
export const takeStep = Effect.fnUntraced(function* (services: Services, execution: Execution, standing: Standing) {
  const { approved, proposal } = execution
  const { job, step } = standing
  if (step === "update") {
    yield* services.agents.update(approved, job, reboundBy(execution))
    const what = proposal.kind === "config_change" ? "config.json was changed and is applied" : inRepo(job)
    return done(`${what}, and the agent runs with it`)
  }
  return yield* proposal.kind === "config_change"
    ? configStep(services, execution, standing)
    : repoStep(services, execution, standing)
})
