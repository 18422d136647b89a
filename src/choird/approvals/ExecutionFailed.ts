/** Why an approved proposal was not carried out; whatever it would have changed is as it was, or says so in `reason`. */
import { Schema } from "effect"

export class ExecutionFailed extends Schema.TaggedError<ExecutionFailed>()("ExecutionFailed", {
  /**
   * `CHANGED`: what the person saw is not what is there any more (R54). `UNREADABLE`: the row is not of a form that this version knows.
   */
  kind: Schema.Literals(["CHANGED", "UNREADABLE", "REPOSITORY", "BUILD", "AGENT", "CONFIG"]),
  reason: Schema.String
}) {
  override get message() {
    return `${this.kind}: ${this.reason}`
  }
}

export const failedAs =
  (kind: ExecutionFailed["kind"]) =>
  ({ message }: { readonly message: string }) =>
    new ExecutionFailed({ kind, reason: message })

export const changed = (reason: string) => new ExecutionFailed({ kind: "CHANGED", reason })

export const unreadable = (reason: string) =>
  new ExecutionFailed({
    kind: "UNREADABLE",
    reason: `the stored proposal cannot be read by this version of Choir, so the agent has to propose it again: ${reason}`
  })
