import { closeSync, fstatSync, openSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeArchive } from "#src/choirctl/backup/ArchiveWriter.ts"
import { temporaryFolder } from "../../support/engines.ts"

const FILES = 20

describe("the tar of a backup", () => {
  it.live("leaves the descriptors of the files that it copies open to their owner", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const archive = yield* makeArchive(join(folder, "backup"))
      const descriptors = Array.from({ length: FILES }, (_, index) => {
        writeFileSync(join(folder, `${index}`), "text")
        return openSync(join(folder, `${index}`), "r")
      })
      for (const [index, descriptor] of descriptors.entries())
        yield* archive.open(`${index}`, { descriptor, bytes: 4, mode: 0o600, mtime: new Date(0) })
      yield* archive.end
      for (const descriptor of descriptors) {
        assert.isTrue(fstatSync(descriptor).isFile())
        closeSync(descriptor)
      }
    }).pipe(Effect.scoped)
  )
})
