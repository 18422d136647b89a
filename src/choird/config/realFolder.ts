/** One name for a folder that has several: configurations write links, `..` and trailing slashes. */
import { realpathSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Result } from "effect"

/** The path without links, `..` and trailing slashes. Of a missing one the nearest folder above it that exists is resolved. */
export const realOf = (path: string): string => {
  const full = resolve(path)
  const parent = dirname(full)
  return Result.getOrElse(
    Result.try(() => realpathSync(full)),
    () => (parent === full ? full : join(realOf(parent), basename(full)))
  )
}
