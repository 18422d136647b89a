/** Strict decoding of files: unknown keys are errors, and all problems are reported at once, by path and never by value. */
import { Effect, Schema } from "effect"

export class InvalidFile extends Schema.TaggedError<InvalidFile>()("InvalidFile", {
  path: Schema.String,
  problems: Schema.String
}) {
  override get message() {
    return `${this.path} is not valid:\n${this.problems}`
  }
}

export const decodeFile = <S extends Schema.Constraint>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema), {
    errors: "all",
    onExcessProperty: "error"
  })
  return (path: string, text: string) =>
    Effect.mapError(decode(text), (error) => new InvalidFile({ path, problems: error.message }))
}
