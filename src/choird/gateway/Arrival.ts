/** A message of a person as every channel hands it on: the words, and what the channel says beside them. Data alone. */
import type { SentAs } from "#src/choird/queues/Outbox.ts"
import type { SharedItem } from "./SharedItem.ts"
import type { IncomingFile } from "./IncomingFile.ts"

/** The group that a message was written in. */
export interface Group {
  readonly chat_id: string
  /** The writer as the group knows them; any text. */
  readonly writer: string
  /** Whether it is for the bot: it mentions it, replies to it, or is a command for it. */
  readonly addressed: boolean
}

/** The first writer of some words. Every name is any text that somebody chose. */
export interface Origin {
  /**
   * `hidden` is an account that does not let itself be named; `self` the person who sends, `own` the bot; `through` a bot that made the message for the
   * person.
   */
  readonly kind: "person" | "hidden" | "bot" | "through" | "group" | "channel" | "self" | "own"
  readonly name?: string
  /** The name by which the channel finds it, without a sign before it. */
  readonly handle?: string
  /** The author that a group or a channel names. */
  readonly signature?: string
  readonly written_ms?: number
}

/** The earlier message that a message replies to. */
export interface Quoted {
  readonly by: Origin
  /** Its words, or the part of them that the person chose. Absent where it has none, or where the channel does not tell them. */
  readonly text?: string
  readonly is_part?: boolean
  /** The chat that it is in, where that is another one. */
  readonly elsewhere?: string
  readonly file?: Pick<IncomingFile, "kind" | "name">
  readonly item?: SharedItem
}

/** A message of a person, as far as it could be read. */
export interface Arrival {
  /** Its id, unique within the gateway. */
  readonly id: string
  readonly user_id: string
  /** Its words, with the addresses of links. Absent if it is nothing that can be read. */
  readonly text: string | undefined
  /** The file of the message, whose text is the caption. */
  readonly file?: IncomingFile
  /** The thing that the message shares instead of words. */
  readonly item?: SharedItem
  /** True if somebody else wrote it: it was forwarded, or another bot made it. */
  readonly forwarded?: boolean
  /** The writer of a forwarded message. */
  readonly origin?: Origin
  /** It is the new text of an earlier message. */
  readonly edited?: boolean
  /** The message that it replies to. */
  readonly quoted?: Quoted
  /** The message of the bot's own that it replies to. */
  readonly reply_on?: SentAs
  /** Absent in a private chat. */
  readonly group?: Group
  /** Its number in the chat. */
  readonly message_id?: number
  /** The album that its file is part of. */
  readonly album?: string
  /** The topic of the chat that it was written in. */
  readonly thread_id?: number
  /** When the person sent it, and when choird read it. */
  readonly sent_ms?: number
  readonly read_ms?: number
}
