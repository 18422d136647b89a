/**
 * What is done to a home's database while no choird runs on it: `choirctl db` starts this program for it, since only choird opens
 * databases (docs/operating.md). Each task holds the home, so that no choird starts meanwhile.
 */
import { Context, Effect, Layer, type Schema } from "effect"
import { ConfigStore } from "./config/ConfigStore.ts"
import { configuredDatabase } from "./database/configuredDatabase.ts"
import { Database } from "./database/Database.ts"
import { migrate, NEWEST } from "./database/Migrations.ts"
import { lockHome } from "./HomeLock.ts"

/** What a task says on standard error, one JSON document a line. */
export type Report =
  | { readonly type: "step"; readonly text: string }
  | { readonly type: "done"; readonly result: Schema.Json }
  | { readonly type: "failed"; readonly error: { readonly type: string; readonly message: string } }

/** One task, as the command line names it. */
export type Task = { readonly name: "migrate" }

/** The home's own database, as it is: not migrated. */
const openDatabase = Effect.fnUntraced(function* (home: string) {
  const files = yield* Layer.build(ConfigStore.layer({ home }))
  const store = Context.get(files, ConfigStore)
  yield* lockHome(store.home)
  const { config } = yield* store.current
  return yield* Layer.build(configuredDatabase(config.postgres, store.home, false)).pipe(Effect.provideContext(files))
})

const migrated = Effect.gen(function* () {
  const { kind } = yield* Database
  const applied = yield* migrate()
  return { kind, applied, migration: NEWEST }
})

/** Does a task in the caller's scope and answers its result. */
export const maintain = Effect.fn("maintenance.run")(function* (home: string, task: Task) {
  const database = yield* openDatabase(home)
  switch (task.name) {
    case "migrate":
      return yield* Effect.provideContext(migrated, database)
  }
})
