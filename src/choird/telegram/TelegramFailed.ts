/** The failure of a call of the Bot API, and what follows from it. Pure. */
import { Schema } from "effect"
import { CHANNEL_RETRY_MS, CHANNEL_RETRY_MS_MAX } from "#src/choird/gateway/tolerant.ts"

/** A call that Telegram refused or that got no usable answer. */
export class TelegramFailed extends Schema.TaggedError<TelegramFailed>()("TelegramFailed", {
  method: Schema.String,
  /** The Bot API's error code, or 0 if it did not answer. */
  code: Schema.Int,
  description: Schema.String,
  retry_after_ms: Schema.NullOr(Schema.Natural),
  /** The new id of a group that became a supergroup. */
  migrated_to: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const fix =
      this.code === 401 || this.code === 404
        ? ": the bot's token is wrong or was revoked; set a new one with choirctl secret set, then run choirctl secret apply"
        : this.code === 409
          ? ": another program is polling with the same token; stop it or get a new token"
          : ""
    return `Telegram ${this.method}: ${this.code === 0 ? "" : `${this.code} `}${this.description}${fix}`
  }
}

/** The longest retry_after of Telegram that is waited out in one piece. */
const TELEGRAM_RETRY_AFTER_MS_MAX = 600_000
/** The wait after the n-th failure in a row, from 0: doubling up to a minute, unless Telegram asks for a different one. */
export const pauseAfter = ({ retry_after_ms }: Pick<TelegramFailed, "retry_after_ms">, failures: number): number =>
  retry_after_ms === null
    ? Math.min(CHANNEL_RETRY_MS * 2 ** Math.min(failures, 10), CHANNEL_RETRY_MS_MAX)
    : Math.min(Math.max(retry_after_ms, CHANNEL_RETRY_MS), TELEGRAM_RETRY_AFTER_MS_MAX)

/** The chat will never come back: the group or the account is gone, or the bot was put out of it. */
export const isGone = ({ code, description }: TelegramFailed) =>
  (code === 403 || code === 400) &&
  /user is deactivated|bot was kicked|bot is not a member|(?:group )?chat was deleted|chat_id is empty/iu.test(
    description
  )

/**
 * The person cannot be reached: has never written to the bot, or has blocked it, or the chat lets the bot write nothing, whatever its form. Somebody may
 * change that.
 */
export const isUnreachable = ({ code, description }: TelegramFailed) =>
  code === 403 ||
  (code === 400 &&
    /chat not found|rights to send (?:text messages|a message)|CHAT_(?:WRITE|SEND_PLAIN)_FORBIDDEN|CHAT_RESTRICTED/iu.test(
      description
    ))

/** Telegram will never accept this text or file, and everything behind it would wait forever. */
export const isHopeless = (failure: TelegramFailed) =>
  failure.code === 413 || (failure.code === 400 && !isUnreachable(failure))
