/** The progress of an execution in its row: each step is stored before it is taken (D17, R53). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import { Approved, beginExecution } from "./Approved.ts"
import { isConfirmation, lockSession, openExecutions, signalResolution } from "./approvalRows.ts"
import { editCard, tellMore } from "./askPerson.ts"
import { endedNote, endedText, type Ending, outcomeText } from "./proposalNotes.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { inTransaction } from "#src/choird/database/DatabaseAway.ts"
import { rowId } from "#src/choird/database/rowId.ts"
import type { Standing } from "./Execution.ts"

/** The proofs of what is approved, or was begun and interrupted; the oldest of each agent. */
export const nextExecutions = Effect.map(openExecutions, (rows) => {
  const first = new Map(rows.toReversed().map((row) => [row.agent_id, row]))
  return [...first.values()].flatMap((row) => Approved.of(row) ?? Approved.begun(row) ?? [])
})

const store = Effect.fnUntraced(function* ({ row }: Approved, { job, step }: Standing) {
  const sql = yield* SqlClient.SqlClient
  const stored =
    yield* sql`UPDATE choir_control.pending_approvals SET step = ${step}, job = ${canonicalJson(job)}::jsonb
    WHERE id = ${rowId(row.approval_id) ?? 0n} AND status = 'executing' RETURNING id`
  if (stored.length === 0) return yield* Effect.die(new Error(`the approval ${row.approval_id} is not being executed`))
})

/** Stores the next step; a defect if the row is not being executed (R55). */
export const advance = (approved: Approved, standing: Standing) => Effect.orDie(store(approved, standing))

/** Begins the one execution. */
export const begin = (approved: Approved, standing: Standing) =>
  Effect.orDie(inTransaction(Effect.andThen(beginExecution(approved), store(approved, standing))))

/** Begins the one execution of an unreadable proposal, which takes no step. */
export const beginUnread = (approved: Approved) => Effect.orDie(inTransaction(beginExecution(approved)))

/** Ends it, notifies the agent and the person, and returns the DM that has something new. */
export const finish = Effect.fnUntraced(
  function* (config: Config, { row }: Approved, ending: Ending) {
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
