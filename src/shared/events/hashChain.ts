/**
 * The chain over a session's events (D5): `h0 = SHA-256("choir/1" ‖ session_id)`, `hn = SHA-256(h(n-1) ‖ u64be(rev) ‖ JCS(n))`. Of an
 * event of version 1, `JCS(n)` is the event; of version 2 it is the header, in which a salted digest replaces the payload, so that
 * a payload can be reduced later (D52). It proves order and integrity against faults and later edits, not the honesty of an agent
 * that lies from the start. Synchronous, because the arbiter's commit is.
 */
import { createHash, hash } from "node:crypto"
import type { ChoirEvent, SentEvent } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

/** Memory in which the digests of events are put together, kept for good: enough for all but a few of them. */
export const DIGEST_BUFFER_BYTES = 64 * 1024

/** The digest that is before the first event. */
export const genesis = (session: SessionId): Buffer => createHash("sha256").update("choir/1").update(session).digest()

/** Where the bytes of a digest are put together, since nothing else runs meanwhile; a longer text takes memory of its own. */
const BUFFER = Buffer.allocUnsafeSlow(DIGEST_BUFFER_BYTES)

/** Memory for a head and a text, of which a unit takes at most three bytes. */
const bufferFor = (head: number, text: string): Buffer => {
  const most = head + 3 * text.length
  return most <= BUFFER.length ? BUFFER : Buffer.allocUnsafeSlow(most)
}

/** The digest of the event with this chained text at this revision. */
export const nextDigest = (previous: Uint8Array, rev: number, text: string): Buffer => {
  const head = previous.length + 8
  const bytes = bufferFor(head, text)
  bytes.set(previous)
  bytes.writeBigUInt64BE(BigInt(rev), previous.length)
  const end = head + bytes.write(text, head)
  // By way of text, since Node takes such a Buffer from its pool: a digest's own memory costs more than the digest.
  return Buffer.from(hash("sha256", bytes.subarray(0, end), "hex"), "hex")
}

/** An event without its payload, of a version that this program knows or a later one. */
export interface Envelope {
  readonly v: number
  readonly rev: number
  readonly event_type: string
  readonly lane: string
  readonly created_at: string
  /** Its bytes, or their hex; absent in version 1. */
  readonly salt?: string | Uint8Array | undefined
  /** The chain's digest of a payload that was reduced since. */
  readonly payload_digest?: string | undefined
}

/** Bytes of the salt that each event of version 2 has. */
export const SALT_BYTES = 16

/** `SHA-256(salt ‖ payload)` in hex, of a payload's canonical text. The salt is its bytes, or their hex. */
export const payloadDigest = (salt: string | Uint8Array, payload: string): string => {
  const bytes = bufferFor(SALT_BYTES, payload)
  const isText = typeof salt === "string"
  if (!isText) bytes.set(salt)
  const head = isText ? bytes.write(salt, 0, "hex") : salt.length
  return hash("sha256", bytes.subarray(0, head + bytes.write(payload, head)), "hex")
}

/** The canonical text that the chain covers, from the payload's canonical text. */
export const chainedText = (envelope: Envelope, payload: string): string => {
  const { created_at, event_type, lane, rev, salt = "", v } = envelope
  const digest = v === 1 ? "" : (envelope.payload_digest ?? payloadDigest(salt, payload))
  const covered = v === 1 ? `"payload":${payload}` : `"payload_digest":"${digest}"`
  return `{"created_at":${JSON.stringify(created_at)},"event_type":${JSON.stringify(event_type)},"lane":${JSON.stringify(lane)},${covered},"rev":${rev},"v":${v}}`
}

/** An event with its payload's canonical text, its size and its digest. */
export interface Link<E extends SentEvent = ChoirEvent> {
  readonly event: E
  readonly payload: string
  /** Canonical bytes of the payload, and of what is chained beside it. */
  readonly bytes: number
  readonly hash: Buffer
}

export const chainEvent = <E extends SentEvent>(previous: Uint8Array, event: E): Link<E> => {
  const payload = canonicalJson(event.payload)
  const text = chainedText(event, payload)
  const bytes = Buffer.byteLength(text) + (event.v === 1 ? 0 : Buffer.byteLength(payload))
  return { event, payload, bytes, hash: nextDigest(previous, event.rev, text) }
}

export const hex = (digest: Uint8Array): string => Buffer.from(digest).toString("hex")

/** The SHA-256 of text or bytes in lowercase hex. */
export const sha256 = (data: string | Uint8Array): string => hash("sha256", data, "hex")
