/**
 * `npm run chaos -- --kills N --seed S`: kills of the agent, of choird and of Postgres with real processes, and of
 * choird while its configuration changes. Options: `--target agent|choird|postgres|configuration` for one of them alone,
 * `--target stalls --minutes N` for stalls of the agent and of choird that nobody may take for a death,
 * `--database server` for a choird on a Postgres server, `--outage` for a minute
 * without Postgres after its kills. The last line counts the targets.
 */
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { configChaos } from "../support/configChaos.ts"
import { stalls } from "../support/stalls.ts"
import { chaos, type ChaosReport, type Target, TARGETS } from "../support/chaos.ts"

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
const isTarget = (text: string): text is (typeof CHOICES)[number] => CHOICES.some((target) => target === text)

/** The slowest and the middle one of the times that catching up took. */
const catchingUp = (times: ReadonlyArray<number>): string => {
  if (times.length === 0) return ""
  const sorted = times.toSorted((a, b) => a - b).map(Math.round)
  return `, caught up in ${sorted[sorted.length >> 1]} ms, at most ${sorted.at(-1)} ms`
}

const line = (target: Target, seconds: number, { catch_ups_ms, events, kills, messages, problems }: ChaosReport) =>
  `${target}: ${kills} kills, ${messages} messages, ${events} events, ${problems.length} problems, ${seconds} s${catchingUp(catch_ups_ms)}`

const { values } = parseArgs({ options })
const { database, outage, seed, target: one } = values
const kills = Number(values.kills)
if (one !== undefined && !isTarget(one)) throw new Error(`there is no target ${one}`)
if (database !== "embedded" && database !== "server") throw new Error(`there is no database ${database}`)
const targets = one === undefined ? ALL : [one]

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
        minutes: Number(values.minutes),
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
