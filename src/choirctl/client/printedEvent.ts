/** A line of `session events --json` and of an exported session. */
import type { ChoirEvent, OpaqueEvent } from "#schema/Event.ts"
import { isPrintedEvent, type LogLine } from "#schema/SessionsApi.ts"

/** The pinned line of `session events`: the fields of the event, verbatim, and the digest. */
export type PrintedLine = (ChoirEvent | OpaqueEvent) & { readonly hash: string }

export const printedEvent = (line: LogLine): PrintedLine =>
  isPrintedEvent(line) ? { ...line.event, hash: line.hash } : { ...line.opaque, hash: line.hash }
