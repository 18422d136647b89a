/** One log file that is written now (spec 22.2): whole lines are appended at once, and it gives way to a new one at a rotation. */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  writeSync
} from "node:fs"
import { LOG_CHUNK_BYTES } from "#src/shared/limits.ts"
import { descriptorPath, openFolder } from "#src/shared/nofollow.ts"

const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW
const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY
const LINE_FEED = 0x0a

/** Opens the folder below a home that `names` lead to, without following a link; missing folders are made, the home is not. */
export const openLogFolder = (home: string, names: ReadonlyArray<string>): number => {
  const root = openSync(home, FOLDER_FLAGS)
  try {
    return openFolder(root, names, { create: true, mode: 0o700 })
  } finally {
    closeSync(root)
  }
}

/** How full a file may get before it is archived. */
export interface LogFileLimits {
  readonly lines_max: number
  readonly bytes_max: number
}

export interface LogFile {
  /** Appends whole lines. What cannot be written is lost: a full disk stops nobody. */
  append(text: string, lines: number): void
  /** Whether the file reached a limit since it was opened or {@link LogFile.later} put that off. */
  isFull(limits: LogFileLimits): boolean
  /** Looks at the limits again only when as much as now came on top. */
  later(): void
  /** Moves the file, when it holds anything, to a name in an open folder; the next line begins a new one. Returns its bytes. */
  moveTo(folder: number, name: string): number
  /** Bytes of the file, as far as it is open. */
  bytes(): number
  close(): void
}

/** The lines of a file, and where the last whole one ends. */
const measure = (file: number) => {
  const chunk = Buffer.allocUnsafe(LOG_CHUNK_BYTES)
  let lines = 0
  let end = 0
  for (let offset = 0; ;) {
    const bytes = readSync(file, chunk, 0, chunk.length, offset)
    if (bytes === 0) return { lines, end, size: offset }
    for (let at = chunk.indexOf(LINE_FEED); at >= 0 && at < bytes; at = chunk.indexOf(LINE_FEED, at + 1)) {
      lines += 1
      end = offset + at + 1
    }
    offset += bytes
  }
}

/** Takes away what a write that failed, or a death, left of a line, so that every line of the file is whole. */
const writeWhole = (file: number, bytes: Buffer) => {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(file, bytes, written)
  } catch (error) {
    if (written > 0) ftruncateSync(file, Math.max(0, fstatSync(file).size - written))
    throw error
  }
}

interface Open {
  readonly descriptor: number
  bytes: number
  lines: number
}

/** A file `logs/<name>.log` of a home, readable by its owner alone. Opened with the first line. */
export const makeLogFile = (home: string, name: string): LogFile => {
  let file: Open | undefined
  const path = (folder: number) => `${descriptorPath(folder)}/${name}.log`

  const within = <A>(use: (folder: number) => A): A => {
    const folder = openLogFolder(home, ["logs"])
    try {
      return use(folder)
    } finally {
      closeSync(folder)
    }
  }

  const open = (): Open => {
    const descriptor = within((folder) => openSync(path(folder), FLAGS, 0o600))
    const { end, lines, size } = measure(descriptor)
    if (end < size) ftruncateSync(descriptor, end)
    return { descriptor, bytes: end, lines }
  }

  const close = () => {
    if (file !== undefined) closeSync(file.descriptor)
    file = undefined
  }

  return {
    append: (text, lines) => {
      try {
        // A home that is not there is not made: that is what `choirctl init` is for.
        if (file === undefined && !existsSync(home)) return
        file ??= open()
        const bytes = Buffer.from(text)
        writeWhole(file.descriptor, bytes)
        file.bytes += bytes.length
        file.lines += lines
      } catch {
        // There is nowhere left to tell it.
      }
    },
    isFull: ({ bytes_max, lines_max }) => file !== undefined && (file.lines >= lines_max || file.bytes >= bytes_max),
    later: () => {
      if (file !== undefined) Object.assign(file, { bytes: 0, lines: 0 })
    },
    moveTo: (folder, to) => {
      file ??= within((logs) => existsSync(path(logs))) ? open() : undefined
      if (file === undefined) return 0
      const bytes = fstatSync(file.descriptor).size
      if (bytes === 0) return 0
      within((logs) => renameSync(path(logs), `${descriptorPath(folder)}/${to}`))
      close()
      return bytes
    },
    bytes: () => file?.bytes ?? 0,
    close
  }
}
