/** How a longer command tells what it does, a JSON document a line. */
import { Schema } from "effect"
import { ErrorDetail } from "./ApiError.ts"

/** Steps as they happen; the last line carries the result, or why there is none. */
export const Progress = <S extends Schema.Top>(result: S) =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("step"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("done"), result }),
    Schema.Struct({
      type: Schema.Literal("failed"),
      error: ErrorDetail,
      /** Where in a file, by its dotted path, and why; empty `path` where the file as a whole is meant. */
      problems: Schema.optionalKey(Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })))
    })
  ])
