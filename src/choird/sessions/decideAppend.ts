/** The decision about a heartbeat's patches: the cells of D4, pure (R11). */
import { Result } from "effect"
import type { Heartbeat } from "#schema/AgentApi.ts"
import { type ChoirEvent, isKnownEvent, type SentEvent } from "#schema/Event.ts"
import { EVENT_DEPTH_MAX, isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { chainEvent, hex, type Link } from "#src/shared/events/hashChain.ts"
import type { NewerEvent } from "#src/shared/events/eventRow.ts"
import { foldAll } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import type { LockedSession, Replay } from "./storedEvents.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

/** The patches as a chain that starts at `hash_prev`, or why they cannot be one. */
export type Prepared =
  | { readonly type: "chain"; readonly links: ReadonlyArray<Link<SentEvent>> }
  | { readonly type: "conflict"; readonly reason: string }
  | { readonly type: "too_large"; readonly rev: number; readonly bytes: number }

export type Decision =
  /** An older epoch, or a session that has ended: the agent has to exit. */
  | { readonly type: "fenced" }
  | { readonly type: "frozen" }
  /** A history that may be wrong; the session is frozen with the reason. */
  | { readonly type: "conflict"; readonly reason: string }
  | { readonly type: "gap" }
  | { readonly type: "too_large"; readonly rev: number; readonly bytes: number }
  /** All of it was stored before. */
  | { readonly type: "duplicate" }
  | {
      readonly type: "store"
      readonly links: ReadonlyArray<Link<SentEvent>>
      /** The events that are known and come before all that are not, and the state after them. */
      readonly folded: ReadonlyArray<ChoirEvent>
      readonly state: SessionState
      /** The first event of the session that is not known here, stored before or one of these. */
      readonly newer: NewerEvent | undefined
      /** The digest of the last of them. */
      readonly hash: Buffer
    }

/** An escaped NUL whose backslash is not itself escaped: Postgres cannot hold one as text, and agents replace it before they commit. */
const NUL = /(?<!\\)(?:\\\\)*\\u0000/u

const conflict = (reason: string) => ({ type: "conflict" as const, reason })

/** Chains the patches, and makes the checks that do not depend on the session. */
export const prepare = ({ base_rev, hash_prev, new_rev, patches }: Heartbeat): Prepared => {
  if (new_rev !== base_rev + patches.length || patches.some(({ rev }, index) => rev !== base_rev + 1 + index))
    return conflict(`the patches are not the events after ${base_rev} up to ${new_rev}`)
  const links: Array<Link<SentEvent>> = []
  for (const event of patches) {
    const { rev } = event
    if (isDeeperThan(event, EVENT_DEPTH_MAX))
      return conflict(`event ${rev} is nested deeper than ${EVENT_DEPTH_MAX} levels`)
    // Only choird reduces a payload: an agent could commit to another one than it sends.
    if ("payload_digest" in event) return conflict(`event ${rev} brings the digest of another payload`)
    // Canonical JSON refuses lone surrogates, which agents replace as well.
    const next = Result.try(() => chainEvent(links.at(-1)?.hash ?? Buffer.from(hash_prev, "hex"), event))
    if (Result.isFailure(next)) return conflict(`event ${rev} has no canonical form`)
    const { bytes, payload } = next.success
    if (bytes > EVENT_BYTES_MAX) return { type: "too_large", rev, bytes }
    if (NUL.test(payload)) return conflict(`event ${rev} holds a NUL`)
    links.push(next.success)
  }
  return { type: "chain", links }
}

/** The parts of a session's row that decide whether a caller may write. */
export type WritableSession = Pick<LockedSession, "status" | "epoch" | "frozen_reason" | "last_rev">

/** The decision that needs no digest: whether this caller may still write, and whether events are missing. */
export const admit = (
  session: WritableSession | undefined,
  caller_epoch: number,
  heartbeat: Heartbeat,
  prepared: Prepared
): Decision | undefined => {
  if (session === undefined || session.status !== "active") return { type: "fenced" }
  if (caller_epoch < session.epoch || heartbeat.epoch < session.epoch) return { type: "fenced" }
  if (session.frozen_reason !== null) return { type: "frozen" }
  if (heartbeat.epoch > session.epoch) return conflict(`epoch ${heartbeat.epoch} was never given`)
  if (prepared.type !== "chain") return prepared
  return heartbeat.base_rev > session.last_rev ? { type: "gap" } : undefined
}

/** Events of a session after the first one that is not known here, which its agent still had to send. */
export const NEWER_EVENTS_MAX = 10_000

/** The known events before all that are not, and the first of those. */
const splitAtNewer = (events: ReadonlyArray<SentEvent>) => {
  const at = events.findIndex((event) => !isKnownEvent(event))
  const known = (at === -1 ? events : events.slice(0, at)).filter((event) => isKnownEvent(event))
  const newer = events[at]
  return { known, newer: newer && { rev: newer.rev, v: newer.v, event_type: newer.event_type } }
}

/** A session before a heartbeat: its head, and its log as far as it is proved and folded. */
interface Held extends Pick<Replay, "at" | "problem"> {
  readonly head: { readonly rev: number; readonly hash: Buffer }
}

/**
 * Compares an admitted chain with what is stored. `digestAt` knows the digests at `base_rev` and at the newest revision that both
 * sides have. The part that was stored before has to be the same; the rest has to follow from it and from the state. From the first
 * event on that is not known here the chain alone counts: the session is not run, and a later choird folds what was kept (D53).
 */
export const decide = (
  heartbeat: Heartbeat,
  links: ReadonlyArray<Link<SentEvent>>,
  held: Held,
  digestAt: (rev: number) => Buffer | undefined
): Decision => {
  const { base_rev, hash_new, hash_prev, new_rev } = heartbeat
  const { at, head, problem } = held
  if (problem !== undefined && problem.newer === undefined)
    return conflict(`the stored log is broken at ${problem.rev}: ${problem.reason}`)
  const shared_rev = Math.min(new_rev, head.rev)
  const known = (rev: number) => (rev === head.rev ? head.hash : digestAt(rev))
  const sent = (rev: number) => (rev === base_rev ? hash_prev : hex(links[rev - base_rev - 1]?.hash ?? Buffer.of()))
  const differs = [base_rev, shared_rev].find((rev) => sent(rev) !== hex(known(rev) ?? Buffer.of()))
  if (differs !== undefined) return conflict(`the digest at ${differs} differs`)
  if (sent(new_rev) !== hash_new) return conflict(`hash_new is not the digest of the patches`)
  const fresh = links.slice(shared_rev - base_rev)
  const hash = fresh.at(-1)?.hash
  if (hash === undefined) return { type: "duplicate" }
  const split = splitAtNewer(fresh.map(({ event }) => event))
  const newer = problem?.newer ?? split.newer
  // Nothing is wrong with the session: it continues once a later choird runs again, which a frozen one would not.
  if (newer !== undefined && new_rev - newer.rev >= NEWER_EVENTS_MAX) return { type: "frozen" }
  const folding = problem === undefined ? split.known : []
  const folded = foldAll(at.state, folding)
  return Result.isFailure(folded)
    ? conflict(`event ${folded.failure.rev} does not fit: ${folded.failure.reason}`)
    : { type: "store", links: fresh, folded: folding, state: folded.success, newer, hash }
}
