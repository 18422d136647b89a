/** The text from outside in a simulation: a word that only such text begins with, and that a model which read it repeats wherever it can. */

/** Stands in what untrusted tools read and in what people forward. */
export const OUTSIDE = "eve-says-so"

export const hasOutside = (value: unknown): boolean => JSON.stringify(value ?? "").includes(OUTSIDE)

/** Arguments in which a model has words of its own. */
const WORDS = new Set(["content", "note", "summary", "summary_update", "task_spec", "text"])

/** Arguments with the word in all that are words. */
export const withOutside = (args: unknown): unknown =>
  typeof args === "object" && args !== null && !Array.isArray(args)
    ? Object.fromEntries(
        Object.entries(args).map(([name, value]) => [
          name,
          WORDS.has(name) && typeof value === "string" ? `${value} ${OUTSIDE}` : value
        ])
      )
    : args
