/** A session's state as one text, so that two of them can be compared. */
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import type { SessionState } from "#src/shared/session/State.ts"

const byKey = (a: readonly [unknown, unknown], b: readonly [unknown, unknown]) => (String(a[0]) < String(b[0]) ? -1 : 1)

/** Maps become sorted lists: what a state means does not depend on when something entered it. */
const plain = (_key: string, value: unknown): unknown => {
  if (typeof value === "bigint") return String(value)
  if (value instanceof Map) return [...value].sort(byKey)
  const isHashMap = typeof value === "object" && value !== null && "_id" in value && "values" in value
  return isHashMap ? (value.values as Array<readonly [unknown, unknown]>).sort(byKey) : value
}

export const fingerprint = (state: SessionState): string => canonicalJson(JSON.parse(JSON.stringify(state, plain)))
