/** Small files that are replaced as a whole: those that choird keeps in its home, and the unit of systemd. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"

const OWNER_ONLY = 0o600

/** Replaces or creates a file. Readers see the old text or the new one, also after a crash. Throws what the system says. */
export const writeWhole = (place: string, text: string, mode = OWNER_ONLY): void => {
  const fresh = join(dirname(place), `.${basename(place)}.new`)
  rmSync(fresh, { force: true })
  const descriptor = openSync(fresh, "wx", mode)
  try {
    // One write may take a part and say nothing, as on a disk that is nearly full.
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(fresh, place)
}
