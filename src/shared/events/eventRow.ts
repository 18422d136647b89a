/** A row of `session_events`: what its chain is proved from, and the event that it holds. Shared by choird and the reader of backups. */
import { Option, Result, Schema } from "effect"
import {
  ChoirEvent,
  EVENT_VERSION,
  type Forgotten,
  isKnownEvent,
  OpaqueEvent,
  Salt,
  type SentEvent
} from "#schema/Event.ts"
import { IsoInstant, LaneId } from "#schema/Ids.ts"
import { chainedText, type Envelope, hex, type Link, payloadDigest } from "./hashChain.ts"
import { packPayload, unpackPayload } from "./storedPayload.ts"

/** As it is stored. A row of before migration 0009 has its whole text in `canonical`, and of the rest only place and digest count. */
export interface EventRow {
  readonly rev: number
  readonly v: number | null
  readonly event_type: string
  readonly lane: string
  readonly created_at: string
  readonly salt: Uint8Array | null
  /** Of a payload that was reduced: the digest that the chain has. */
  readonly payload_digest: Uint8Array | null
  readonly body: Uint8Array | null
  readonly canonical: string | null
  readonly hash: Uint8Array
}

/** The row of a chained event. */
export const rowOf = ({ event, hash, payload }: Link<SentEvent>): EventRow => ({
  rev: event.rev,
  v: event.v,
  event_type: event.event_type,
  lane: event.lane,
  created_at: event.created_at,
  salt: event.salt === undefined ? null : Buffer.from(event.salt, "hex"),
  payload_digest:
    "payload_digest" in event && event.payload_digest !== undefined ? Buffer.from(event.payload_digest, "hex") : null,
  body: packPayload(payload),
  canonical: null,
  hash
})

/** The texts of a row before it is taken for an event. */
export interface RowText {
  /** The text that the chain covers. */
  readonly chained: string
  /** Absent in a row of before migration 0009, whose payload is in the chained text. */
  readonly payload?: string
  readonly envelope?: Envelope
}

const SALT_BYTES = 16

/** The texts of a row, or why it has none. */
export const readRow = (row: EventRow): Result.Result<RowText, string> => {
  const { body, canonical, created_at, event_type, lane, payload_digest, rev, salt, v } = row
  if (canonical !== null) return Result.succeed({ chained: canonical })
  if (v === null || body === null) return Result.fail("the row has neither text nor payload")
  if (salt !== null && salt.length !== SALT_BYTES) return Result.fail(`its salt has ${salt.length} bytes`)
  const read = unpackPayload(body)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const payload = read.success
  const digest = payload_digest === null ? undefined : hex(payload_digest)
  const envelope = { v, rev, event_type, lane, created_at, salt: salt ?? undefined, payload_digest: digest }
  return Result.succeed({ chained: chainedText(envelope, payload), payload, envelope })
}

/** An event of a version, type or payload that a later Choir writes. It is kept and chained, and nobody here knows what it does (D53). */
export interface NewerEvent {
  readonly rev: number
  readonly v: number
  readonly event_type: string
}

/** Why a row is not an event: its text is wrong, or a later Choir wrote it. */
export interface NoEvent {
  readonly reason: string
  readonly newer?: NewerEvent
}

const decodeOpaque = Schema.decodeUnknownOption(OpaqueEvent)

/** A row's texts as they are printed where their event is not known. */
export const opaqueOf = (text: RowText): OpaqueEvent | undefined =>
  Option.getOrUndefined(Option.flatMap(Result.getSuccess(valueOf(text)), decodeOpaque))

/** Strict, so that what the log holds is what an agent may send. */
const decodeEvent = Schema.decodeUnknownResult(ChoirEvent, { onExcessProperty: "error" })

/** The envelope that every Choir writes around a payload of version 2. */
const isEnveloped = Schema.is(
  Schema.Struct({
    ...OpaqueEvent.fields,
    v: Schema.Literal(EVENT_VERSION),
    lane: LaneId,
    created_at: IsoInstant,
    salt: Salt
  })
)

