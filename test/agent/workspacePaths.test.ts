import { readdirSync, readFileSync, realpathSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Result, Schema } from "effect"
import { fileKey } from "#src/agent/locks.ts"
import { PathRefused } from "#src/agent/PathRefused.ts"
import { Workspace } from "#src/agent/Workspace.ts"
import { OUTSIDE_TEXT, temporaryWorkspace } from "../support/workspace.ts"

const RUNS = 10_000

const pieces = [
  ..."/ . .. ... ~ a b \0 \n \\ % * - é e\u0301 \u202e \ud800 \udfff 💥 c: file link out outside root".split(" "),
  " ",
  "//",
  "/../",
  "/./",
  "../../",
  "..\u0000",
  "%2e%2e/",
  "\uff0e\uff0e/",
  "/workspace",
  "/workspace/",
  "/workspace/../",
  "/proc/self/root",
  "/proc/self/cwd/",
  "/proc/self/fd/3/",
  "/dev/stdin",
  "/etc/passwd",
  "file:///etc/passwd",
  ".choirtmp/",
  "n".repeat(255),
  "n".repeat(256),
  "n/".repeat(8),
  "n/".repeat(2048),
  "n".repeat(4096)
]
const hostilePath = Arbitrary.map(
  Arbitrary.schema(
    Schema.Array(Schema.Union([Schema.Literals(pieces), Schema.Literals(pieces), Schema.String])).check(
      Schema.isMaxLength(8)
    )
  ),
  (parts) => parts.join("")
)

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
        assert.isAbove(counts.written, 500)
        assert.isAbove(counts.refused, 500)
        assert.deepStrictEqual(readdirSync(join(root, "..")).sort(), ["outside", "root"])
        assert.deepStrictEqual(readdirSync(outside), ["file"])
        assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
      }),
    60_000
  )
})
