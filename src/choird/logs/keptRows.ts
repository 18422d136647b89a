/** Audit rows that the database did not take, in the order in which they came. */
import type { Sum } from "./auditSums.ts"

/** Audit rows that wait for a database that is away, and how often it is asked for them. */
const AUDIT_KEPT_MAX = 1000

export interface KeptRows {
  isEmpty(): boolean
  /** Answers the row that has to go for it, when there are AUDIT_KEPT_MAX. */
  add(row: Sum): Sum | undefined
  remove(row: Sum): void
  all(): ReadonlyArray<Sum>
}

export const makeKeptRows = (): KeptRows => {
  const rows = new Set<Sum>()
  return {
    isEmpty: () => rows.size === 0,
    add: (row) => {
      rows.add(row)
      const out = rows.size > AUDIT_KEPT_MAX ? rows.values().next().value : undefined
      if (out !== undefined) rows.delete(out)
      return out
    },
    remove: (row) => void rows.delete(row),
    all: () => [...rows]
  }
}
