/**
 * The JSON of files that an agent may have written, such as skills and manifests. choird reads them on its one thread, so that neither their nesting
 * nor the number of their mistakes may make that long. Pure.
 */
import { Result, Schema } from "effect"
import { isDeeperThan } from "#src/shared/text/canonicalJson.ts"

/** How deep such a file may nest: whatever walks through it later does so by recursion. */
const FILE_DEPTH_MAX = 100
/** Files up to this size get a list of all their problems; the list of a longer one could be a hundred times as long as the file. */
const ALL_PROBLEMS_BYTES_MAX = 32 * 1024

/** Why a value may not be looked at any further; `undefined` where it may. */
export const depthProblem = (value: unknown): string | undefined =>
  isDeeperThan(value, FILE_DEPTH_MAX) ? `it nests deeper than ${FILE_DEPTH_MAX} levels` : undefined

/** A strict decoder that names all problems of a value, or the first one where its text has too many `bytes`. */
export const decodeBounded = <S extends Schema.Constraint & { readonly DecodingServices: never }>(schema: S) => {
  const decode = Schema.decodeUnknownResult(schema, { onExcessProperty: "error" })
  return (value: unknown, bytes: number): Result.Result<S["Type"], { readonly message: string }> => {
    const deep = depthProblem(value)
    if (deep !== undefined) return Result.fail({ message: deep })
    return decode(value, { errors: bytes <= ALL_PROBLEMS_BYTES_MAX ? "all" : "first", onExcessProperty: "error" })
  }
}
