/** The members of a backup as files in a folder of their own, new and empty, for their owner alone. */
import { closeSync, fchmodSync, fsyncSync, futimesSync, mkdirSync, openSync, symlinkSync, writeSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Destination } from "./ArchiveReader.ts"

const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

/** The reader lets through no name that leads out of the folder, and none below a link. */
export const unpackedInto = (folder: string): Destination => ({
  file: (name, mode) => {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE })
    const descriptor = openSync(path, "wx", FILE_MODE)
    return {
      write: (piece) => {
        for (let written = 0; written < piece.length;) written += writeSync(descriptor, piece, written)
      },
      end: (mtime) => {
        fchmodSync(descriptor, mode)
        futimesSync(descriptor, mtime, mtime)
        fsyncSync(descriptor)
        closeSync(descriptor)
      }
    }
  },
  folder: (name) => void mkdirSync(join(folder, name), { recursive: true, mode: FOLDER_MODE }),
  link: (name, target) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true, mode: FOLDER_MODE })
    symlinkSync(target, join(folder, name))
  }
})
