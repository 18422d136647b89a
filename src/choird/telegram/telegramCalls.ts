/** The common parts of calls of the Bot API: where a message goes, and how a call is made. */
import { type Effect, Predicate } from "effect"
import type { TelegramFailed } from "./TelegramFailed.ts"

/** A place in a chat: a topic of it, and the message that is quoted. */
export interface Target {
  readonly chat_id: string
  readonly thread_id?: number | undefined
  readonly reply_to?: number | undefined
}

/** A file with its bytes. */
export interface Upload {
  readonly name: string
  readonly bytes: Uint8Array
}

/** The parameters of a target; a quoted message that is gone does not keep the answer back. */
export const placeOf = ({ reply_to, thread_id }: Target) => ({
  ...(thread_id === undefined ? {} : { message_thread_id: thread_id }),
  ...(reply_to === undefined ? {} : { reply_parameters: { message_id: reply_to, allow_sending_without_reply: true } })
})

/** The id of a message in Telegram's answer. */
export const messageIdOf = (sent: unknown): string | undefined =>
  Predicate.hasProperty(sent, "message_id") && Number.isInteger(sent.message_id) ? String(sent.message_id) : undefined

/** The client declares its own AbortSignal type, which the platform's satisfies, and which no declaration of the library may need. */
export const foreign = (signal: AbortSignal) => signal as never

export type Call = <A>(
  method: string,
  ms_max: number,
  run: (signal: AbortSignal) => Promise<A>
) => Effect.Effect<A, TelegramFailed>
