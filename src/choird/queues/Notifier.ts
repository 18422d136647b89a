/** Wakes for the readers of a table, by key. A wake says "look again", not what is there, so several of them are worth no more than one. */
import { Effect, Queue, Stream } from "effect"

export interface Notifier {
  /** Emits at once and then whenever the key was woken since the reader last looked; several wakes may arrive as one. */
  readonly wakes: (key: string) => Stream.Stream<void>
  readonly wake: (key: string) => Effect.Effect<void>
}

/** Holds an entry per reader, for as long as its stream runs. */
export const makeNotifier = Effect.sync((): Notifier => {
  const readers = new Map<string, Set<Queue.Queue<void>>>()
  const enter = (key: string) =>
    Effect.map(Queue.sliding<void>(1), (reader) => {
      readers.set(key, (readers.get(key) ?? new Set()).add(reader))
      Queue.offerUnsafe(reader, undefined)
      return reader
    })
  const leave = (key: string) => (reader: Queue.Queue<void>) =>
    Effect.suspend(() => {
      const others = readers.get(key)
      others?.delete(reader)
      if (others?.size === 0) readers.delete(key)
      return Queue.shutdown(reader)
    })
  return {
    wakes: (key) => Stream.unwrap(Effect.map(Effect.acquireRelease(enter(key), leave(key)), Stream.fromQueue)),
    wake: (key) =>
      Effect.sync(() => {
        for (const reader of readers.get(key) ?? []) Queue.offerUnsafe(reader, undefined)
      })
  }
})
