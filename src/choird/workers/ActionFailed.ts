import { Schema } from "effect"

/** An action that did not work, in words for a model. */
export class ActionFailed extends Schema.TaggedError<ActionFailed>()("ActionFailed", {
  problem: Schema.String,
  /** Whether it may have begun to act. */
  is_unknown: Schema.Boolean,
  /** Whether the proxy refused something meanwhile, so that it knows a better reason. */
  is_refused: Schema.optionalKey(Schema.Boolean),
  /** Where the page is from whose words the problem may be made. */
  place: Schema.optionalKey(Schema.Struct({ url: Schema.String, sites: Schema.Array(Schema.String) }))
}) {
  override get message() {
    return this.problem
  }
}
