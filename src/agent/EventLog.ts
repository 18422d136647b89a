/** The session's log as this process holds it: append-only, chained, and complete from revision 1 (spec 7.4, 13.1). */
import { Context, Layer } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { chain, genesis, hex, type Link } from "#src/shared/hashChain.ts"
import { EVENT_BYTES_MAX } from "#src/shared/limits.ts"

/** Events that were committed together, which replication never splits (wire.md, Batches). */
export interface Batch {
  readonly base_rev: number
  readonly hash_prev: string
  readonly new_rev: number
  readonly hash_new: string
  readonly events: ReadonlyArray<ChoirEvent>
}

interface LoggedLink extends Pick<Link, "event" | "hash"> {
  readonly bytes: number
  readonly bytes_total: number
}

/**
 * Holds the events. All of it is synchronous: a commit is one turn of the event loop, so no fiber sees half of it. Only the
 * arbiter appends.
 */
export class EventLog extends Context.Service<
  EventLog,
  {
    readonly session_id: SessionId
    /** The newest revision; 0 before the first event. */
    head(): number
    /** Links events that follow the head as one batch; false when one is larger than EVENT_BYTES_MAX, and then none is. */
    append(events: ReadonlyArray<ChoirEvent>): boolean
    /** Takes over events that choird acknowledged in an earlier epoch. */
    restore(events: ReadonlyArray<ChoirEvent>): void
    /** The event of a revision that was committed. */
    get(rev: number): ChoirEvent
    hashAt(rev: number): string
    /** Canonical bytes from a revision, exclusive, to the head. */
    bytesAfter(rev: number): number
    /** Whole batches after a revision: at least one, then as many as fit the bytes; `undefined` at the head. */
    after(rev: number, bytes_max: number): Batch | undefined
  }
>()("choir/agent/EventLog") {
  static readonly layer = (session_id: SessionId) =>
    Layer.sync(EventLog, () => {
      const links: Array<LoggedLink> = []
      const batchEnds = new Set<number>()
      const origin = genesis(session_id)
      const at = (rev: number): LoggedLink => {
        const link = links[rev - 1]
        if (link === undefined) throw new RangeError(`no event of revision ${rev}`)
        return link
      }
      const digest = (rev: number): Uint8Array => (rev === 0 ? origin : at(rev).hash)
      const bytesUpTo = (rev: number) => (rev === 0 ? 0 : at(rev).bytes_total)
      const linked = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<LoggedLink> => {
        let previous = digest(links.length)
        let bytes_total = bytesUpTo(links.length)
        return events.map((event) => {
          const link = chain(previous, event)
          const bytes = Buffer.byteLength(link.canonical)
          previous = link.hash
          bytes_total += bytes
          return { event, hash: link.hash, bytes, bytes_total }
        })
      }
      const push = (added: ReadonlyArray<LoggedLink>) => {
        for (const link of added) links.push(link)
        batchEnds.add(links.length)
      }
      const append = (events: ReadonlyArray<ChoirEvent>): boolean => {
        const added = linked(events)
        if (added.some(({ bytes }) => bytes > EVENT_BYTES_MAX)) return false
        push(added)
        return true
      }
      const after = (rev: number, bytes_max: number): Batch | undefined => {
        let end = rev
        for (let next = rev + 1; next <= links.length; next++) {
          if (!batchEnds.has(next)) continue
          if (end > rev && bytesUpTo(next) - bytesUpTo(rev) > bytes_max) break
          end = next
        }
        if (end === rev) return undefined
        return {
          base_rev: rev,
          hash_prev: hex(digest(rev)),
          new_rev: end,
          hash_new: hex(digest(end)),
          events: links.slice(rev, end).map(({ event }) => event)
        }
      }
      return EventLog.of({
        session_id,
        head: () => links.length,
        append,
        restore: (events) => push(linked(events)),
        get: (rev) => at(rev).event,
        hashAt: (rev) => hex(digest(rev)),
        bytesAfter: (rev) => bytesUpTo(links.length) - bytesUpTo(rev),
        after
      })
    })
}
