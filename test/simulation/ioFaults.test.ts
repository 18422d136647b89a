/** One scenario with one fault at each of its inputs and outputs, in a process of its own: limits are changed while modules load. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { atFull, SIZE } from "../support/size.ts"

const RUN_MS_MAX = 600_000

const ioFaults = (...args: ReadonlyArray<string>) =>
  Effect.callback<ReadonlyArray<string>>((resume) => {
    const child = execFile(
      process.execPath,
      [join(import.meta.dirname, "main.ts"), "--io-faults", ...args],
      { maxBuffer: 64 * 1024 * 1024 },
      (_error, stdout) => resume(Effect.succeed(stdout.trim().split("\n")))
    )
    return Effect.sync(() => child.kill())
  })

describe("one fault at the n-th input or output (R4)", () => {
  it.live(
    `breaks nothing: ${SIZE.ioFaultEvery === 1 ? "each" : `each ${SIZE.ioFaultEvery}th`} meets with one of the faults that concern it`,
    () =>
      Effect.gen(function* () {
        const lines = yield* ioFaults("--mix", "--every", String(SIZE.ioFaultEvery), ...SIZE.simulationWorkers)
        const [, places = "0", faults = "0"] = /^(\d+) inputs and outputs, .* (\d+) faults$/u.exec(lines[0] ?? "") ?? []
        assert.isAbove(Number(places), 300)
        assert.strictEqual(Number(faults), Math.ceil(Number(places) / SIZE.ioFaultEvery))
        assert.strictEqual(lines.at(-1), `${faults} passed, 0 failed`, lines.slice(0, 240).join("\n"))
      }),
    RUN_MS_MAX
  )

  atFull(it.live)(
    "finds a planted bug, and says how to see it again",
    () =>
      Effect.gen(function* () {
        const lines = yield* ioFaults("--kind", "query-unheard", "--from", "340", "--mutant", "stored-twice")
        assert.match(lines.at(-1) ?? "", /^\d+ passed, [1-9]\d* failed$/u)
        const again = lines.find((line) => line.startsWith("run it again: "))
        assert.match(again ?? "", /--io-faults --kind query-unheard --only \d+ --trace$/u)
      }),
    RUN_MS_MAX
  )
})
