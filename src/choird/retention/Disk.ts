import { statfs } from "node:fs/promises"
import { Context, Effect, Layer } from "effect"

/** Bytes of a file system, as a user without special rights may use them. */
export interface Space {
  readonly free_bytes: number
  readonly total_bytes: number
}

/** The file systems of this host. */
export class Disk extends Context.Service<
  Disk,
  {
    /** Of the file system that a path is on; `undefined` where it does not say. */
    space(path: string): Effect.Effect<Space | undefined>
  }
>()("choir/choird/Disk") {
  static readonly layer = Layer.succeed(Disk, {
    space: (path) =>
      Effect.promise(() =>
        statfs(path).then(
          ({ bavail, blocks, bsize }) => ({ free_bytes: bavail * bsize, total_bytes: blocks * bsize }),
          () => undefined
        )
      )
  })
}
