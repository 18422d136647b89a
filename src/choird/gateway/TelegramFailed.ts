/** The failure of a call of the Bot API. */
import { Schema } from "effect"

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
        ? ": the bot's token is wrong or was revoked, set it with choirctl secret set, then choirctl secret apply"
        : this.code === 409
          ? ": another program polls with the same token, stop it or get a new token"
          : ""
    return `Telegram ${this.method}: ${this.code === 0 ? "" : `${this.code} `}${this.description}${fix}`
  }
}
