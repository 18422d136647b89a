import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { type ArchivedRow, addArchived, makeArchivedRows } from "#src/choirctl/backup/archivedSessions.ts"
import { makeArchive } from "#src/choirctl/backup/ArchiveWriter.ts"
import { archivedMember } from "#src/choirctl/backup/manifest.ts"
import { temporaryFolder } from "../../support/engines.ts"

const AGENT = AgentId.make("demo")
const idOf = (index: number) => SessionId.make(index.toString(16).padStart(16, "0"))
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const rowOf = (index: number, text: string): ArchivedRow => ({
  agent_id: AGENT,
  session_id: idOf(index),
  sha256: sha256(text)
})
const memberOf = (index: number) => archivedMember(AGENT, idOf(index))

/** What a backup takes of these files, by session, or of a folder in the place of one, where the copy of the database has these rows. */
const added = Effect.fnUntraced(function* (
  files: Readonly<Record<number, string | undefined>>,
  rows: ReadonlyArray<ArchivedRow>
) {
  const home = yield* temporaryFolder
  for (const [index, text] of Object.entries(files)) {
    const path = join(home, memberOf(Number(index)))
    mkdirSync(dirname(path), { recursive: true })
    if (text === undefined) mkdirSync(path)
    else writeFileSync(path, text)
  }
  const archive = yield* makeArchive(join(home, "backup"))
  const { contents, damaged, left_out } = yield* addArchived(archive, home, rows)
  yield* archive.end
  return { contents, damaged, left_out, members: archive.members() }
}, Effect.scoped)

describe("the archived sessions of a backup", () => {
  it.live("are compared with their rows; one that was changed is copied as it is, and told", () =>
    Effect.gen(function* () {
      const { contents, damaged, left_out, members } = yield* added({ 1: "sound", 2: "rotten", 3: "cut" }, [
        rowOf(1, "sound"),
        rowOf(2, "robust"),
        rowOf(3, "cut short")
      ])
      assert.deepStrictEqual(contents, { sessions: 3, bytes: 14 })
      const reason = "its file has changed since then, and the backup holds the changed file"
      assert.deepStrictEqual(
        damaged,
        [2, 3].map((index) => ({ session_id: idOf(index), reason }))
      )
      assert.deepStrictEqual(
        left_out,
        [2, 3].map((index) => `${memberOf(index)} as it was archived: ${reason}`)
      )
      assert.deepStrictEqual(
        members.map(({ sha256 }) => sha256),
        ["sound", "rotten", "cut"].map(sha256)
      )
    })
  )

  it.live("are told where their file is missing or something else, the first twenty by name", () =>
    Effect.gen(function* () {
      const rows = Array.from({ length: 25 }, (_, index) => rowOf(index, ""))
      const { contents, damaged, left_out } = yield* added({ 0: undefined }, rows)
      assert.deepStrictEqual(contents, { sessions: 0, bytes: 0 })
      assert.strictEqual(damaged.length, 20)
      assert.strictEqual(left_out[0], `${memberOf(0)} as it was archived: its file is missing`)
      assert.deepStrictEqual(left_out.slice(20), ["5 more archived sessions, whose files are missing or were changed"])
    })
  )

  it.live("are those that the copy of the database names, and no others", () =>
    Effect.gen(function* () {
      const { damaged, left_out, members } = yield* added({ 1: "one", 2: "two", 3: "three" }, [rowOf(2, "two")])
      assert.deepStrictEqual(damaged, [])
      assert.deepStrictEqual(
        members.map(({ name }) => name),
        [memberOf(2)]
      )
      assert.deepStrictEqual(left_out, [
        `${memberOf(1)} and 1 more in archive/: the copy of the database lists no such archived session`
      ])
    })
  )

  it.effect("are collected from the rows of sessions, also of a database that has no archives", () =>
    Effect.gen(function* () {
      const rows = makeArchivedRows()
      const part = (schema: string, table: string) =>
        ({ type: "table", table: { type: "table", schema, table, columns: ["a"], counters: {} } }) as const
      const row = (value: unknown) => ({ type: "row", text: JSON.stringify(value) }) as const
      const archive = { ...rowOf(1, "one"), last_rev: 3, bytes: 3, archived_at: "2026-01-01", cleared: true }
      yield* rows.take([part("choir_control", "deleted_sessions"), row({ archive })])
      yield* rows.take([part("choir_control", "sessions"), row({ session_id: idOf(2) }), row({ archive: null })])
      yield* rows.take([row({ session_id: idOf(1), archive })])
      yield* rows.take([part("choir_control", "signals"), row({ archive })])
      assert.deepStrictEqual(rows.all(), [rowOf(1, "one")])
      const other = yield* Effect.flip(
        rows.take([part("choir_control", "sessions"), row({ archive: { ...archive, agent_id: "../up" } })])
      )
      assert.strictEqual(other.type, "BACKUP_UNUSABLE")
    })
  )
})
