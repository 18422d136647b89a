/** The archived sessions of a home, for a backup: their files are the only copy of their events. */
import { closeSync, constants, fstatSync, openSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { failed } from "#src/choirctl/failure.ts"
import { codeOf } from "#src/shared/nofollow.ts"
import type { Archive } from "./ArchiveWriter.ts"
import { ARCHIVED_FILES_MAX, ARCHIVED_BYTES_MAX, ARCHIVED_SUFFIX, archivedMember, ARCHIVES } from "./manifest.ts"

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
const FILE_MODE = 0o600

const isAgent = Schema.is(AgentId)
const isSession = Schema.is(SessionId)

interface Found {
  readonly agent_id: AgentId
  readonly session_id: SessionId
  readonly path: string
}

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return []
    throw error
  }
}

/** The files that have their names. One that is being written has another, and its session's events are still in the database. */
const archivedIn = (home: string): ReadonlyArray<Found> =>
  namesIn(join(home, ARCHIVES)).flatMap((agent_id) =>
    !isAgent(agent_id)
      ? []
      : namesIn(join(home, ARCHIVES, agent_id)).flatMap((name) => {
          const session_id = name.slice(0, -ARCHIVED_SUFFIX.length)
          const path = join(home, ARCHIVES, agent_id, name)
          return name.endsWith(ARCHIVED_SUFFIX) && isSession(session_id) ? [{ agent_id, session_id, path }] : []
        })
  )

const open = (path: string): number | undefined => {
  try {
    return openSync(path, FILE)
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ELOOP") return undefined
    throw error
  }
}

/**
 * Adds the files to the backup. It comes after the copy of the database: a session that is archived meanwhile is in both, and one that is
 * deleted meanwhile is in neither. Refused beyond what a restore takes.
 */
export const addArchived = Effect.fn("archivedSessions.add")(function* (archive: Archive, home: string) {
  const taken = { sessions: 0, bytes: 0 }
  const left_out: Array<string> = []
  for (const { agent_id, path, session_id } of yield* Effect.sync(() => archivedIn(home))) {
    const add = Effect.fnUntraced(function* (descriptor: number | undefined) {
      if (descriptor === undefined) return
      const { mtime, size } = fstatSync(descriptor)
      taken.sessions += 1
      taken.bytes += size
      if (taken.sessions > ARCHIVED_FILES_MAX || taken.bytes > ARCHIVED_BYTES_MAX)
        return yield* failed(
          "ARCHIVES_TOO_LARGE",
          `the archived sessions are more than ${ARCHIVED_FILES_MAX} or have more than ${ARCHIVED_BYTES_MAX / 1024 ** 3} GiB`,
          "run choirctl backup with --without-archives and copy the folder archive/ yourself, or lower retention.archives_mb"
        )
      const member = archivedMember(agent_id, session_id)
      const exact = yield* archive.open(member, { descriptor, bytes: size, mode: FILE_MODE, mtime })
      if (!exact) left_out.push(`${member} as it was before it changed: it is damaged`)
    })
    yield* Effect.acquireUseRelease(
      Effect.sync(() => open(path)),
      add,
      (descriptor) => Effect.sync(() => (descriptor === undefined ? undefined : closeSync(descriptor)))
    )
  }
  return { contents: taken, left_out }
})
