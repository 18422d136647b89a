/** The input of a skill or a tool, as a person gives it. */
import { Effect, FileSystem, Result, Schema } from "effect"
import { usageError } from "#src/choirctl/terminal/failure.ts"

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** Bytes of a file that holds an input. */
const INPUT_BYTES_MAX = 64 * 1024

/** The value that is given as JSON, or by a file that holds it. */
export const inputOf = Effect.fnUntraced(function* (given: string) {
  const own = decodeJson(given)
  if (Result.isSuccess(own)) return own.success
  const fs = yield* FileSystem.FileSystem
  const fix = "give JSON, or a file that holds it"
  const { size } = yield* Effect.mapError(fs.stat(given), () => usageError(`${given} is neither JSON nor a file`, fix))
  if (size > BigInt(INPUT_BYTES_MAX)) return yield* usageError(`${given} has more than ${INPUT_BYTES_MAX} bytes`, fix)
  const text = yield* Effect.mapError(fs.readFileString(given), () => usageError(`${given} cannot be read`, fix))
  const read = decodeJson(text)
  return Result.isSuccess(read) ? read.success : yield* usageError(`${given} does not hold JSON`, fix)
})
