/** One at a time for each key; different keys do not wait for each other. */
import { Effect, Semaphore } from "effect"

/** Keys are ids of config.json, so the map stays as small as the configuration. */
export const makeKeyedLock = Effect.sync(() => {
  const locks = new Map<string, Semaphore.Semaphore>()
  return (key: string) =>
    <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        const lock = locks.get(key) ?? Semaphore.makeUnsafe(1)
        locks.set(key, lock)
        return lock.withPermit(use)
      })
})
