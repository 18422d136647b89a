/** The archived sessions of a home, for a backup: their files are the only copy of their events. */
import { closeSync, constants, fstatSync, openSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { AgentId, SessionId, Sha256 } from "#schema/Ids.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import type { BackupItem } from "#src/shared/events/BackupReader.ts"
import { homeBackupLockPath } from "#src/shared/files/homeLocks.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import type { Archive } from "./ArchiveWriter.ts"
import { ARCHIVED_FILES_MAX, ARCHIVED_BYTES_MAX, archivedMember, archivedSession, ARCHIVES } from "./manifest.ts"

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const FILE_MODE = 0o600
/** The sessions with an unsound file that are named one by one. */
const DAMAGED_MAX = 20
const SESSIONS = { schema: "choir_control", table: "sessions" } as const

const isAgent = Schema.is(AgentId)

/** The file of an archived session, as its row names it. */
const ArchivedRow = Schema.Struct({ agent_id: AgentId, session_id: SessionId, sha256: Sha256 })
export type ArchivedRow = typeof ArchivedRow.Type
// A database from before archives existed has no such column.
const decodeRow = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ archive: Schema.optionalKey(Schema.NullOr(ArchivedRow)) }))
)

/** An archived session whose file is not what was archived. */
interface DamagedArchive {
  readonly session_id: SessionId
  readonly reason: string
}

/** The archived sessions that a copy of the database names, collected while it is read. */
export const makeArchivedRows = () => {
  const rows: Array<ArchivedRow> = []
  let inSessions = false
  const take = (items: ReadonlyArray<BackupItem>) =>
    Effect.suspend(() => {
      for (const item of items) {
        if (item.type === "table")
          inSessions = item.table.schema === SESSIONS.schema && item.table.table === SESSIONS.table
        if (item.type !== "row" || !inSessions) continue
        const row = Option.getOrUndefined(decodeRow(item.text))
        if (row === undefined)
          return failed("BACKUP_UNUSABLE", "a session has an archive path in an unknown format", "choirctl logs choird")
        if (row.archive) rows.push(row.archive)
      }
      return Effect.void
    })
  return { take, all: (): ReadonlyArray<ArchivedRow> => rows }
}

/**
 * Keeps choird from deleting the files of archived sessions until the scope closes, so that those which the copy of the database names are
 * still there to be added. `lost` fails when the lock is lost.
 */
export const holdArchived = Effect.fn("archivedSessions.hold")(function* (home: string) {
  const unusable = ({ message }: Error) =>
    failed("FILE", message, "check the owner of the home and its lock files, then try again")
  const { lost } = yield* holdLockFile(homeBackupLockPath(home)).pipe(
    Effect.catchTags({
      LockTaken: () => failed("BUSY", `another choirctl is backing up ${home}`, "wait until it has finished"),
      LockUnusable: unusable
    })
  )
  return { lost: Effect.mapError(lost, unusable) }
})

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return []
    throw error
  }
}

/** The files of the folder that have the name of an archived session's. One that is being written has another. */
const membersIn = (home: string): ReadonlyArray<string> =>
  namesIn(join(home, ARCHIVES)).flatMap((agent_id) =>
    !isAgent(agent_id)
      ? []
      : namesIn(join(home, ARCHIVES, agent_id)).flatMap((name) => {
          const session_id = archivedSession(name)
          return session_id === undefined ? [] : [archivedMember(agent_id, session_id)]
        })
  )

const GONE = new Set(["ENOENT", "ENOTDIR", "ELOOP"])

/** Opens a file, or returns nothing if it is missing or not a regular file. */
const open = (path: string): number | undefined => {
  try {
    const descriptor = openSync(path, FILE)
    if (fstatSync(descriptor).isFile()) return descriptor
    closeSync(descriptor)
    return undefined
  } catch (error) {
    if (GONE.has(codeOf(error) ?? "")) return undefined
    throw error
  }
}

const unsound = (problems: ReadonlyArray<DamagedArchive & { readonly member: string }>) => [
  ...problems.slice(0, DAMAGED_MAX).map(({ member, reason }) => `${member} as it was archived: ${reason}`),
  ...(problems.length > DAMAGED_MAX
    ? [`${problems.length - DAMAGED_MAX} more archived sessions, whose files are missing or were changed`]
    : [])
]

/** A session that is archived meanwhile has its events in the copy of the database; one that is deleted is not to come back. */
const unnamed = ([first, ...more]: ReadonlyArray<string>) => {
  if (first === undefined) return []
  const others = more.length === 0 ? "" : ` and ${more.length} more in archive/`
  return [`${first}${others}: the copy of the database lists no such archived session`]
}

/**
 * Adds the files of the archived sessions that the copy of the database names, and compares each with the digest in its row. One that was
 * changed is added as it is, and told. Refused beyond what a restore takes.
 */
export const addArchived = Effect.fn("archivedSessions.add")(function* (
  archive: Archive,
  home: string,
  rows: ReadonlyArray<ArchivedRow>
) {
  const taken = { sessions: 0, bytes: 0 }
  const problems: Array<DamagedArchive & { readonly member: string }> = []
  for (const { agent_id, session_id, sha256 } of rows) {
    const member = archivedMember(agent_id, session_id)
    const add = Effect.fnUntraced(function* (descriptor: number | undefined) {
      if (descriptor === undefined) return "its file is missing"
      const { mtime, size } = fstatSync(descriptor)
      taken.sessions += 1
      taken.bytes += size
      if (taken.sessions > ARCHIVED_FILES_MAX || taken.bytes > ARCHIVED_BYTES_MAX)
        return yield* failed(
          "ARCHIVES_TOO_LARGE",
          `there are more than ${ARCHIVED_FILES_MAX} archived sessions, or they hold more than ${ARCHIVED_BYTES_MAX / 1024 ** 3} GiB`,
          "run choirctl backup with --without-archives and copy the folder archive/ yourself, or lower retention.archives_mb"
        )
      const copied = yield* archive.open(member, { descriptor, bytes: size, mode: FILE_MODE, mtime })
      return copied.sha256 === sha256
        ? undefined
        : "its file has changed since then, and the backup holds the changed file"
    })
    const reason = yield* Effect.acquireUseRelease(
      Effect.sync(() => open(join(home, member))),
      add,
      (descriptor) => Effect.sync(() => (descriptor === undefined ? undefined : closeSync(descriptor)))
    )
    if (reason !== undefined) problems.push({ session_id, reason, member })
  }
  const named = new Set(rows.map(({ agent_id, session_id }) => archivedMember(agent_id, session_id)))
  const others = yield* Effect.sync(() => membersIn(home).filter((member) => !named.has(member)))
  return {
    contents: taken,
    damaged: problems.slice(0, DAMAGED_MAX).map(({ reason, session_id }): DamagedArchive => ({ session_id, reason })),
    left_out: [...unsound(problems), ...unnamed(others)]
  }
})
