/**
 * The line of `session events --json`: the fields of an event and the chain's digest. The reasoning of models is left out of it unless somebody asks
 * for the whole proof (invariant 6): the digest of the payload as it was committed replaces it, so that order and header still hold.
 */
import type { ChoirEvent, OpaqueEvent } from "#schema/Event.ts"
import { isPrintedEvent, type LogLine } from "#schema/SessionsApi.ts"
import { payloadDigest } from "#src/shared/events/hashChain.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"

export type PrintedLine = (ChoirEvent | OpaqueEvent) & {
  readonly hash: string
  /** The parts of the payload that are left out. */
  readonly hidden?: ReadonlyArray<"continuation">
}

/** Everything that was committed. */
export const wholeEvent = (line: LogLine): PrintedLine =>
  isPrintedEvent(line) ? { ...line.event, hash: line.hash } : { ...line.opaque, hash: line.hash }

/** Without reasoning. The chain covers a payload of version 1 itself, which therefore stays whole; agents that keep reasoning write version 2. */
export const printedEvent = (line: LogLine): PrintedLine => {
  if (!isPrintedEvent(line) || line.event.event_type !== "ModelOutput") return wholeEvent(line)
  const { event, hash } = line
  const { payload, salt } = event
  if (payload.continuation === undefined || salt === undefined) return wholeEvent(line)
  const { continuation: _, ...shown } = payload
  const payload_digest = payloadDigest(salt, canonicalJson(payload))
  return { ...event, payload: shown, payload_digest, hidden: ["continuation"], hash }
}
