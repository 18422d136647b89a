/**
 * One log file: whole lines are gathered for a moment and appended by another thread, so that a slow disk never holds up choird. A
 * rotation moves the file away, and the next line begins a new one.
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

/** The limits at which a file is archived. */
export interface LogFileLimits {
  readonly lines_max: number
  readonly bytes_max: number
}

/** Time that lines are gathered before they are written. */
const GATHER_MS = 20
/** Characters of lines that wait for a disk; further lines are dropped and counted. */
export const LOG_WAITING_CHARS_MAX = 4_194_304

export interface LogFile {
  /** Appends whole lines soon. Lines that cannot be written are counted and lost: a full disk stops nobody. */
  append(text: string, lines: number): void
  /** Runs once all lines so far are in the file, or lost, and while nothing is being written. */
  whenWritten(then: () => void): void
  /** Writes the waiting lines at once, for a program that is about to exit. */
  writeNow(): void
  /** Whether the file reached a limit since it was opened or {@link LogFile.later} put that off. */
  isFull(limits: LogFileLimits): boolean
  /** Restarts the count towards the limits. */
  later(): void
  /** Moves the file, when it holds anything, to a name in an open folder; the next line begins a new one. Returns its bytes. */
  moveTo(folder: number, name: string): number
  /** Bytes of the file, as far as it is open. */
  bytes(): number
  close(): void
}

/** The hooks of a log file; a test may write more slowly than a disk. */
export interface LogFileOptions {
  /** The line about lost lines, written as soon as that is possible again. */
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

/** Removes the part of a line that a failed write left, so that every line of the file is whole. */
const cut = (file: number, written: number) => {
  if (written > 0) ftruncateSync(file, Math.max(0, fstatSync(file).size - written))
}

const writeAll = (file: number, bytes: Buffer) => {
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

/** Lines on their way to the file, and those lost before them. */
interface Taken {
  readonly bytes: Buffer
  readonly lines: number
  readonly lost: number
}

/** The lines that wait for the disk, and a count of the lost ones. */
const makeWaitingLines = (lostLine: (lines: number) => string) => {
  let texts: Array<string> = []
  const waiting = { chars: 0, lines: 0 }
  let lost = 0
  return {
    isEmpty: () => texts.length === 0,
    /** Whether the lines wait; beyond the limit they are lost. */
    add: (text: string, lines: number): boolean => {
      if (waiting.chars >= LOG_WAITING_CHARS_MAX) {
        lost += lines
        return false
      }
      texts.push(text)
      waiting.chars += text.length
      waiting.lines += lines
      return true
    },
    /** All that waits, after a line about the lost ones. */
    take: (): Taken => {
      const about = lost > 0 ? lostLine(lost) : ""
      const taken = { bytes: Buffer.from(about + texts.join("")), lines: waiting.lines, lost }
      texts = []
      lost = 0
      Object.assign(waiting, { chars: 0, lines: 0 })
      return taken
    },
    lose: (taken: Taken) => {
      lost += taken.lost + taken.lines
    }
  }
}

/** The file `logs/<name>.log` of a home while it is open, with its lines and bytes. */
const makeOpenFile = (home: string, name: string) => {
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
    // A missing home is not created: that is the work of `choirctl init`.
    opened: (): Open | undefined => (file === undefined && !existsSync(home) ? undefined : (file ??= open())),
    isFull: ({ bytes_max, lines_max }: LogFileLimits) =>
      file !== undefined && (file.lines >= lines_max || file.bytes >= bytes_max),
    later: () => {
      if (file !== undefined) Object.assign(file, { bytes: 0, lines: 0 })
    },
    moveTo: (folder: number, to: string): number => {
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

const count = (to: Open, { bytes, lines }: Taken) => {
  to.bytes += bytes.length
  to.lines += lines
}

/** Writes lines in as many writes as it takes. A part of them is cut off again where one fails. */
const writeWhole = (
  write: NonNullable<LogFileOptions["write"]>,
  { descriptor }: Open,
  { bytes }: Taken,
  then: (isWritten: boolean) => void
) => {
  const next = (written: number) => {
    if (written === bytes.length) return then(true)
    write(descriptor, bytes, written, (error, more) => {
      if (error === null) return next(written + more)
      try {
        cut(descriptor, written)
      } catch {
        // The next start cuts it.
      }
      return then(false)
    })
  }
  next(0)
}

/** A file `logs/<name>.log` of a home, readable by its owner alone. Opened with the first line. */
export const makeLogFile = (
  home: string,
  name: string,
  { lost = () => "", onWritten, write = writeFile }: LogFileOptions = {}
): LogFile => {
  const { opened, ...file } = makeOpenFile(home, name)
  const waiting = makeWaitingLines(lost)
  let busy = false
  let afterwards: Array<() => void> = []

  /** Stays busy until the last callback has run: the flush that begins here writes what a callback appends. */
  const settle = () => {
    onWritten?.()
    while (afterwards.length > 0 && waiting.isEmpty()) {
      const due = afterwards
      afterwards = []
      for (const then of due) then()
    }
    busy = !waiting.isEmpty()
    if (busy) begin()
  }

  const flush = () => {
    const taken = waiting.take()
    let to: Open | undefined
    try {
      to = opened()
    } catch {
      waiting.lose(taken)
    }
    const target = to
    if (target === undefined) return settle()
    return writeWhole(write, target, taken, (isWritten) => {
      if (isWritten) count(target, taken)
      else waiting.lose(taken)
      settle()
    })
  }

  const begin = () => {
    busy = true
    setTimeout(flush, GATHER_MS)
  }

  return {
    ...file,
    append: (text, lines) => {
      if (waiting.add(text, lines) && !busy) begin()
    },
    whenWritten: (then) => {
      if (busy) afterwards.push(then)
      else then()
    },
    writeNow: () => {
      if (waiting.isEmpty()) return
      const taken = waiting.take()
      try {
        const to = opened()
        if (to === undefined) return
        writeAll(to.descriptor, taken.bytes)
        count(to, taken)
      } catch {
        // There is no place left to report it.
      }
    }
  }
}
