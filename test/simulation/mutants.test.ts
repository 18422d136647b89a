/** Whether the simulation finds bugs at all: each planted one by the seed that is known to find it, and a fresh seed runs. */
import { execFile, execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { MUTANTS } from "./mutants.ts"
import { SIZE } from "../support/size.ts"

/** Size `ci` looks for some of them, `full` for all. */
const TRIED = MUTANTS.filter((_, at) => at % SIZE.mutantStep === 0)

const ROOT = join(import.meta.dirname, "../..")
const HUNT_MS_MAX = 1_800_000
/** Seeds that are tried for a bug that its known seed misses: a hunt for a rare one would take minutes. */
const HUNTED_SEEDS_MAX = 30

/** Other seeds for each commit, the same for all who test it. */
const freshFrom = (): number => {
  try {
    return 10_000 + Number.parseInt(execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).slice(0, 6), 16)
  } catch {
    return 10_000
  }
}

/** What a mutant's process says when its known seed does not find it. */
const hunt = (name: string, from: number) =>
  Effect.callback<string | undefined>((resume) => {
    const fresh = ["--fresh", String(SIZE.freshSeeds), "--from", String(from)]
    const args = ["--mutant", name, ...fresh, "--seeds", String(HUNTED_SEEDS_MAX)]
    const child = execFile(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], (error, stdout, stderr) =>
      resume(Effect.succeed(error === null ? undefined : `${name}: ${stdout}${stderr}${error.signal ?? error.code}`))
    )
    return Effect.sync(() => child.kill())
  })

describe("planted bugs", () => {
  it.live(
    `are found, ${TRIED.length} of ${MUTANTS.length}`,
    () =>
      Effect.gen(function* () {
        const from = freshFrom()
        const missed = yield* Effect.forEach(TRIED, ({ name }) => hunt(name, from), {
          concurrency: availableParallelism()
        })
        assert.deepStrictEqual(
          missed.filter((text) => text !== undefined),
          [],
          "find new known seeds with: npm run sim -- --known-seeds"
        )
      }),
    HUNT_MS_MAX
  )

  it("stand in the text that they change", () => {
    const lost = MUTANTS.flatMap(({ also = [], ...mutant }) =>
      [mutant, ...also].flatMap((edit) => {
        const parts = readFileSync(join(ROOT, edit.file), "utf8").split(edit.find)
        return parts.length === 2 ? [] : [`${mutant.name}: ${String(edit.find)} in ${edit.file}`]
      })
    )
    assert.deepStrictEqual(lost, [])
  })

  it("have names of their own", () => {
    assert.lengthOf(new Set(MUTANTS.map(({ name }) => name)), MUTANTS.length)
  })
})
