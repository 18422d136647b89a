/** How much memory this process takes while something runs. */
import { Effect } from "effect"

const MIB = 1024 * 1024
const SAMPLE_MS = 5

/** What an effect gives, and by how many MiB the resident memory grew at most while it ran. */
export const withMemory = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const before = process.memoryUsage.rss()
  let most = before
  const look = () => {
    most = Math.max(most, process.memoryUsage.rss())
  }
  const timer = setInterval(look, SAMPLE_MS)
  const value = yield* Effect.ensuring(
    effect,
    Effect.sync(() => clearInterval(timer))
  )
  look()
  return { value, grown_mib: (most - before) / MIB }
})
