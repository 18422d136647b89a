/**
 * Maintenance of a home's database while no choird runs on it: `choirctl db` starts this program, since only choird opens databases
 * (docs/operating.md). Each task locks the home, so that no choird starts meanwhile.
 */
import { Context, Effect, Layer, Runtime, Schema, Stream } from "effect"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { configuredDatabase } from "#src/choird/database/configuredDatabase.ts"
import { Database } from "#src/choird/database/Database.ts"
import { migrate, NEWEST } from "#src/choird/database/Migrations.ts"
import { type Restoration, restore } from "#src/choird/database/restore.ts"
import { lockHome } from "./HomeLock.ts"

/** The report of a task on standard error, one JSON document a line. */
export type Report =
  | { readonly type: "step"; readonly text: string }
  | { readonly type: "done"; readonly result: Schema.Json }
  | { readonly type: "failed"; readonly error: { readonly type: string; readonly message: string } }

/** One task, as the command line names it. */
export type Task =
  | { readonly name: "migrate" }
  | { readonly name: "backup" }
  | ({ readonly name: "restore" } & Restoration)

/** The bytes of a backup cannot be written, as on a full disk. The part that was written is worthless. */
export class OutputRefused extends Schema.TaggedError<OutputRefused>()("OutputRefused", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 1
  override get message() {
    return `the backup cannot be written: ${this.problem}. Free some space there, or choose another place`
  }
}

/** The outside effects that a task may have. */
export interface Outside {
  readonly version: string
  readonly step: (text: string) => Effect.Effect<void>
  /** Takes the bytes of a backup; returns when there is room for more. */
  readonly write: (bytes: Uint8Array) => Effect.Effect<void, OutputRefused>
}

/** The home's own database as it is, not migrated. */
const openDatabase = Effect.fnUntraced(function* (home: string) {
  const files = yield* Layer.build(ConfigStore.layer({ home }))
  const store = Context.get(files, ConfigStore)
  const { lost } = yield* lockHome(store.home)
  const { config } = yield* store.current
  const database = yield* Layer.build(configuredDatabase(config.postgres, store.home, false)).pipe(
    Effect.provideContext(files)
  )
  return { database, lost }
})

const migrated = Effect.gen(function* () {
  const { kind } = yield* Database
  const applied = yield* migrate()
  return { kind, applied, migration: NEWEST }
})

/** A database without tables has nothing to back up, so it is migrated first, as by a start of choird. */
const backedUp = ({ version, write }: Outside) =>
  Effect.gen(function* () {
    const { kind } = yield* Database
    yield* migrate()
    const backup = yield* Backup
    yield* Stream.runForEach(backup.file(version), write)
    return { kind, migration: NEWEST }
  }).pipe(Effect.provide(Backup.layer))

const doTask = Effect.fnUntraced(function* (task: Task, outside: Outside) {
  switch (task.name) {
    case "migrate":
      return yield* migrated
    case "backup":
      return yield* backedUp(outside)
    case "restore": {
      const { broken, events, header, rows, sessions } = yield* restore(task, outside.step)
      return { rows, sessions, events, broken, created_at: header.created_at, migration: header.migration }
    }
  }
})

/** Runs a task in the caller's scope and returns its result. It ends if another program may use its home or its database. */
export const maintain = Effect.fn("maintenance.run")(function* (home: string, task: Task, outside: Outside) {
  const { database, lost } = yield* openDatabase(home)
  const done = Effect.provideContext(doTask(task, outside), database)
  return yield* Effect.raceAllFirst([done, lost, Context.get(database, Database).lost])
})
