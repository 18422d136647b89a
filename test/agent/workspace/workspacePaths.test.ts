import { readdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result } from "effect"
import { fileKey } from "#src/shared/image/lockKey.ts"
import { PathRefused } from "#src/agent/workspace/PathRefused.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { hostilePath } from "../../support/hostilePaths.ts"
import { OUTSIDE_TEXT, temporaryWorkspace } from "../../support/workspace.ts"
import { SIZE } from "../../support/size.ts"

const RUNS = SIZE.workspacePaths

describe("Workspace", () => {
  it.live(
    `R40 refuses ${RUNS} hostile paths or stays inside, and agrees with the lock's key`,
    () =>
      Effect.gen(function* () {
        const { root, outside } = yield* temporaryWorkspace
        symlinkSync(outside, join(root, "out"))
        symlinkSync("/", join(root, "link"))
        const counts = { written: 0, refused: 0 }

        const holds = Effect.fnUntraced(function* (path: string) {
          const workspace = yield* Workspace
          const key = fileKey(path)
          const wrote = yield* Effect.result(workspace.update(path, () => Result.succeed(Buffer.from("mark"))))
          if (Result.isFailure(wrote)) {
            counts.refused++
            // A spelling that names nothing is refused by both; what the disk refuses has a key all the same.
            const bySpelling = wrote.failure.code === undefined && wrote.failure.reason !== "folder"
            return wrote.failure instanceof PathRefused && (!bySpelling || Result.isFailure(key))
          }
          counts.written++
          const at = wrote.success.path
          const resource = at.split("/", 1)[0] === ".choirtmp" ? "choirtmp" : `file:${at}`
          const file = yield* workspace.read(path)
          const real = realpathSync.native(join(root, at))
          return real === join(root, at) && file.path === at && Result.getOrThrow(key) === resource
        })
        const result = yield* Effect.provide(
          Arbitrary.checkEffect(hostilePath, (path) => Effect.orDie(holds(path)), { runs: RUNS, seed: 40 }),
          Workspace.layer({ root })
        )
        assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
        assert.isAbove(counts.written, RUNS / 20)
        assert.isAbove(counts.refused, RUNS / 20)
        assert.deepStrictEqual(readdirSync(join(root, "..")).sort(), ["outside", "root"])
        assert.deepStrictEqual(readdirSync(outside), ["file"])
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
      }),
    600_000
  )
})
