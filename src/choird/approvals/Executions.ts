/**
 * Carries out what people approved, as durable jobs (D17): each step is stored before it is taken and may be taken again, so that a death of
 * choird at any point leads to the same end, once (R53). Whatever fails ends the job with a reason; the agent goes on as it was.
 */
import { Cause, Context, Effect, FiberSet, FileSystem, Layer, Queue, Result, Schema, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { join } from "node:path"
import type { AgentId } from "#schema/Ids.ts"
import { Approvals } from "./Approvals.ts"
import { type Approved, executionOf, firstStep, takeStep } from "./executionSteps.ts"
import type { Ending } from "./proposalNotes.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { approvalSeen } from "#src/choird/logs/metrics.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { AgentSteps } from "./AgentSteps.ts"
import { ConfigSteps, PROPOSAL_RETRY_MS } from "./ConfigSteps.ts"
import { changed, type ExecutionFailed } from "./ExecutionFailed.ts"
import { advance, begin, beginUnread, finish, nextExecutions, standingOf } from "./executionRows.ts"
import { RepoSteps } from "./RepoSteps.ts"

/** Agents whose approved proposals are carried out at once; of one agent it is one after the other. */
const PROPOSALS_EXECUTED_MAX = 4
/** The longest sleep before choird looks again for approved proposals. */
const PROPOSAL_LOOK_MS_MAX = 30_000

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

/** The digest is the one that the person saw (R54). */
const OTHER_PAYLOAD = "the stored payload is not the one that was approved"

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

  const end = Effect.fnUntraced(function* (approved: Approved, ending: Ending) {
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

  /** What it is, and where it stands. */
  const read = (approved: Approved) =>
    Result.flatMap(executionOf(approved), (execution) =>
      Result.map(
        approved.row.status === "executing" ? standingOf(approved) : Result.succeed(firstStep(execution)),
        (standing) => ({ execution, standing })
      )
    )

  const fail = (approved: Approved, { kind, reason }: ExecutionFailed) =>
    end(approved, { status: "failed", kind, reason })

  /** From where it stands to its end. */
  const execute = Effect.fnUntraced(function* (approved: Approved) {
    const begun = read(approved)
    if (Result.isFailure(begun)) {
      if (approved.row.status !== "executing") yield* beginUnread(sql, approved)
      return yield* fail(approved, begun.failure)
    }
    const { execution } = begun.success
    let { standing } = begun.success
    const { canonical, hash } = approved.row
    if (approved.row.status !== "executing") yield* begin(sql, approved, standing)
    while (true) {
      const taken = yield* Effect.result(
        sha256(canonical) === hash ? takeStep(all, execution, standing) : changed(OTHER_PAYLOAD)
      )
      if (Result.isFailure(taken)) return yield* fail(approved, taken.failure)
      yield* record(approved, standing.step, {})
      if (taken.success.type === "done") return yield* end(approved, { status: "done", outcome: taken.success.outcome })
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
