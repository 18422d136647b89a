/**
 * The executions of approved proposals, as durable jobs (D17). Each step is stored before it is taken and may be repeated, so that choird
 * may die at any point and the result still happens exactly once (R53). A failed step ends the job with a reason and leaves the agent as it was.
 */
import { Cause, Context, Effect, FiberSet, FileSystem, Layer, Queue, Result, Schema, type Scope, Stream } from "effect"
import { join } from "node:path"
import type { AgentId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ProofOfApproval, beginExecution } from "#src/choird/approvals/ProofOfApproval.ts"
import { executionOf, PROPOSAL_RETRY_MS, standingOf, type Standing } from "#src/choird/approvals/Execution.ts"
import { type Ending, endedNote, endedText, outcomeText } from "#src/choird/approvals/proposalNotes.ts"
import { logDeath, restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { provideDatabase, inTransaction } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { lockSession } from "#src/choird/sessions/storedEvents.ts"
import { approvalSeen } from "#src/choird/logs/metrics.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { changed, type ExecutionFailed } from "#src/choird/approvals/ExecutionFailed.ts"
import { Proposals } from "#src/choird/approvals/Proposals.ts"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { isConfirmation, openExecutions, signalResolution } from "#src/choird/approvals/approvalRows.ts"
import { editCard, tellMore } from "#src/choird/approvals/askPerson.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** The proofs of what is approved, or was begun and interrupted; the oldest of each agent. */
export const nextExecutions = Effect.map(openExecutions, (rows) => {
  const first = new Map(rows.toReversed().map((row) => [row.agent_id, row]))
  return [...first.values()].flatMap((row) => ProofOfApproval.of(row) ?? ProofOfApproval.begun(row) ?? [])
})

const store = Effect.fnUntraced(function* ({ row }: ProofOfApproval, { job, step }: Standing) {
  const sql = yield* SqlClient.SqlClient
  const stored =
    yield* sql`UPDATE choir_control.pending_approvals SET step = ${step}, job = ${canonicalJson(job)}::jsonb
    WHERE id = ${rowId(row.approval_id) ?? 0n} AND status = 'executing' RETURNING id`
  if (stored.length === 0) return yield* Effect.die(new Error(`the approval ${row.approval_id} is not being executed`))
})

/** Stores the next step before it is taken (D17, R53); a defect if the row is not being executed (R55). */
export const advance = (approved: ProofOfApproval, standing: Standing) => Effect.orDie(store(approved, standing))

/** Begins the one execution. */
export const begin = (approved: ProofOfApproval, standing: Standing) =>
  Effect.orDie(inTransaction(Effect.andThen(beginExecution(approved), store(approved, standing))))

/** Begins the one execution of an unreadable proposal, which takes no step. */
const beginUnread = (approved: ProofOfApproval) => Effect.orDie(inTransaction(beginExecution(approved)))

/** Ends it, notifies the agent and the person, and returns the DM that has something new. */
const finish = Effect.fnUntraced(
  function* (config: Config, { row }: ProofOfApproval, ending: Ending) {
    const sql = yield* SqlClient.SqlClient
    const session = yield* lockSession(row.session_id)
    const ended = yield* sql`UPDATE choir_control.pending_approvals
      SET status = ${ending.status}, outcome = ${outcomeText(ending)}
      WHERE id = ${rowId(row.approval_id) ?? 0n} AND status = 'executing' RETURNING id`
    if (ended.length === 0 || isConfirmation(row))
      return yield* Effect.die(new Error(`the approval ${row.approval_id} was ended twice`))
    if (session !== undefined && session.status !== "closed")
      yield* signalResolution(row, "approved", endedNote(row, ending))
    const text = endedText(row, ending)
    yield* editCard(config, row, "card-ended", text)
    return yield* tellMore(config, row, "ended", text)
  },
  (effect) => Effect.orDie(inTransaction(effect))
)

/** Agents whose approved proposals are executed at the same time; those of one agent follow each other. */
const PROPOSALS_EXECUTED_MAX = 4
/** The longest sleep before choird checks again for approved proposals. */
const PROPOSAL_LOOK_MS_MAX = 30_000

/** Executes approved proposals. */
export class Executions extends Context.Service<
  Executions,
  {
    /** Executes them for as long as the scope lives, beginning with those that an earlier choird did not finish. */
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

/** Decodes the proposal, and finds the step at which its execution stands. */
const read = (approved: ProofOfApproval) =>
  Result.flatMap(executionOf(approved), (execution) =>
    Result.map(standingOf(execution), (standing) => ({ execution, standing }))
  )

/** Stores and reports how an execution ended. */
const makeEnd = Effect.gen(function* () {
  const audit = yield* Audit
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const outbox = yield* Outbox
  const signals = yield* Signals
  return Effect.fnUntraced(function* (approved: ProofOfApproval, ending: Ending) {
    const { row } = approved
    const dms = yield* finish((yield* config.current).config, approved, ending)
    yield* signals.wake(row.session_id)
    yield* Effect.forEach(dms, outbox.wake, { discard: true })
    yield* audit.record(auditEntry(approved, ending.status, ending.status === "failed" ? { refused: ending.kind } : {}))
    yield* approvalSeen(row, ending.status, "choird")
    yield* fs
      .remove(join(config.home, "repos", "work", `approval-${row.approval_id}`), { recursive: true, force: true })
      .pipe(Effect.ignore)
  })
})

const auditEntry = (
  { row }: ProofOfApproval,
  action: string,
  detail: Readonly<Record<string, Schema.Json>> = {}
): AuditEntry => ({
  who: "choird",
  action: `proposal.${action}`,
  session_id: row.session_id,
  agent_id: row.agent_id,
  detail: { approval_id: row.approval_id, request_type: row.request_type, ...detail }
})

/** Takes all remaining steps of an execution. */
const makeExecute = Effect.gen(function* () {
  const audit = yield* Audit
  const proposals = yield* Proposals
  const end = yield* makeEnd
  const fail = (approved: ProofOfApproval, { kind, reason }: ExecutionFailed) =>
    end(approved, { status: "failed", kind, reason })

  return Effect.fnUntraced(function* (approved: ProofOfApproval) {
    const begun = read(approved)
    if (Result.isFailure(begun)) {
      if (approved.row.status !== "executing") yield* beginUnread(approved)
      return yield* fail(approved, begun.failure)
    }
    const { execution } = begun.success
    let { standing } = begun.success
    const { canonical, hash } = approved.row
    if (approved.row.status !== "executing") yield* begin(approved, standing)
    while (true) {
      const taken = yield* Effect.result(
        sha256(canonical) === hash ? proposals.execute(execution, standing) : changed(OTHER_PAYLOAD)
      )
      if (Result.isFailure(taken)) return yield* fail(approved, taken.failure)
      yield* audit.record(auditEntry(approved, standing.step))
      if (taken.success.type === "done") return yield* end(approved, { status: "done", outcome: taken.success.outcome })
      standing = taken.success.standing
      yield* advance(approved, standing)
    }
  })
})

const make = Effect.fnUntraced(function* () {
  const approvals = yield* Approvals
  const config = yield* ConfigStore
  const fs = yield* FileSystem.FileSystem
  const onDatabase = yield* provideDatabase
  const execute = yield* makeExecute

  const run = Effect.gen(function* () {
    const fibers = yield* FiberSet.make<void>()
    const busy = new Set<AgentId>()
    // A token: something was approved, or an agent's work has ended and its next proposal may begin.
    const woken = yield* Queue.sliding<void>(1)
    const ended = ({ row }: ProofOfApproval) =>
      Effect.suspend(() => {
        busy.delete(row.agent_id)
        return Queue.offer(woken, undefined)
      })
    const one = (approved: ProofOfApproval) =>
      execute(approved).pipe(
        onDatabase,
        Effect.catchCauseIf(
          (cause) => !Cause.hasInterruptsOnly(cause),
          (cause) =>
            Effect.andThen(
              Effect.logError(`approval ${approved.row.approval_id} will be executed later`, cause),
              Effect.sleep(PROPOSAL_RETRY_MS)
            )
        ),
        Effect.ensuring(ended(approved))
      )
    const look = Effect.gen(function* () {
      for (const approved of yield* nextExecutions) {
        const { agent_id } = approved.row
        if (busy.has(agent_id) || busy.size >= PROPOSALS_EXECUTED_MAX) continue
        busy.add(agent_id)
        yield* FiberSet.run(fibers, logDeath("the execution of an approval")(one(approved)))
      }
      yield* Effect.timeoutOption(Queue.take(woken), PROPOSAL_LOOK_MS_MAX)
    })
    // Nobody needs the unfinished repositories of an earlier choird.
    yield* Effect.ignore(fs.remove(join(config.home, "repos", "work"), { recursive: true, force: true }))
    yield* Stream.runForEach(approvals.approved, () => Queue.offer(woken, undefined)).pipe(
      restarted("the watch for approvals"),
      Effect.forkScoped
    )
    yield* look.pipe(
      onDatabase,
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logWarning("cannot read the approved proposals", cause), Effect.sleep(PROPOSAL_RETRY_MS))
      ),
      Effect.forever,
      restarted("the execution of approvals"),
      Effect.forkScoped
    )
  })
  return Executions.of({ run })
})