/**
 * The event of a later Choir, for a value that is not an event here. A payload of a known type may be one too, since a version only
 * gains fields and literals; choird takes none from an agent that it cannot decode. Version 1 gains nothing more.
 */
const newerIn = (value: unknown): NewerEvent | undefined => {
  const { event_type, rev, v } = Object(value) as { readonly [Key in keyof NewerEvent]: unknown }
  if (typeof v !== "number" || typeof event_type !== "string" || typeof rev !== "number") return undefined
  return isKnownEvent({ v, event_type }) && !isEnveloped(value) ? undefined : { rev, v, event_type }
}

const parse = (text: string): Result.Result<unknown, NoEvent> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => ({ reason: "its text is not JSON" }) })

const textOf = (salt: string | Uint8Array): string =>
  typeof salt === "string" ? salt : Buffer.from(salt.buffer, salt.byteOffset, salt.byteLength).toString("hex")

/** The value of a row's texts, as it is sent and printed. */
export const valueOf = (text: RowText): Result.Result<unknown, NoEvent> => {
  const { chained, envelope } = text
  if (envelope === undefined || text.payload === undefined) return parse(chained)
  const parsed = parse(text.payload)
  if (Result.isFailure(parsed)) return parsed
  const { created_at, event_type, lane, payload_digest, rev, v } = envelope
  const payload = parsed.success
  if (envelope.salt === undefined) return Result.succeed({ v, rev, event_type, lane, payload, created_at })
  const salt = textOf(envelope.salt)
  return Result.succeed(
    payload_digest === undefined
      ? { v, rev, event_type, lane, payload, created_at, salt }
      : { v, rev, event_type, lane, payload, created_at, salt, payload_digest }
  )
}

/** The event of a row's texts. */
export const eventOf = (text: RowText): Result.Result<ChoirEvent, NoEvent> => {
  const value = valueOf(text)
  if (Result.isFailure(value)) return Result.fail(value.failure)
  const event = decodeEvent(value.success)
  if (Result.isSuccess(event)) return Result.succeed(event.success)
  const newer = newerIn(value.success)
  return Result.fail(
    newer === undefined
      ? { reason: "its text is not an event" }
      : { reason: `a later Choir wrote it (version ${newer.v}, ${newer.event_type})`, newer }
  )
}

const decodeInPart = Schema.decodeUnknownOption(ChoirEvent)

/** The known part of an event, also of one with fields that a later Choir added. */
export const knownPartOf = (text: RowText): ChoirEvent | undefined =>
  Option.getOrUndefined(Option.flatMap(Result.getSuccess(valueOf(text)), decodeInPart))

/** The problem of a payload that is not the one that was committed, and that no event lists. */
export const UNLISTED = "its payload was changed, and no later event lists the change"

/**
 * The payloads of a log that were reduced, as a reader meets them. Each has to be listed by a later event, with the digest of what is
 * left of it (D52); any other change is a broken chain.
 */
export class ForgottenPayloads {
  readonly #unlisted = new Map<number, string>()
  #count = 0

  /** Takes the next row, and its event as far as it is known. */
  row(text: RowText, event: ChoirEvent | undefined): void {
    const { envelope, payload } = text
    if (envelope?.payload_digest !== undefined && payload !== undefined)
      this.#unlisted.set(envelope.rev, payloadDigest(envelope.salt ?? "", payload))
    if (event?.event_type !== "MemoryWriteCommitted" || event.payload.action !== "forget") return
    for (const listed of event.payload.forgotten ?? []) this.#list(listed)
  }

  #list({ new_digest, rev }: Forgotten): void {
    if (this.#unlisted.get(rev) !== new_digest) return
    this.#unlisted.delete(rev)
    this.#count += 1
  }

  /** How many were reduced and listed. */
  get count(): number {
    return this.#count
  }

  /** The first one that no event lists. */
  get unlisted(): number | undefined {
    return this.#unlisted.size === 0 ? undefined : Math.min(...this.#unlisted.keys())
  }
}
