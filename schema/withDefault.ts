/** Keys of config.json with their defaults. */
import { Effect, Schema } from "effect"

/** Shown in the JSON Schema as well as filled in, so that an editor tells what an absent key means. */
export const withDefault = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema.pipe(Schema.annotateEncoded({ default: value })) as S)
