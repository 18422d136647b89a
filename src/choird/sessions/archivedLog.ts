/**
 * The events of an archived session: a compressed file of the home, a stored row a line, that is read as the table would be. eventRow.ts
 * decides what a row holds; its bytes are written as `{"hex": …}`.
 */
import { createReadStream } from "node:fs"
import { join } from "node:path"
import { createGunzip } from "node:zlib"
import { Effect, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, Rev, SessionId } from "#schema/Ids.ts"
import type { EventRow } from "#src/shared/events/eventRow.ts"
import { hex } from "#src/shared/events/hashChain.ts"
import type { Log } from "./storedEvents.ts"

/** A session's file, as its row describes it. */
export const Archive = Schema.Struct({
  agent_id: AgentId,
  session_id: SessionId,
  last_rev: Rev,
  bytes: Schema.Natural,
  sha256: Schema.String,
  archived_at: Schema.String,
  /** Whether no event of it is left in the database. */
  cleared: Schema.Boolean
})
export type Archive = typeof Archive.Type

const archiveFolder = (home: string) => join(home, "archive")

export const archivePath = (home: string, { agent_id, session_id }: Pick<Archive, "agent_id" | "session_id">) =>
  join(archiveFolder(home), agent_id, `${session_id}.jsonl.gz`)

/** A file that is missing, or differs from what was written. */
export class ArchiveUnreadable extends Schema.TaggedError<ArchiveUnreadable>()("ArchiveUnreadable", {
  path: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `the archived events in ${this.path} cannot be read: ${this.problem}. Put the file back from a copy of the home`
  }
}

export const archiveLine = (row: EventRow): string =>
  `${JSON.stringify(Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value instanceof Uint8Array ? { hex: hex(value) } : value])))}\n`

const HEX = /^[0-9a-f]*$/u

const fromLine = (line: string): EventRow => {
  const row = JSON.parse(line) as Record<string, unknown>
  const entries = Object.entries(row).map(([key, value]) => {
    const text = typeof value === "object" && value !== null && "hex" in value ? value.hex : undefined
    return [key, typeof text === "string" && HEX.test(text) ? Buffer.from(text, "hex") : value]
  })
  return Object.fromEntries(entries) as EventRow
}

/** The stored rows of a file, in their order. */
export const readArchive = (path: string): Stream.Stream<EventRow, ArchiveUnreadable> => {
  const unreadable = (cause: unknown) => new ArchiveUnreadable({ path, problem: String(cause) })
  const bytes = Effect.acquireRelease(
    Effect.sync(() => {
      const file = createReadStream(path)
      const unpacked = createGunzip()
      file.on("error", (error) => unpacked.destroy(error))
      return { file, unpacked: file.pipe(unpacked) }
    }),
    ({ file, unpacked }) =>
      Effect.sync(() => {
        file.destroy()
        unpacked.destroy()
      })
  )
  return Stream.unwrap(
    Effect.map(bytes, ({ unpacked }) => Stream.fromAsyncIterable(unpacked as AsyncIterable<Uint8Array>, unreadable))
  ).pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => line !== ""),
    Stream.mapEffect((line) => Effect.try({ try: () => fromLine(line), catch: unreadable }))
  )
}

/** A session's log in a file, which must reach the revision in the session's own row. */
export const archivedLog = (path: string, last_rev: number): Log<ArchiveUnreadable> => ({
  until: last_rev,
  rows: (from) => Stream.filter(readArchive(path), ({ rev }) => rev >= from)
})

const decodeArchive = Schema.decodeUnknownEffect(Archive)

/** Where a session's events are, if they are no longer in the table. */
export const archiveOf = Effect.fnUntraced(function* (session_id: SessionId) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly archive: unknown
  }>`SELECT archive FROM choir_control.sessions WHERE session_id = ${session_id}`
  return row === undefined || row.archive === null ? undefined : yield* Effect.orDie(decodeArchive(row.archive))
})
