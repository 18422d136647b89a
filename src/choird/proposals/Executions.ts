/**
 * Carries out what people approved, as durable jobs (D17): each step is stored before it is taken and may be taken again, so that a death of
 * choird at any point leads to the same end, once (R53). Whatever fails ends the job with a reason; the agent goes on as it was.
 */
import {
  Cause,
  Context,
  Effect,
  FiberSet,
  FileSystem,
  Layer,
  Option,
  Queue,
  Result,
  Schema,
  type Scope,
  Stream
} from "effect"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import type { AgentId } from "#schema/Ids.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Approved } from "#src/choird/approvals/Approved.ts"
import type { Ending } from "#src/choird/approvals/proposalNotes.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/gateway/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Signals } from "#src/choird/sessions/Signals.ts"
import { approvalSeen } from "#src/choird/telemetry/metrics.ts"
import { PROPOSAL_LOOK_MS_MAX, PROPOSAL_RETRY_MS, PROPOSALS_EXECUTED_MAX } from "#src/shared/limits.ts"
import { AgentSteps, type Rebound } from "./AgentSteps.ts"
import { isBinding, pathOf } from "./configEdits.ts"
import { ConfigSteps } from "./ConfigSteps.ts"
import type { ExecutionFailed } from "./ExecutionFailed.ts"
import {
  advance,
  begin,
  finish,
  type Job,
  nextExecutions,
  type Standing,
  standingOf,
  type Step
} from "./executionRows.ts"
import { type Proposal, readProposal } from "./Proposal.ts"
import { Facts } from "./ProposalFacts.ts"
import { RepoSteps } from "./RepoSteps.ts"

/** Carries out approved proposals. */
export class Executions extends Context.Service<
  Executions,
  {
    /** Carries out what is approved, for as long as the scope lives, beginning with what an earlier life of choird did not finish. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/Executions") {
  static readonly layer = Layer.effect(
    Executions,
    Effect.suspend(() => make())
  )
}

/** A proposal with its proof, as its row has it. */
interface Execution {
  readonly approved: Approved
  readonly proposal: Proposal
  readonly facts: Facts
}

/** What a step leads to: the next one, or the end. */
type Next = { readonly type: "next"; readonly standing: Standing } | { readonly type: "done"; readonly outcome: string }

const next = (step: Step, job: Job): Next => ({ type: "next", standing: { step, job } })
const done = (outcome: string): Next => ({ type: "done", outcome })

const decodeFacts = Schema.decodeUnknownSync(Facts)

/** It was understood when it was stored. */
const executionOf = (approved: Approved): Execution => {
  const { canonical, facts, request_type } = approved.row
  const read = readProposal(request_type as ProposalKind, JSON.parse(canonical) as Schema.Json)
  const proposal = Result.getOrThrowWith(read, (reason) => new Error(`a stored proposal cannot be read: ${reason}`))
  return { approved, proposal, facts: decodeFacts(facts) }
}

const firstStep = ({ proposal }: Execution): Standing => ({
  step: proposal.kind === "config_change" ? "write" : "commit",
  job: {}
})

const short = (id: string | undefined) => (id ?? "").slice(0, 12)

const services = Effect.gen(function* () {
  return {
    agents: yield* AgentSteps,
    approvals: yield* Approvals,
    audit: yield* Audit,
    config: yield* ConfigStore,
    configs: yield* ConfigSteps,
    outbox: yield* Outbox,
    repos: yield* RepoSteps,
    signals: yield* Signals,
    sql: yield* SqlClient.SqlClient
  }
})
type Services = Effect.Success<typeof services>

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
      const image_version = yield* services.agents.build(approved)
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
  const version = yield* services.configs.apply(approved, proposal.edits)
  const what = `config.json was changed and is applied as version ${version}`
  return reboundBy(execution).size === 0 ? done(what) : yield* toUpdate(services, approved, job, what)
})

const takeStep = Effect.fnUntraced(function* (services: Services, execution: Execution, standing: Standing) {
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

const make = Effect.fnUntraced(function* () {
  const all = yield* services
  const { approvals, audit, config, outbox, signals, sql } = all
  const fs = yield* FileSystem.FileSystem

  const record = ({ row }: Approved, action: string, detail: Readonly<Record<string, Schema.Json>>) =>
    audit.record({
      who: "choird",
      action: `proposal.${action}`,
      session_id: row.session_id,
      agent_id: row.agent_id,
      detail: { approval_id: row.approval_id, request_type: row.request_type, ...detail }
    })

  const end = Effect.fnUntraced(function* ({ approved }: Execution, ending: Ending) {
    const { row } = approved
    const dm = yield* finish(sql, (yield* config.current).config, approved, ending)
    yield* signals.wake(row.session_id)
    if (dm !== undefined) yield* outbox.wake(dm)
    yield* record(approved, ending.status, ending.status === "failed" ? { refused: ending.kind } : {})
    yield* approvalSeen(row, ending.status, "choird")
    yield* fs
      .remove(join(config.home, "repos", "work", `approval-${row.approval_id}`), { recursive: true, force: true })
      .pipe(Effect.ignore)
  })

  /** From where it stands to its end. */
  const execute = Effect.fnUntraced(function* (approved: Approved) {
    const execution = executionOf(approved)
    let standing = approved.row.status === "executing" ? standingOf(approved) : firstStep(execution)
    if (approved.row.status !== "executing") yield* begin(sql, approved, standing)
    while (true) {
      const taken = yield* Effect.result(takeStep(all, execution, standing))
      if (Result.isFailure(taken)) {
        const { kind, reason } = taken.failure
        return yield* end(execution, { status: "failed", kind, reason })
      }
      yield* record(approved, standing.step, {})
      if (taken.success.type === "done")
        return yield* end(execution, { status: "done", outcome: taken.success.outcome })
      standing = taken.success.standing
      yield* advance(sql, approved, standing)
    }
  })

  const run = Effect.gen(function* () {
    const fibers = yield* FiberSet.make<void>()
    const busy = new Set<AgentId>()
    const again = yield* Queue.sliding<void>(1)
    const one = (approved: Approved) =>
      execute(approved).pipe(
        Effect.catchCauseIf(
          (cause) => !Cause.hasInterruptsOnly(cause),
          (cause) =>
            Effect.andThen(
              Effect.logError(`approval ${approved.row.approval_id} is carried out later`, cause),
              Effect.sleep(PROPOSAL_RETRY_MS)
            )
        ),
        Effect.ensuring(
          Effect.suspend(() => {
            busy.delete(approved.row.agent_id)
            return Queue.offer(again, undefined)
          })
        )
      )
    const look = Effect.gen(function* () {
      for (const approved of yield* nextExecutions(sql)) {
        const { agent_id } = approved.row
        if (busy.has(agent_id) || busy.size >= PROPOSALS_EXECUTED_MAX) continue
        busy.add(agent_id)
        yield* FiberSet.run(fibers, one(approved))
      }
      yield* Effect.timeoutOption(Queue.take(again), PROPOSAL_LOOK_MS_MAX)
    })
    // What a death left half made is of no use to anybody.
    yield* Effect.ignore(fs.remove(join(config.home, "repos", "work"), { recursive: true, force: true }))
    yield* Effect.forkScoped(Stream.runForEach(approvals.approved, () => Queue.offer(again, undefined)))
    yield* look.pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(
          Effect.logWarning("approved proposals were not looked at", cause),
          Effect.sleep(PROPOSAL_RETRY_MS)
        )
      ),
      Effect.forever,
      Effect.forkScoped
    )
  })
  return Executions.of({ run })
})
