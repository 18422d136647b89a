/** A defect is told by a reference alone, and written down in full under the same one (R78). */
import { Effect, Random } from "effect"

/** @param cause an error, or an Effect's cause. Logs what went wrong as an error, with a short reference that whoever is told of it can name. */
export const logDefect = Effect.fnUntraced(function* (what: string, cause: unknown) {
  const ref = ((yield* Random.nextInt) >>> 0).toString(16).padStart(8, "0")
  yield* Effect.annotateLogs(Effect.logError(what, cause), { ref })
  return ref
})

/** The words for whoever met it. */
export const defectWords = (what: string, ref: string): string => `${what}; the log of choird says why under ref ${ref}`
