/** The simulation over its fixed seeds, in processes of its own: the text of some modules is changed while it is loaded. */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../support/gitRepo.ts"
import { SIZE } from "../support/size.ts"

const SEEDS = SIZE.seeds
const RUN_MS_MAX = 1_200_000

/** Events of each kind that a seed stores on average, at the least: a world in which nothing happens breaks no invariant either. */
const STORED_MIN: Readonly<Record<string, number>> = {
  UserMsg: 10,
  ModelOutput: 30,
  AgentMessage: 30,
  "ToolResultCommitted/success": 20,
  "ToolResultCommitted/rejected": 5,
  CoreStarted: 3,
  "CoreStopped/completed": 1,
  CompactionCommitted: 3,
  Cancelled: 3,
  InjectedInstruction: 10,
  SkillTransitionCommitted: 0.5
}

const storedIn = (line: string): ReadonlyMap<string, number> =>
  new Map([...line.matchAll(/([A-Z][\w/]*) (\d+)/gu)].map(([, kind = "", count]) => [kind, Number(count)]))

const MAIN = join(import.meta.dirname, "main.ts")

/** What a run printed, whether it succeeded or not. */
const sim = (...args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly code: number; readonly lines: ReadonlyArray<string> }>((resume) => {
    const child = execFile(process.execPath, [MAIN, ...args], { maxBuffer: 64 * 1024 * 1024 }, (error, stdout) =>
      resume(Effect.succeed({ code: error === null ? 0 : 1, lines: stdout.trim().split("\n") }))
    )
    return Effect.sync(() => child.kill())
  })

describe("the simulation", () => {
  it.live(
    `keeps every invariant over ${SEEDS} seeds, and does the same for the same seed (R6, R8, R10, R14, R20, R23, R25, R42, R43, I18)`,
    () =>
      Effect.gen(function* () {
        const log = join(yield* temporaryFolder, "seeds")
        const { code, lines } = yield* sim("--seeds", String(SEEDS), "--log", log, ...SIZE.simulationWorkers)
        assert.strictEqual(lines.at(-1), `${SEEDS} passed, 0 failed`, lines.slice(0, 240).join("\n"))
        assert.strictEqual(code, 0)
        const stored = storedIn(lines.at(-2) ?? "")
        const few = Object.entries(STORED_MIN).filter(([kind, each]) => (stored.get(kind) ?? 0) < each * SEEDS)
        assert.deepStrictEqual(few, [], lines.at(-2))

        // The file has them all: nothing is run a second time, and nothing of another run is counted.
        const known = yield* sim("--seeds", String(SEEDS), "--log", log)
        assert.match(known.lines[0] ?? "", /^0 in /u)
        assert.deepStrictEqual(known.lines.slice(-2), lines.slice(-2))
        assert.strictEqual((yield* sim("--seeds", String(SEEDS), "--mode", "safety", "--log", log)).code, 1)

        // The last ones again, the first of a process this time: nothing of a seed depends on those before it.
        const from = String(SEEDS - SIZE.seedsTwice + 1)
        const again = yield* sim("--seeds", String(SIZE.seedsTwice), "--from", from, "--workers", "1")
        const first = new Set(readFileSync(log, "utf8").split("\n"))
        assert.deepStrictEqual(
          again.lines.filter((line) => !first.has(line)),
          []
        )
        assert.lengthOf(new Set(again.lines), SIZE.seedsTwice)
      }).pipe(Effect.scoped),
    RUN_MS_MAX
  )

  it.live(
    "says of a failure what it needs and how to run it again",
    () =>
      Effect.gen(function* () {
        const { code, lines } = yield* sim("--seeds", "1", "--from", "2", "--mutant", "no-intent-barrier", "--trace")
        assert.strictEqual(code, 1)
        assert.match(lines[0] ?? "", /^seed 2 failed: I5: /u)
        assert.isTrue(lines.some((line) => line.startsWith("it still fails with: ")))
        const again = lines.find((line) => line.startsWith("run it again: "))
        assert.match(again ?? "", /main\.ts --seeds 1 --from 2 --mode safety .*--mutant no-intent-barrier$/u)
        assert.strictEqual(lines.at(-1), "0 passed, 1 failed")
      }),
    RUN_MS_MAX
  )

  it.live(
    "finds nothing again that was found before",
    () =>
      Effect.gen(function* () {
        const { code, lines } = yield* sim("--regressions")
        assert.strictEqual(code, 0, lines.join("\n"))
      }),
    RUN_MS_MAX
  )
})
