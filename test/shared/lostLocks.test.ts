import { rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, type Scope } from "effect"
import { Command } from "effect/cli"
import { TestClock } from "effect/testing"
import { holdArchived } from "#src/choirctl/backup/archivedSessions.ts"
import { backupHome } from "#src/choirctl/backup/backupHome.ts"
import { takePlace } from "#src/choirctl/backup/restorePlace.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { lockHome } from "#src/choird/HomeLock.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { temporaryFolder } from "../support/engines.ts"

/** Work that goes on until its lock is lost, and the file that it holds. */
interface Holder {
  readonly file: (home: string) => string
  readonly hold: (home: string, begun: Effect.Effect<unknown>) => Effect.Effect<unknown, Error, Scope.Scope>
}

const OWNER_ONLY = { mode: 0o600 }

const HOLDERS: Readonly<Record<string, Holder>> = {
  "choird and its tasks": {
    file: (home) => join(home, "choird.lock"),
    hold: (home, begun) => Effect.flatMap(lockHome(home), ({ lost }) => Effect.andThen(begun, lost))
  },
  "a change of config.json or secrets.json": {
    file: (home) => join(home, "files.lock"),
    hold: (home, begun) => withHomeFilesLock(home)(Effect.andThen(begun, Effect.never))
  },
  "a backup of archived sessions": {
    file: (home) => join(home, "backup.lock"),
    hold: (home, begun) => Effect.flatMap(holdArchived(home), ({ lost }) => Effect.andThen(begun, lost))
  },
  "a backup, which holds its own file": {
    file: (home) => join(dirname(home), `.${basename(home)}.tar.gz.lock`),
    hold: (home, begun) => {
      const backup = backupHome<never>({
        home,
        file: `${home}.tar.gz`,
        version: "0.1.0",
        workspaces: false,
        archives: false,
        secrets: false,
        passphrase: undefined,
        // The lock is lost while the database is copied, of which this home has none.
        step: (name) => (work) => (name === "copying the database" ? Effect.andThen(begun, Effect.never) : work)
      })
      writeFileSync(join(home, "config.json"), JSON.stringify({ global_repo: { url: "/global" } }), OWNER_ONLY)
      writeFileSync(join(home, "secrets.json"), "{}", OWNER_ONLY)
      const command = root.pipe(Command.withSubcommands([Command.make("work", {}, () => backup)]))
      return Effect.provide(
        Command.runWith(command, { version: "0" })(["--home", home, "work"]),
        Layer.merge(NodeServices.layer, Screen.layer)
      )
    }
  },
  "a restore": {
    file: (home) => join(dirname(home), `.${basename(home)}.restore.lock`),
    hold: (home, begun) => Effect.flatMap(takePlace(home), ({ lost }) => Effect.andThen(begun, lost))
  }
}

describe("a lock that is lost ends its holder", () => {
  for (const [name, { file, hold }] of Object.entries(HOLDERS))
    it.effect(name, () =>
      Effect.gen(function* () {
        const home = yield* temporaryFolder
        const begun = yield* Deferred.make<void>()
        const work = Effect.scoped(hold(home, Deferred.succeed(begun, undefined)))
        const holder = yield* Effect.forkScoped(Effect.flip(work), { startImmediately: true })
        yield* Deferred.await(begun)
        yield* TestClock.adjust("1 minute")
        assert.isUndefined(holder.pollUnsafe())
        rmSync(file(home))
        yield* TestClock.adjust("2 seconds")
        assert.match((yield* Fiber.join(holder)).message, /was removed or replaced/u)
      }).pipe(Effect.scoped)
    )
})
