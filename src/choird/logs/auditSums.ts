/** Which refusals get a row of their own and which are counted, decided without a database (R77). */
import { canonicalJson, storableJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import type { AuditEntry } from "./Audit.ts"

/** How long refusals that are equal but for their detail are counted before they get a row together (R77). */
export const AUDIT_WINDOW_MS = 60_000
/** Kinds of refusals that are told apart at once; those beyond are counted together. */
export const AUDIT_SUMS_MAX = 1000

/** A row: one entry, or `count` equal ones since `since_ms`, told by the newest. */
export interface Sum {
  readonly entry: AuditEntry
  readonly count: number
  readonly since_ms: number
}

interface Window {
  /** Refusals that came after the row was written. */
  more: Sum | undefined
  ends_ms: number
}

export interface AuditSums {
  /** The row to write now; `undefined` for a refusal that is only counted. */
  note(entry: AuditEntry, now_ms: number): Sum | undefined
  /** The rows of the windows that are over. One without a further refusal is forgotten. */
  due(now_ms: number): ReadonlyArray<Sum>
  /** The rows of all windows, at the end. */
  all(): ReadonlyArray<Sum>
}

/** Whoever asks in so many ways that they cannot be told apart any more is summed as one. */
const OVERFLOW = "more kinds of refusals"

/** The kind of a refusal; `undefined` for what was done. */
export const refusalIn = ({ detail }: Pick<AuditEntry, "detail">): string | undefined =>
  typeof detail["refused"] === "string" ? detail["refused"] : undefined

/** The operator is no flood, so that only what is equal to the letter is summed; of anybody else what differs in the kind alone. */
const kindOf = ({ detail, who }: AuditEntry) =>
  who === "operator" ? sha256(canonicalJson(storableJson(detail))) : (refusalIn({ detail }) ?? "")

const keyOf = (entry: AuditEntry) =>
  [entry.who, entry.action, entry.session_id ?? "", entry.agent_id ?? "", kindOf(entry)].join(" ")

export const makeAuditSums = (): AuditSums => {
  const windows = new Map<string, Window>()
  const taken = () => {
    const rows: Array<Sum> = []
    for (const window of windows.values()) if (window.more !== undefined) rows.push(window.more)
    return rows
  }
  return {
    note: (entry, now_ms) => {
      if (refusalIn(entry) === undefined) return { entry, count: 1, since_ms: now_ms }
      const own = keyOf(entry)
      const key = windows.has(own) || windows.size < AUDIT_SUMS_MAX ? own : OVERFLOW
      const found = windows.get(key)
      if (found === undefined) {
        windows.set(key, { more: undefined, ends_ms: now_ms + AUDIT_WINDOW_MS })
        return { entry, count: 1, since_ms: now_ms }
      }
      found.more = { entry, count: (found.more?.count ?? 0) + 1, since_ms: found.more?.since_ms ?? now_ms }
      return undefined
    },
    due: (now_ms) => {
      const rows: Array<Sum> = []
      for (const [key, window] of windows) {
        if (window.ends_ms > now_ms) continue
        if (window.more === undefined) windows.delete(key)
        else rows.push(window.more)
        window.more = undefined
        window.ends_ms = now_ms + AUDIT_WINDOW_MS
      }
      return rows
    },
    all: taken
  }
}
