/** Strict decoding of files: unknown keys are errors, and all problems are reported at once, by path and never by value. */
import { Effect, Result, Schema } from "effect"
import { mistakesOf } from "./configMistakes.ts"

export class InvalidFile extends Schema.TaggedError<InvalidFile>()("InvalidFile", {
  path: Schema.String,
  problems: Schema.String
}) {
  override get message() {
    return `${this.path} is not valid:\n${this.problems}`
  }
}

/** The problems once more with what was probably meant; they have no lines, since a caller may have written the text itself. */
const problemsIn = (schema: Schema.Top, text: string, message: string): string =>
  Result.match(
    Result.try((): unknown => JSON.parse(text)),
    {
      onFailure: () => message,
      onSuccess: (value) => mistakesOf(schema, value, message).join("\n")
    }
  )

export const decodeFile = <S extends Schema.Constraint & Schema.Top>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema), {
    errors: "all",
    onExcessProperty: "error"
  })
  return (path: string, text: string) =>
    Effect.mapError(
      decode(text),
      (error) => new InvalidFile({ path, problems: problemsIn(schema, text, error.message) })
    )
}
