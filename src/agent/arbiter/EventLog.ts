/**
 * The session's log as this process holds it: append-only, chained. What choird has acknowledged may leave, oldest
 * first, so that a long session does not grow without bound (D9); choird answers for what left.
 */
import { Context, Layer } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"
import { namedRevs, windowsOf } from "#src/shared/session/namedRevs.ts"
import type { SessionState } from "#src/shared/session/State.ts"

/** Canonical bytes of the events of one commit, which one request carries whole. */
export const COMMIT_BYTES_MAX = 768 * 1024
/** Canonical bytes of a session's log that the agent keeps in memory; a log above it loses what choird acknowledged (D9). */
export const RESIDENT_LOG_BYTES_MAX = 12 * 1024 * 1024

/** A place in the chain; revision 0 is before the first event. */
export interface ChainPlace {
  readonly rev: number
  readonly hash: string
}

/** Events that were committed together, which replication never splits (docs/protocol.md, Batches). */
export interface Batch {
  readonly base_rev: number
  readonly hash_prev: string
  readonly new_rev: number
  readonly hash_new: string
  readonly events: ReadonlyArray<ChoirEvent>
}

interface LoggedLink {
  readonly event: ChoirEvent
  readonly hash: Uint8Array
  readonly bytes: number
  /** Canonical bytes of the session up to here. */
  readonly bytes_total: number
  /** Whether a batch ends here. */
  readonly ends: boolean
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
    /** The revision from which on every event is here. */
    oldest(): number
    /**
     * Links events that follow the head as one batch. Where one is larger than EVENT_BYTES_MAX, or all are larger than COMMIT_BYTES_MAX, none
     * is linked and the answer says so.
     */
    append(events: ReadonlyArray<ChoirEvent>): string | undefined
    /** Forgets what is here and begins after a place, as a recovery does; older events are choird's alone. */
    begin(after: ChainPlace): void
    /** Takes over events that choird acknowledged in an earlier epoch. */
    restore(events: ReadonlyArray<ChoirEvent>): void
    /** The newest revision of an earlier epoch; 0 where this one is the first. */
    restored(): number
    /** The event of a revision that is here: from `oldest()` on, or named by the state when older ones left. */
    get(rev: number): ChoirEvent
    /** The same, or `undefined` for one that left. */
    find(rev: number): ChoirEvent | undefined
    /** The digest of the chain at a revision that is here, or just before the oldest one. */
    hashAt(rev: number): string
    /** Canonical bytes of an event that is here or named by the state; 0 of one that left. */
    bytesOf(rev: number): number
    /** Canonical bytes from a revision, exclusive, to the head. */
    bytesAfter(rev: number): number
    /** Whole batches after a revision: at least one, then as many as fit the bytes; `undefined` at the head. */
    after(rev: number, bytes_max: number): Batch | undefined
    /** Whether more is held than RESIDENT_LOG_BYTES_MAX. */
    isFull(): boolean
    /** Lets go of acknowledged events, oldest first, until there is room again; keeps those that are named. */
    trim(acked: number, named: ReadonlySet<number>): void
  }
>()("choir/agent/EventLog") {
  static readonly layer = (session_id: SessionId) => Layer.sync(EventLog, () => make(session_id))
}

