/** Retention over the stores of a suite's database, on a clock that a test moves and a disk that a test fills. */
import { execFile, execFileSync } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import type { SessionId } from "#schema/Ids.ts"
import { Disk, type Space } from "#src/choird/retention/Disk.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { SessionArchives } from "#src/choird/retention/SessionArchives.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { agentsMade, CONFIG, storesWith } from "./stores.ts"

const GIB = 1024 ** 3

/** A disk that has as much free as a test says, and of a hundred thousand files as many. */
export const makeDisk = () => {
  const full = { free_bytes: 50 * GIB, total_bytes: 100 * GIB, files: { free: 50_000, total: 100_000 } }
  const space: { now: Space } = { now: full }
  return {
    layer: Layer.succeed(Disk, { space: () => Effect.sync(() => space.now) }),
    free: (bytes: number) => void (space.now = { ...space.now, free_bytes: bytes }),
    freeFiles: (free: number) => void (space.now = { ...space.now, files: { ...full.files, free } })
  }
}

/** More agents than a suite makes with `newAgent`. */
const AGENTS_OF_SUITE_MAX = 100
/** Those that the suite has made, and those that it is about to make. */
const agentsOfSuite = () => {
  const made = agentsMade()
  const numbers = Array.from({ length: 2 * AGENTS_OF_SUITE_MAX }, (_, index) => made - AGENTS_OF_SUITE_MAX + index + 1)
  return Object.fromEntries(numbers.flatMap((n) => (n > 0 ? [[`agent-${n}`, CONFIG.agents.helper]] : [])))
}

/** Retention with these keys of config.json, which has the suite's agents, over stores that are new. */
export const retentionWith = (retention: Readonly<Record<string, unknown>>) =>
  Retention.layer.pipe(
    Layer.provideMerge(SessionArchives.layer),
    Layer.provideMerge(Layer.unwrap(Effect.map(ConfigStore, ({ home }) => LogFiles.layer(home, undefined)))),
    Layer.provideMerge(makeDisk().layer),
    Layer.provideMerge(Layer.fresh(Layer.suspend(() => storesWith({ ...CONFIG, agents: agentsOfSuite(), retention }))))
  )

/** Removes all that is due and says how much of each kind, without the kinds of which nothing went. */
export const pruned = Effect.fnUntraced(function* (dry_run = false) {
  const { kinds } = yield* (yield* Retention).prune({ dry_run, who: "operator" })
  return Object.fromEntries(kinds.flatMap(({ kind, removed }) => (removed === 0 ? [] : [[kind, removed]])))
})

/** Ends a session as if it had been so many days ago. */
export const endedBefore = Effect.fnUntraced(function* (session_id: SessionId, days: number) {
  const sql = yield* SqlClient.SqlClient
  yield* (yield* SessionStore).end(session_id, "stopped")
  yield* sql`UPDATE choir_control.sessions SET ended_at = now() - ${days} * interval '1 day',
      started_at = now() - ${days + 1} * interval '1 day' WHERE session_id = ${session_id}`
})

export const statusOf = Effect.fnUntraced(function* (session_id: SessionId) {
  return Option.map(yield* (yield* SessionStore).get(session_id), ({ status }) => status)
})

const HIDING = `import os, sys
os.chdir(sys.argv[1])
for _ in range(20):
    os.mkdir(sys.argv[2])
    os.chdir(sys.argv[2])
open("large", "wb").write(b"x" * int(sys.argv[3]))`

/**
 * A file below folders that are nested so deeply that no path reaches it from the root, made step by step as a shell does, until the
 * scope closes.
 */
export const hideDeep = Effect.fnUntraced(function* (folder: string, bytes: number) {
  const name = "d".repeat(250)
  yield* Effect.addFinalizer(() => Effect.sync(() => execFileSync("rm", ["-rf", join(folder, name)])))
  yield* Effect.promise(() => promisify(execFile)("python3", ["-c", HIDING, folder, name, String(bytes)]))
})
