/** An audit in memory, for tests of what writes to it. */
import { Effect, Layer } from "effect"
import { Audit, type AuditEntry, markRecorded, refusalIn } from "#src/choird/logs/Audit.ts"

const row = ({ action, agent_id, detail, session_id, who }: AuditEntry, index: number) => ({
  audit_id: String(index + 1),
  at: "2025-01-01T00:00:00.000Z",
  since: "2025-01-01T00:00:00.000Z",
  who,
  action,
  session_id: session_id ?? null,
  agent_id: agent_id ?? null,
  count: 1,
  detail
})

/** Keeps every entry in the list, without a sum. */
export const memoryAudit = (entries: Array<AuditEntry>) =>
  Layer.succeed(Audit, {
    record: (entry) =>
      Effect.andThen(
        markRecorded,
        Effect.sync(() => void entries.push(entry))
      ),
    recordSum: (entry) => Effect.sync(() => void entries.push(entry)),
    last: () => Effect.sync(() => entries.map(row))
  })

/** The kinds of the refusals among them. */
export const refusalsIn = (entries: ReadonlyArray<AuditEntry>) => entries.map((entry) => refusalIn(entry) ?? "none")
