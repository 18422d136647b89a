/** `npm run chaos`: kills and stalls of real processes, and what may not come of them. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"
import { configChaos } from "../support/configChaos.ts"
import { programOptions } from "../support/programOptions.ts"
import { stalls } from "./stalls.ts"
import { chaos, type ChaosReport, type Target, TARGETS } from "../support/chaos.ts"

const USAGE = `npm run chaos -- [options]
Kills the agent, choird, Postgres, and choird while its configuration changes, at random moments, and looks for what was lost or done twice.
  --kills N       of each target (200)
  --seed N        of the moments (1)
  --target T      one alone: agent, choird, postgres, configuration, or stalls, which nobody may take for a death
  --minutes N     of stalls (5)
  --database D    embedded, or server for a choird on a Postgres server
  --outage        a minute without Postgres after its kills
The last line counts the targets; the exit code is 1 when one failed.`

const options = {
  kills: { type: "string", default: "200" },
  seed: { type: "string", default: "1" },
  target: { type: "string" },
  minutes: { type: "string", default: "5" },
  database: { type: "string", default: "embedded" },
  outage: { type: "boolean", default: false }
} as const

const OUTAGE_MS = 60_000

const ALL = [...TARGETS, "configuration"] as const
const CHOICES = [...ALL, "stalls"] as const

/** The slowest and the middle one of the times that catching up took. */
const catchingUp = (times: ReadonlyArray<number>): string => {
  if (times.length === 0) return ""
  const sorted = times.toSorted((a, b) => a - b).map(Math.round)
  return `, caught up in ${sorted[sorted.length >> 1]} ms, at most ${sorted.at(-1)} ms`
}

const line = (target: Target, seconds: number, { catch_ups_ms, events, kills, messages, problems }: ChaosReport) =>
  `${target}: ${kills} kills, ${messages} messages, ${events} events, ${problems.length} problems, ${seconds} s${catchingUp(catch_ups_ms)}`

const { oneOf, positive, values } = programOptions(USAGE, options)
const { outage, seed } = values
const kills = positive("kills", values.kills)
const minutes = positive("minutes", values.minutes)
const database = oneOf("database", values.database, ["embedded", "server"])
const targets = values.target === undefined ? ALL : [oneOf("target", values.target, CHOICES)]

const main = Effect.gen(function* () {
  let failed = 0
  for (const target of targets) {
    const started = performance.now()
    const progress = (kill: number) => {
      if (kill % 10 === 0) process.stderr.write(`${target}: ${kill}${target === "stalls" ? "" : ` of ${kills}`}\n`)
    }
    if (target === "stalls") {
      const {
        choirds,
        hang_ms,
        messages,
        problems,
        stalls: count
      } = yield* stalls({
        minutes,
        seed,
        progress
      })
      yield* Console.log(
        `${target}: ${count} stalls, ${choirds} of choird, ${messages} messages, ${problems.length} problems; a hang was seen after ${hang_ms} ms`
      )
      for (const problem of problems) yield* Console.log(`  ${problem}`)
      failed += problems.length === 0 ? 0 : 1
      continue
    }
    if (target === "configuration") {
      const { applied, problems, seen, version } = yield* configChaos({ kills, seed, progress })
      const seconds = Math.round((performance.now() - started) / 1000)
      yield* Console.log(
        `${target}: ${kills} kills, ${applied} changes, ${seen} looks, version ${version}, ${problems.length} problems, ${seconds} s`
      )
      for (const problem of problems) yield* Console.log(`  ${problem}`)
      failed += problems.length === 0 ? 0 : 1
      continue
    }
    const report = yield* chaos({ target, database, kills, seed, progress, outage_ms: outage ? OUTAGE_MS : 0 })
    yield* Console.log(line(target, Math.round((performance.now() - started) / 1000), report))
    for (const problem of report.problems) yield* Console.log(`  ${problem}`)
    failed += report.problems.length === 0 && report.kills === kills ? 0 : 1
  }
  yield* Console.log(`${targets.length - failed} passed, ${failed} failed`)
  if (failed > 0) return yield* Effect.fail("chaos found problems")
})

NodeRuntime.runMain(main)
