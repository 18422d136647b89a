/**
 * The chain over a session's events (D5): `h0 = SHA-256("choir/1" ‖ session_id)`,
 * `hn = SHA-256(h(n-1) ‖ u64be(rev) ‖ JCS(event))`. It proves order and integrity against faults and later edits, not the
 * honesty of an agent that lies from the start. Synchronous, because the arbiter's commit is.
 */
import { createHash, hash } from "node:crypto"
import type { ChoirEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { canonicalJson } from "./canonicalJson.ts"
import { LINK_ROOM_BYTES } from "./limits.ts"

/** The digest that stands before the first event. */
export const genesis = (session: SessionId): Buffer => createHash("sha256").update("choir/1").update(session).digest()

/** Where the bytes of a digest are put together, since nothing else runs meanwhile; a longer text takes memory of its own. */
const ROOM = Buffer.allocUnsafeSlow(LINK_ROOM_BYTES)

/** The digest of the event with this canonical text at this revision. */
export const link = (previous: Uint8Array, rev: number, canonical: string): Buffer => {
  const head = previous.length + 8
  // A unit of a text takes at most three bytes.
  const most = head + 3 * canonical.length
  const bytes = most <= ROOM.length ? ROOM : Buffer.allocUnsafeSlow(most)
  bytes.set(previous)
  bytes.writeBigUInt64BE(BigInt(rev), previous.length)
  const end = head + bytes.write(canonical, head)
  // By way of text, since Node takes such a Buffer from its pool: a digest's own memory costs more than the digest.
  return Buffer.from(hash("sha256", bytes.subarray(0, end), "hex"), "hex")
}

/** An event with its canonical text and its digest. */
export interface Link {
  readonly event: ChoirEvent
  readonly canonical: string
  readonly hash: Buffer
}

export const chain = (previous: Uint8Array, event: ChoirEvent): Link => {
  const canonical = canonicalJson(event)
  return { event, canonical, hash: link(previous, event.rev, canonical) }
}

export const hex = (digest: Uint8Array): string => Buffer.from(digest).toString("hex")

/** The SHA-256 of text or bytes in lowercase hex. */
export const sha256 = (data: string | Uint8Array): string => hash("sha256", data, "hex")