/** The newest links of a chain, and the place just before the oldest of them. */
const makeResident = (genesisHash: Uint8Array) => {
  const links: Array<LoggedLink> = []
  // What stands just before the oldest link: the genesis, and later the newest event that left.
  let before = { rev: 0, hash: genesisHash, bytes_total: 0 }

  const head = () => before.rev + links.length
  const find = (rev: number): LoggedLink | undefined => links[rev - before.rev - 1]
  const at = (rev: number): LoggedLink => {
    const link = find(rev)
    if (link === undefined) throw new RangeError(`no event of revision ${rev}`)
    return link
  }
  const place = (rev: number): Pick<LoggedLink, "hash" | "bytes_total"> => (rev === before.rev ? before : at(rev))
  return {
    head,
    place,
    find,
    before: () => before.rev,
    held: () => place(head()).bytes_total - before.bytes_total,
    begin: ({ hash, rev }: ChainPlace) => {
      links.length = 0
      before = { rev, hash: Buffer.from(hash, "hex"), bytes_total: 0 }
    },
    push: (added: ReadonlyArray<LoggedLink>) => {
      for (const link of added) links.push(link)
    },
    linked: (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<LoggedLink> => {
      let { bytes_total, hash } = place(head())
      return events.map((event, index) => {
        const link = chainEvent(hash, event)
        const { bytes } = link
        hash = link.hash
        bytes_total += bytes
        return { event, hash, bytes, bytes_total, ends: index === events.length - 1 }
      })
    },
    after: (rev: number, bytes_max: number): Batch | undefined => {
      const start = place(rev)
      let end = rev
      for (let next = rev + 1; next <= head(); next++) {
        const link = at(next)
        if (!link.ends) continue
        if (end > rev && link.bytes_total - start.bytes_total > bytes_max) break
        end = next
      }
      if (end === rev) return undefined
      return {
        base_rev: rev,
        hash_prev: hex(start.hash),
        new_rev: end,
        hash_new: hex(at(end).hash),
        events: links.slice(rev - before.rev, end - before.rev).map(({ event }) => event)
      }
    },
    /** Lets go of acknowledged links, oldest first, until half of the room is free; answers them. */
    drop: (acked: number): ReadonlyArray<LoggedLink> => {
      const enough = place(head()).bytes_total - RESIDENT_LOG_BYTES_MAX / 2
      const stays = links.findIndex(({ bytes_total }, index) => before.rev + index + 1 > acked || bytes_total > enough)
      const gone = links.splice(0, stays < 0 ? links.length : stays)
      const last = gone.at(-1)
      if (last !== undefined) before = { rev: last.event.rev, hash: last.hash, bytes_total: last.bytes_total }
      return gone
    }
  }
}

const make = (session_id: SessionId) => {
  const resident = makeResident(genesis(session_id))
  const { head, place } = resident
  let restored = 0
  /** The events that left, where the state still names them. */
  let kept: ReadonlyMap<number, Pick<LoggedLink, "bytes" | "event">> = new Map()

  const here = (rev: number) => (rev > resident.before() ? resident.find(rev) : kept.get(rev))
  const find = (rev: number) => here(rev)?.event
  return EventLog.of({
    session_id,
    head,
    oldest: () => resident.before() + 1,
    append: (events) => {
      const added = resident.linked(events)
      if (added.some(({ bytes }) => bytes > EVENT_BYTES_MAX))
        return `an event may have ${EVENT_BYTES_MAX} bytes at most`
      if (added.reduce((total, { bytes }) => total + bytes, 0) > COMMIT_BYTES_MAX)
        return `the events of one commit may have ${COMMIT_BYTES_MAX} bytes at most`
      resident.push(added)
      return undefined
    },
    begin: (after) => {
      resident.begin(after)
      restored = after.rev
      kept = new Map()
    },
    restore: (events) => {
      resident.push(resident.linked(events))
      restored = head()
    },
    restored: () => restored,
    get: (rev) => {
      const event = find(rev)
      if (event === undefined) throw new RangeError(`no event of revision ${rev}`)
      return event
    },
    find,
    hashAt: (rev) => hex(place(rev).hash),
    bytesOf: (rev) => here(rev)?.bytes ?? 0,
    bytesAfter: (rev) => place(head()).bytes_total - place(rev).bytes_total,
    after: resident.after,
    isFull: () => resident.held() > RESIDENT_LOG_BYTES_MAX,
    trim: (acked, named) => {
      const gone = resident.drop(acked)
      const left = [...kept, ...gone.map(({ bytes, event }) => [event.rev, { bytes, event }] as const)]
      kept = new Map(left.filter(([rev]) => named.has(rev)))
    }
  })
}

/** Canonical bytes of a lane's window that stay in memory however old they are; no prompt holds more. */
export const RESIDENT_WINDOW_BYTES_MAX = 4 * 1024 * 1024

/** The newest of a window, up to RESIDENT_WINDOW_BYTES_MAX. */
const newest = (window: ReadonlyArray<number>, bytesOf: (rev: number) => number): ReadonlyArray<number> => {
  let left = RESIDENT_WINDOW_BYTES_MAX
  const from = window.findLastIndex((rev) => {
    left -= bytesOf(rev)
    return left < 0
  })
  return window.slice(from + 1)
}

/** The events that stay in memory however old they are: those that the state names, and of each window what a prompt could hold. */
export const residentRevs = (state: SessionState, log: EventLog["Service"]): ReadonlySet<number> => {
  return new Set([...namedRevs(state), ...windowsOf(state).flatMap((window) => newest(window, log.bytesOf))])
}
