/**
 * One log file that is written now: whole lines are gathered for a moment and appended by another thread, so that a slow disk never holds
 * up choird, and the file gives way to a new one at a rotation.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  write as writeFile,
  writeSync
} from "node:fs"
import { LOG_CHUNK_BYTES } from "#src/shared/limits.ts"
import { descriptorPath, openFolder } from "#src/shared/files/nofollow.ts"

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

/** How long lines are gathered before they are written. */
const GATHER_MS = 20
/** Lines that wait for a disk, in characters. What comes after them is dropped and counted. */
export const LOG_WAITING_CHARS_MAX = 4_194_304

export interface LogFile {
  /** Appends whole lines soon. What cannot be written is counted and lost: a full disk stops nobody. */
  append(text: string, lines: number): void
  /** Runs once all lines so far are in the file, or lost, and while nothing is being written. */
  whenWritten(then: () => void): void
  /** Writes what still waits at once, for a program that ends now. */
  writeNow(): void
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

/** How a log file is written; a test may be slower than a disk. */
export interface LogFileOptions {
  /** The line that tells of lost lines, as soon as one can be written again. */
  readonly lost?: (lines: number) => string
  /** Runs after each write, while nothing is being written. */
  readonly onWritten?: () => void
  readonly write?: typeof writeFile
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
const cut = (file: number, written: number) => {
  if (written > 0) ftruncateSync(file, Math.max(0, fstatSync(file).size - written))
}

const writeWhole = (file: number, bytes: Buffer) => {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(file, bytes, written)
  } catch (error) {
    cut(file, written)
    throw error
  }
}

interface Open {
  readonly descriptor: number
  bytes: number
  lines: number
}

/** A file `logs/<name>.log` of a home, readable by its owner alone. Opened with the first line. */
export const makeLogFile = (
  home: string,
  name: string,
  { lost = () => "", onWritten, write = writeFile }: LogFileOptions = {}
): LogFile => {
  let file: Open | undefined
  let texts: Array<string> = []
  const waiting = { chars: 0, lines: 0 }
  let lostLines = 0
  let busy = false
  let afterwards: Array<() => void> = []
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

  /** All that waits, after a word on what was lost. */
  const take = () => {
    const told = lostLines > 0 ? lost(lostLines) : ""
    const taken = { bytes: Buffer.from(told + texts.join("")), lines: waiting.lines, lost: lostLines }
    texts = []
    lostLines = 0
    Object.assign(waiting, { chars: 0, lines: 0 })
    return taken
  }
  type Taken = ReturnType<typeof take>

  // A home that is not there is not made: that is what `choirctl init` is for.
  const opened = () => (file === undefined && !existsSync(home) ? undefined : (file ??= open()))

  const count = (to: Open, { bytes, lines }: Taken) => {
    to.bytes += bytes.length
    to.lines += lines
  }
  const lose = (taken: Taken) => {
    lostLines += taken.lost + taken.lines
  }

  /** Busy until the last callback has run: what one of them appends is written by the flush that begins here. */
  const settle = () => {
    onWritten?.()
    while (afterwards.length > 0 && texts.length === 0) {
      const due = afterwards
      afterwards = []
      for (const then of due) then()
    }
    busy = texts.length > 0
    if (busy) begin()
  }

  const flush = () => {
    const taken = take()
    let to: Open | undefined
    try {
      to = opened()
    } catch {
      lose(taken)
    }
    const target = to
    if (target === undefined) return settle()
    const next = (written: number) => {
      if (written === taken.bytes.length) {
        count(target, taken)
        return settle()
      }
      write(target.descriptor, taken.bytes, written, (error, more) => {
        if (error === null) return next(written + more)
        try {
          cut(target.descriptor, written)
        } catch {
          // The next start cuts it.
        }
        lose(taken)
        return settle()
      })
    }
    return next(0)
  }

  const begin = () => {
    busy = true
    setTimeout(flush, GATHER_MS)
  }

  return {
    append: (text, lines) => {
      if (waiting.chars >= LOG_WAITING_CHARS_MAX) {
        lostLines += lines
        return
      }
      texts.push(text)
      waiting.chars += text.length
      waiting.lines += lines
      if (!busy) begin()
    },
    whenWritten: (then) => {
      if (busy) afterwards.push(then)
      else then()
    },
    writeNow: () => {
      if (texts.length === 0) return
      const taken = take()
      try {
        const to = opened()
        if (to === undefined) return
        writeWhole(to.descriptor, taken.bytes)
        count(to, taken)
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
