const BIGINT_MAX = 9_223_372_036_854_775_807n

/** The row id that a decimal text names, or `undefined` for what no row can have: ids come from agents and clients, too. */
export const rowId = (text: string): bigint | undefined => {
  if (!/^\d{1,19}$/u.test(text)) return undefined
  const id = BigInt(text)
  return id <= BIGINT_MAX ? id : undefined
}

/** An id before that of every row whose ids are UUIDs, from where a walk over a table starts. */
export const NO_ID = "00000000-0000-0000-0000-000000000000"
