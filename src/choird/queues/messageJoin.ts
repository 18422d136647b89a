/**
 * Messages that belong together: the pieces of a text that was too long for one message, and the files of an album. Their channel sends
 * them apart, so the first is held in the inbox until the last has come. Pure.
 */
import type { Attachment } from "#schema/Event.ts"
import { isTooLong } from "./chatTextLimit.ts"

/** The longest hold of a message for further pieces, from its first one on. */
export const JOIN_MS_MAX = 30_000
/** Pieces of one message. */
const JOIN_PARTS_MAX = 100
/** Files of one message; Telegram's albums have ten. */
const JOIN_FILES_MAX = 20

/** The group that a message may belong to. */
export interface Join {
  /** The person and the place in the chat. A message of the same sender that does not continue the held one ends the hold. */
  readonly sender: string
  /** Messages of one sender with the same key, one after the other, are one. So is a piece with the first words of a held message's key. */
  readonly key: string
  /** The text that it adds to the message that it continues. */
  readonly text: string
  /** The characters between this text and the next one. */
  readonly glue: string
  /** How long the next piece is waited for; 0 if this is the last one. */
  readonly quiet_ms: number
}

/** A message that is held, as far as its pieces have come. */
export interface Held {
  readonly text: string
  readonly attachments: ReadonlyArray<typeof Attachment.Type>
  readonly joining: {
    readonly sender: string
    readonly key: string
    readonly glue: string
    readonly parts: number
    readonly since_ms: number
  }
}

/** A first piece as it is held; undefined if nothing can follow it. */
export const opened = ({ glue, key, quiet_ms, sender }: Join, now_ms: number): Held["joining"] | undefined =>
  quiet_ms === 0 ? undefined : { sender, key, glue, parts: 1, since_ms: now_ms }

/** Whether a piece may continue what is held: the reply that a text is stands on its first piece, and on some apps on all. */
const continues = (held: string, piece: string): boolean => held === piece || held.startsWith(`${piece}/`)

/** The held message with one more piece; undefined if the piece is not of it, or no longer fits into one message. */
export const joined = (
  { attachments, joining, text }: Held,
  piece: Join,
  files: Held["attachments"]
): Held | undefined => {
  if (!continues(joining.key, piece.key) || joining.sender !== piece.sender) return undefined
  const whole = {
    text: text === "" || piece.text === "" ? `${text}${piece.text}` : `${text}${joining.glue}${piece.text}`,
    attachments: [...attachments, ...files],
    joining: { ...joining, glue: piece.glue, parts: joining.parts + 1 }
  }
  const fits =
    whole.joining.parts <= JOIN_PARTS_MAX && whole.attachments.length <= JOIN_FILES_MAX && !isTooLong(whole.text)
  return fits ? whole : undefined
}

/** Until when the next piece is waited for, which is not past the limit of the whole. */
export const heldUntil = ({ since_ms }: Held["joining"], quiet_ms: number, now_ms: number): number =>
  Math.min(now_ms + quiet_ms, since_ms + JOIN_MS_MAX)
