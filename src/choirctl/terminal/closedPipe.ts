/** What becomes of a command whose output nobody reads any more, as behind `| head`. */
import { Effect } from "effect"

let prints_only = false

/** Says that a command does nothing but print, so that it may end with its reader. */
export const endWithReader: Effect.Effect<void> = Effect.sync(() => {
  prints_only = true
})

/** Lets any other command go on to its end, and drops what it still prints: its exit code says what was done. */
export const surviveClosedPipes = (): void => {
  process.stdout.on("error", () => {
    if (prints_only) process.exit(0)
  })
  process.stderr.on("error", () => undefined)
}
