/** The space on a disk, compared with what is to be written there before it is begun. */
import { statfsSync } from "node:fs"
import { Effect } from "effect"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"

/** Fails where a folder's disk has less than `needed` bytes free. A disk that does not tell is taken to have them. */
export const requireSpace = (folder: string, needed: number) =>
  Effect.suspend(() => {
    const free = freeBytes(folder)
    return free === undefined || free >= needed
      ? Effect.void
      : failed(
          "DISK_FULL",
          `the disk of ${folder} has ${bytesText(free)} free, and this needs about ${bytesText(needed)}`,
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
