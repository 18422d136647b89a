/** A call that a messenger refused, or that got no usable answer, as whatever does not know the messenger reads it. Pure. */
import { Schema } from "effect"

export class ChannelFailed extends Schema.TaggedError<ChannelFailed>()("ChannelFailed", {
  /** The channel's reason, in words for a person. */
  description: Schema.String,
  /** Whether another attempt cannot help. */
  is_final: Schema.Boolean,
  /** The wait that the messenger asks for. */
  retry_after_ms: Schema.NullOr(Schema.Natural)
}) {
  override get message() {
    return this.description
  }
}
