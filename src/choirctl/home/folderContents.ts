/** How much a folder holds, counted before it is emptied or copied. */
import { lstat, opendir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { bytesText } from "#src/shared/text/bytesText.ts"

/** Counting stops here: a person who is asked learns nothing more from a larger number. */
const FILES_COUNTED_MAX = 100_000

interface Contents {
  files: number
  bytes: number
  /** A folder could not be read, or there are more than FILES_COUNTED_MAX files. */
  partial: boolean
}

const count = async (folder: string, found: Contents): Promise<void> => {
  const entries = await opendir(folder).catch(() => undefined)
  if (entries === undefined) return void (found.partial = true)
  for await (const entry of entries) {
    if (found.files >= FILES_COUNTED_MAX) return void (found.partial = true)
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      await count(path, found)
      continue
    }
    found.files += 1
    found.bytes += await lstat(path).then(
      ({ size }) => size,
      () => 0
    )
  }
}

/** How much a folder holds; links are counted and not followed. */
export const measureFolder = (folder: string) =>
  Effect.promise(async (): Promise<Readonly<Contents>> => {
    const found: Contents = { files: 0, bytes: 0, partial: false }
    await count(folder, found)
    return found
  })

/** `3 files (1.2 MiB)`. */
export const folderContents = (folder: string) =>
  Effect.map(measureFolder(folder), ({ bytes, files, partial }) => {
    const counted = files === 1 ? "1 file" : `${files} files`
    return `${partial ? "at least " : ""}${counted} (${bytesText(bytes)})`
  })
