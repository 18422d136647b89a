/** Small files that choird keeps in its home. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"

/** Replaces or creates a file, 0600. Readers see the old text or the new one, also after a crash. Throws what the system says. */
export const writeWhole = (place: string, text: string): void => {
  const fresh = join(dirname(place), `.${basename(place)}.new`)
  rmSync(fresh, { force: true })
  const descriptor = openSync(fresh, "wx", 0o600)
  try {
    // One write may take a part and say nothing, as on a disk that is nearly full.
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(fresh, place)
}
