import { Schema } from "effect"

/** An action that did not work, in words for a model. */
export class ActionFailed extends Schema.TaggedError<ActionFailed>()("ActionFailed", {
  problem: Schema.String,
  /** Whether it may have begun to act. */
  is_unknown: Schema.Boolean
}) {
  override get message() {
    return this.problem
  }
}
