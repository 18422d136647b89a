/** A defect is shown by a reference alone, and logged in full under the same one (R78). */
import { Effect, Random } from "effect"

/** @param cause an error, or an Effect's cause. Logs what went wrong as an error, with a short reference that people can quote. */
export const logDefect = Effect.fnUntraced(function* (what: string, cause: unknown) {
  const ref = ((yield* Random.nextInt) >>> 0).toString(16).padStart(8, "0")
  yield* Effect.annotateLogs(Effect.logError(what, cause), { ref })
  return ref
})

/** The words for the person who met it. */
export const defectWords = (what: string, ref: string): string => `${what}; the log of choird says why under ref ${ref}`
