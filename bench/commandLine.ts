/** P7: how long the command line takes, beside Node doing nothing. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Effect } from "effect"
import { makeInstallation, ROOT } from "../test/support/installation.ts"
import { median, ratioAtMost, type Row } from "./Row.ts"

const RUNS = 15

const timed = async (args: ReadonlyArray<string>): Promise<number> => {
  const before = performance.now()
  const child = spawn(process.execPath, [...args], { stdio: "ignore" })
  const [code] = (await once(child, "exit")) as [number | null]
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}`)
  return performance.now() - before
}

export const commandLine: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const choir = yield* makeInstallation({ endpoint: "http://127.0.0.1:9/v1" })
  yield* choir.start
  const choirctl = join(ROOT, "dist/choirctl.js")
  const nothing: Array<number> = []
  const help: Array<number> = []
  const status: Array<number> = []
  // In turns, so that a machine that gets slower meanwhile slows all of them.
  for (let run = 0; run <= RUNS; run++) {
    const figures = yield* Effect.promise(async () => [
      await timed(["-e", "0"]),
      await timed([choirctl, "--help"]),
      await timed([choirctl, "--home", choir.home, "status", "--json"])
    ])
    if (run === 0) continue
    nothing.push(figures[0] ?? 0)
    help.push(figures[1] ?? 0)
    status.push(figures[2] ?? 0)
  }
  const floor = median(nothing)
  return [
    ratioAtMost("P7", "choirctl --help", median(help), "ms", floor, 3.2),
    ratioAtMost("P7", "choirctl status", median(status), "ms", floor, 4)
  ]
}).pipe(Effect.scoped)
