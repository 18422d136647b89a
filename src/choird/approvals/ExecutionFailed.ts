/** The failure of an execution, which changed nothing unless `reason` says otherwise. */
import { Schema } from "effect"

export class ExecutionFailed extends Schema.TaggedError<ExecutionFailed>()("ExecutionFailed", {
  /**
   * `CHANGED`: the state that the person saw is no longer there (R54). `UNREADABLE`: this version does not know the form of the row.
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
