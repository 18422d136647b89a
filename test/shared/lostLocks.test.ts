import { rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { holdArchived } from "#src/choirctl/backup/archivedSessions.ts"
import { takePlace } from "#src/choirctl/backup/restorePlace.ts"
import { lockHome } from "#src/choird/HomeLock.ts"
import { aloneWithFiles } from "#src/shared/files/homeFilesLock.ts"
import { temporaryFolder } from "../support/engines.ts"

/** Work that goes on until its lock is lost, and the file that it holds. */
interface Holder {
  readonly file: (home: string) => string
  readonly hold: (home: string, begun: Effect.Effect<unknown>) => Effect.Effect<unknown, Error, Scope.Scope>
}

const HOLDERS: Readonly<Record<string, Holder>> = {
  "choird and its tasks": {
    file: (home) => join(home, "choird.lock"),
    hold: (home, begun) => Effect.flatMap(lockHome(home), ({ lost }) => Effect.andThen(begun, lost))
  },
  "a change of config.json or secrets.json": {
    file: (home) => join(home, "files.lock"),
    hold: (home, begun) => aloneWithFiles(home)(Effect.andThen(begun, Effect.never))
  },
  "a backup of archived sessions": {
    file: (home) => join(home, "backup.lock"),
    hold: (home, begun) => Effect.flatMap(holdArchived(home), ({ lost }) => Effect.andThen(begun, lost))
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
