/** `npm run chaos -- --kills N --seed S`: kills of the agent and of choird with real processes; the last line counts them. */
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { chaos } from "../support/chaos.ts"

const options = { kills: { type: "string", default: "200" }, seed: { type: "string", default: "1" } } as const

const main = Effect.gen(function* () {
  const { values } = parseArgs({ options })
  const kills = Number(values.kills)
  let failed = 0
  for (const target of ["agent", "choird"] as const) {
    const started = performance.now()
    const progress = (kill: number) => {
      if (kill % 10 === 0) process.stderr.write(`${target}: ${kill} of ${kills} kills\n`)
    }
    const report = yield* chaos({ target, kills, seed: values.seed, progress })
    const seconds = Math.round((performance.now() - started) / 1000)
    yield* Console.log(
      `${target}: ${report.kills} kills, ${report.messages} messages, ${report.events} events, ${report.problems.length} problems, ${seconds} s`
    )
    for (const problem of report.problems) yield* Console.log(`  ${problem}`)
    failed += report.problems.length === 0 && report.kills === kills ? 0 : 1
  }
  yield* Console.log(`${2 - failed} passed, ${failed} failed`)
  if (failed > 0) return yield* Effect.fail("chaos found problems")
})

NodeRuntime.runMain(main, { disableErrorReporting: true })
