/**
 * `logs/archive/<source>/<timestamp>.log.gz` of a home. A log comes here by one rename, as `<timestamp>.log`; it is
 * compressed under a temporary name, which becomes `.log.gz`, and only then removed. So a death at any point leaves the whole log
 * under one of the names, and the next start finishes it.
 */
import { closeSync, constants, createReadStream, createWriteStream, existsSync, openSync, readdirSync } from "node:fs"
import { lstatSync, renameSync, rmSync } from "node:fs"
import { pipeline } from "node:stream/promises"
import { createGzip } from "node:zlib"
import { Effect, Result, Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { archiveName, archiveStem } from "#src/shared/files/logArchives.ts"
import { descriptorPath } from "#src/shared/files/nofollow.ts"
import { openLogFolder } from "./LogFile.ts"

const LOG_ARCHIVES_MAX = 10_000

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const isSource = Schema.is(AgentId)

/** The source of choird's own log. */
export const CHOIRD = "choird"

/** An archived log. Stems of one source sort by age. */
export interface Archive {
  readonly source: string
  readonly stem: string
  readonly bytes: number
  /** Whether it is not compressed yet. */
  readonly plain: boolean
}

/** The limits of the kept logs. Archives that were begun before `oldest_ms` are removed. */
export interface LogLimits {
  readonly bytes_max: number
  readonly oldest_ms: number
}

export interface LogArchive {
  /** Finds the archives of earlier choirds, and removes unfinished compressions. */
  scan(): void
  /** Archives a log: `move` renames it to a free name in the open folder and returns its bytes, 0 where there is nothing to archive. */
  take(source: string, now_ms: number, move: (folder: number, name: string) => number): void
  /**
   * Removes archives until they, with `active_bytes` of files that are still written, are within the limits ({@link archivesBeyond}), and
   * reports what it removed or, with `dry_run`, would remove.
   */
  trim(active_bytes: number, limits: LogLimits, dry_run?: boolean): { readonly removed: number; readonly bytes: number }
  /** Compresses the oldest log that waits for it; whether there was one. */
  readonly compressNext: Effect.Effect<boolean>
}

/** The archives of one source that are still kept. */
interface Share {
  readonly source: string
  /** The oldest first. */
  readonly archives: Array<Archive>
  bytes: number
}

/**
 * Finds the share that gives up its oldest archive: the largest of the agents'. choird's own log has half of the room, and beyond that half
 * it gives like any other; below, it gives only when nobody else has anything left.
 */
const giver = (shares: ReadonlyArray<Share>, sizeOf: (share: Share) => number, max: number): Share | undefined => {
  const left = shares.filter(({ archives }) => archives.length > 0)
  const giving = left.filter((share) => share.source !== CHOIRD || sizeOf(share) > max / 2)
  return (giving.length > 0 ? giving : left).reduce<Share | undefined>(
    (largest, share) => (largest === undefined || sizeOf(share) > sizeOf(largest) ? share : largest),
    undefined
  )
}

/** The limits of all archives, with the bytes that other files take of them. */
export interface ArchiveLimits extends LogLimits {
  readonly active_bytes: number
  readonly archives_max: number
}

/**
 * The archives that have to go: those that are too old, and then, one by one, the oldest of the source that has most, so that a source only
 * removes its own for as long as it has more than others. Pure.
 *
 * @param archives the oldest first.
 */
export const archivesBeyond = (
  archives: ReadonlyArray<Archive>,
  { active_bytes, archives_max, bytes_max, oldest_ms }: ArchiveLimits
): ReadonlyArray<Archive> => {
  const oldest = stemOf(oldest_ms)
  const gone = archives.filter(({ stem }) => stem < oldest)
  const shares = [...Map.groupBy(archives.slice(gone.length), ({ source }) => source)].map(([source, own]): Share => ({
    source,
    archives: own,
    bytes: own.reduce((sum, { bytes }) => sum + bytes, 0)
  }))
  let bytes = shares.reduce((sum, share) => sum + share.bytes, active_bytes)
  while (bytes > bytes_max || archives.length - gone.length > archives_max) {
    const share =
      bytes > bytes_max
        ? giver(shares, (each) => each.bytes, bytes_max)
        : giver(shares, (each) => each.archives.length, archives_max)
    const archive = share?.archives.shift()
    if (share === undefined || archive === undefined) break
    share.bytes -= archive.bytes
    bytes -= archive.bytes
    gone.push(archive)
  }
  return gone
}

const stemOf = (at_ms: number) => new Date(at_ms).toISOString().replaceAll(":", "-")

const sizeOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.size ?? 0

const scanned = (folder: number, source: string): ReadonlyArray<Archive> => {
  const at = descriptorPath(folder)
  const found = new Map<string, Archive>()
  for (const name of readdirSync(at).toSorted()) {
    const stem = archiveStem(name)
    if (stem === undefined) {
      if (archiveStem(name.replace(/\.part$/u, "")) !== undefined) rmSync(`${at}/${name}`, { force: true })
      continue
    }
    const plain = name === archiveName(stem, false)
    // The compressed file has its name only when it is whole.
    if (!plain) rmSync(`${at}/${archiveName(stem, false)}`, { force: true })
    found.set(stem, { source, stem, bytes: sizeOf(`${at}/${name}`), plain })
  }
  return [...found.values()]
}

/** Compresses a log in its open folder, as a stream in other threads than this; returns the bytes that are left of it. */
const compressed = (folder: number, stem: string) => {
  const at = descriptorPath(folder)
  const plain = `${at}/${archiveName(stem, false)}`
  const whole = `${at}/${archiveName(stem, true)}`
  const part = `${whole}.part`
  return Effect.tryPromise((signal) => {
    rmSync(part, { force: true })
    const from = createReadStream("", { fd: openSync(plain, READ) })
    // `wx` makes the file and follows no link.
    const to = createWriteStream(part, { flags: "wx", mode: 0o600, flush: true })
    return pipeline(from, createGzip(), to, { signal })
  }).pipe(
    Effect.andThen(
      Effect.try(() => {
        renameSync(part, whole)
        rmSync(plain, { force: true })
        return sizeOf(whole)
      })
    ),
    // On a full disk, half a compression would take the room that is left.
    Effect.onError(() => Effect.sync(() => rmSync(part, { force: true })))
  )
}

/** A later name than the newest of a source, so that names keep the order of the logs even where a clock does not. */
const freeStem = (folder: number, newest: string, now_ms: number): string => {
  const at = descriptorPath(folder)
  for (let at_ms = now_ms; ; at_ms += 1) {
    const stem = stemOf(at_ms)
    const taken = [true, false].some((gz) => existsSync(`${at}/${archiveName(stem, gz)}`))
    if (stem > newest && !taken) return stem
    if (stem < newest) at_ms = Date.parse(newest.replace(/T(\d\d)-(\d\d)-/u, "T$1:$2:"))
  }
}

export const makeLogArchive = (home: string, archives_max = LOG_ARCHIVES_MAX): LogArchive => {
  /** The oldest first. An archive that an operator removed by hand is noticed when its turn comes. */
  let archives: ReadonlyArray<Archive> = []
  const keep = (next: ReadonlyArray<Archive>) => {
    archives = next.toSorted((a, b) => (a.stem < b.stem ? -1 : a.stem > b.stem ? 1 : 0))
  }
  const within = <A>(source: string | undefined, use: (folder: number) => A): A => {
    const folder = openLogFolder(home, ["logs", "archive", ...(source === undefined ? [] : [source])])
    try {
      return use(folder)
    } finally {
      closeSync(folder)
    }
  }

  const drop = ({ source, stem }: Archive) =>
    within(source, (folder) => {
      for (const gz of [false, true]) rmSync(`${descriptorPath(folder)}/${archiveName(stem, gz)}`, { force: true })
    })

  return {
    scan: () => {
      const sources = within(undefined, (folder) => readdirSync(descriptorPath(folder))).filter(isSource)
      // A folder that is not a log's is left alone.
      const found = sources.map((source) => Result.try(() => within(source, (folder) => scanned(folder, source))))
      keep(found.flatMap((archives) => (Result.isSuccess(archives) ? archives.success : [])))
    },
    take: (source, now_ms, move) =>
      within(source, (folder) => {
        const newest = archives.findLast((archive) => archive.source === source)?.stem ?? ""
        const stem = freeStem(folder, newest, now_ms)
        const bytes = move(folder, archiveName(stem, false))
        if (bytes > 0) keep([...archives, { source, stem, bytes, plain: true }])
      }),
    trim: (active_bytes, limits, dry_run = false) => {
      const gone = archivesBeyond(archives, { ...limits, active_bytes, archives_max })
      if (!dry_run) {
        for (const archive of gone) drop(archive)
        const removed = new Set(gone)
        archives = archives.filter((archive) => !removed.has(archive))
      }
      return { removed: gone.length, bytes: gone.reduce((sum, archive) => sum + archive.bytes, 0) }
    },
    compressNext: Effect.suspend(() => {
      const next = archives.find(({ plain }) => plain)
      if (next === undefined) return Effect.succeed(false)
      const settle = (left: ReadonlyArray<Archive>) =>
        Effect.sync(() => keep(archives.flatMap((archive) => (archive === next ? left : [archive]))))
      return Effect.acquireUseRelease(
        Effect.try(() => openLogFolder(home, ["logs", "archive", next.source])),
        (folder) => compressed(folder, next.stem),
        (folder) => Effect.sync(() => closeSync(folder))
      ).pipe(
        Effect.flatMap((bytes) => settle([{ ...next, bytes, plain: false }])),
        // It stays as it is until the next start tries again; the others must not wait for it.
        Effect.catch((error) =>
          Effect.andThen(
            Effect.logWarning("a log was not compressed", { archive: `${next.source}/${next.stem}` }, error),
            settle([{ ...next, plain: false }])
          )
        ),
        Effect.as(true)
      )
    })
  }
}
