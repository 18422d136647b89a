/** One at a time for each key; different keys do not wait for each other. */
import { Effect, Semaphore } from "effect"

/** The lock of a key, with those that hold it or wait for it. */
interface Lock {
  readonly semaphore: Semaphore.Semaphore
  users: number
}

/** Some keys follow from what agents build, so that a key is forgotten with its last user. */
export const makeKeyedLock = Effect.sync(() => {
  const locks = new Map<string, Lock>()
  const enter = (key: string) => {
    const lock = locks.get(key) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
    locks.set(key, lock)
    lock.users += 1
    return lock
  }
  const leave = (key: string, lock: Lock) => {
    lock.users -= 1
    if (lock.users === 0) locks.delete(key)
  }
  return (key: string) =>
    <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(key)),
        ({ semaphore }) => semaphore.withPermit(use),
        (lock) => Effect.sync(() => leave(key, lock))
      )
})
