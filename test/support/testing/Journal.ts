/** What a double was asked, in order, with a way to wait for an entry instead of sleeping. */
import { Deferred, Effect } from "effect"

/** Far above what one test makes; reaching it means that the program under test runs in a loop. */
const JOURNAL_ENTRIES_MAX = 50_000

export interface Journal<A> {
  /** Everything up to now, oldest first. */
  readonly all: Effect.Effect<ReadonlyArray<A>>
  /** The first entry that fits, looked for from index `from` (default 0) on; waits until there is one. */
  first(fits: (entry: A) => boolean, from?: number): Effect.Effect<A>
  /** The entry with this index, from 0; waits until it is there. */
  at(index: number): Effect.Effect<A>
}

/** The journal together with the right to write into it. */
export interface JournalWriter<A> {
  readonly journal: Journal<A>
  record(entry: A): void
}

export const makeJournal = <A>(): JournalWriter<A> => {
  interface Waiter {
    fits(entry: A, index: number): boolean
    readonly found: Deferred.Deferred<A>
  }
  const entries: Array<A> = []
  const waiters = new Set<Waiter>()
  const find = (fits: Waiter["fits"]): Effect.Effect<A> =>
    Effect.suspend(() => {
      const index = entries.findIndex((entry, at) => fits(entry, at))
      const entry = entries[index]
      if (entry !== undefined) return Effect.succeed(entry)
      const waiter: Waiter = { fits, found: Deferred.makeUnsafe() }
      waiters.add(waiter)
      return Effect.ensuring(
        Deferred.await(waiter.found),
        Effect.sync(() => waiters.delete(waiter))
      )
    })
  return {
    journal: {
      all: Effect.sync(() => [...entries]),
      first: (fits, from = 0) => find((entry, index) => index >= from && fits(entry)),
      at: (wanted) => find((_, index) => index === wanted)
    },
    record: (entry) => {
      if (entries.length >= JOURNAL_ENTRIES_MAX) throw new Error(`more than ${JOURNAL_ENTRIES_MAX} entries in a double`)
      const index = entries.push(entry) - 1
      for (const waiter of waiters)
        if (waiter.fits(entry, index)) Deferred.doneUnsafe(waiter.found, Effect.succeed(entry))
    }
  }
}
