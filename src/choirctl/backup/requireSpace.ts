/** The space on a disk, compared with what is to be written there before it is begun. */
import { statfsSync } from "node:fs"
import { Effect } from "effect"
import { failed } from "#src/choirctl/failure.ts"
import { sizeText } from "#src/choirctl/render/size.ts"

/** Fails where a folder's disk has less than `needed` bytes free. A disk that does not tell is taken to have them. */
export const requireSpace = (folder: string, needed: number) =>
  Effect.suspend(() => {
    const free = freeBytes(folder)
    return free === undefined || free >= needed
      ? Effect.void
      : failed(
          "DISK_FULL",
          `the disk of ${folder} has ${sizeText(free)} free, and this needs about ${sizeText(needed)}`,
          "make room on it, or choose a place on another disk"
        )
  })

const freeBytes = (folder: string): number | undefined => {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return undefined
  }
}
