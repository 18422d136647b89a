import { Context, Effect, Layer } from "effect"
import { countsFiles } from "#src/shared/config/diskLimit.ts"
import type { StatsFs } from "node:fs"
import { statfs } from "node:fs/promises"

/** Bytes and files of a file system, as a user without special rights may use them. */
export interface Space {
  readonly free_bytes: number
  readonly total_bytes: number
  /** Absent where the file system has no number of files. */
  readonly files?: { readonly free: number; readonly total: number }
}

/** The space of a file system by its own numbers. */
export const spaceOf = ({ bavail, blocks, bsize, ffree, files }: StatsFs): Space => ({
  free_bytes: bavail * bsize,
  total_bytes: blocks * bsize,
  ...(countsFiles({ ffree, files }) ? { files: { free: ffree, total: files } } : {})
})

/** The file systems of this host. */
export class Disk extends Context.Service<
  Disk,
  {
    /** The space of the file system that a path is on; `undefined` where it is not reported. */
    space(path: string): Effect.Effect<Space | undefined>
  }
>()("choir/choird/Disk") {
  static readonly layer = Layer.succeed(Disk, {
    space: (path) => Effect.promise(() => statfs(path).then(spaceOf, () => undefined))
  })
}
