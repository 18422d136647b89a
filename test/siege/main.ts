/** `npm run siege`: hostile agents of every kind beside three honest ones, and what that costs the honest ones. */
import { loadavg } from "node:os"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"
import { programOptions } from "../support/programOptions.ts"
import { sandboxWorks } from "./runtime.ts"
import type { Times } from "./figures.ts"
import { KINDS } from "./kinds.ts"
import { siege } from "./siege.ts"

const USAGE = `npm run siege -- [options]
Lets one hostile agent of each kind attack beside three honest ones, in windows between quiet ones, and compares the honest ones' answers.
  --minutes N     of all kinds at once (10); quiet windows and one of each kind alone come on top
  --seed N        of the order and the pauses (1)
  --kind K        one alone, by its name
  --each N        seconds of each kind alone (10), 0 for none
  --database D    embedded, or server for a choird on a Postgres server
  --runtime R     sandbox where bubblewrap works, else process
The last line counts the checks; the exit code is 1 when one failed.`

const options = {
  minutes: { type: "string", default: "10" },
  seed: { type: "string", default: "1" },
  kind: { type: "string" },
  each: { type: "string", default: "10" },
  database: { type: "string", default: "embedded" },
  runtime: { type: "string" }
} as const

const RATIO_MAX = 2
const GROWN_MIB_MAX = 100
const WINDOWS = { first_ms: 40_000, quiet_ms: 15_000, all_ms: 60_000, settle_ms: 3000 }

const { oneOf, positive, values } = programOptions(USAGE, options)
const minutes = positive("minutes", values.minutes)
const each_ms = values.each === "0" ? 0 : 1000 * positive("each", values.each)
const database = oneOf("database", values.database, ["embedded", "server"])
const names = KINDS.map(({ id }) => id as string)
const one = values.kind === undefined ? undefined : oneOf("kind", values.kind, names)
const kinds = one === undefined ? KINDS : KINDS.filter(({ id }) => id === one)
const runtime = values.runtime === undefined ? undefined : oneOf("runtime", values.runtime, ["sandbox", "process"])

const row = (name: string, { most_ms, p50_ms, p99_ms, turns }: Times) =>
  `${name.padEnd(14)} ${String(turns).padStart(6)} turns  p50 ${p50_ms.toFixed(0).padStart(6)}  p99 ${p99_ms.toFixed(0).padStart(6)}  most ${most_ms.toFixed(0).padStart(6)} ms`

const main = Effect.gen(function* () {
  const windows = { ...WINDOWS, one_ms: one === undefined ? each_ms : 0 }
  const chosen = runtime ?? ((yield* sandboxWorks) ? "sandbox" : "process")
  const progress = (what: string) => void process.stderr.write(`${what}, load ${loadavg()[0]?.toFixed(1)}\n`)
  const it = yield* siege({ minutes, seed: values.seed, kinds, database, runtime: chosen, windows, progress })
  const ratio = ({ p50_ms, p99_ms }: Times) =>
    `  p50 x${(p50_ms / it.quiet.p50_ms).toFixed(2)}  p99 x${(p99_ms / it.quiet.p99_ms).toFixed(2)}`
  yield* Console.log(
    `${chosen}, ${database} database, ${kinds.length} hostile agents, ${it.messages} messages, ${it.events} events`
  )
  yield* Console.log(row("quiet", it.quiet))
  yield* Console.log(row("all at once", it.all) + ratio(it.all))
  yield* Console.log(
    "median and slowest hundredth of each stage in ms: until choird has the message, the agent, its answer, the person"
  )
  yield* Console.log(`quiet          ${it.stages.quiet}`)
  yield* Console.log(`all at once    ${it.stages.all}`)
  for (const { kind, rss_mib, times } of it.each)
    yield* Console.log(`${row(kind.id, times)}${ratio(times)}  choird ${rss_mib.toFixed(0)} MiB`)
  for (const { id, tries } of kinds) yield* Console.log(`${id}: ${tries}: ${it.told[id]}`)
  yield* Console.log(
    `load average ${loadavg()
      .map((each) => each.toFixed(1))
      .join(" ")}`
  )
  const grown = it.rss.most - it.rss.before
  const checks = [
    [
      `the honest agents' p99 is ${(it.all.p99_ms / it.quiet.p99_ms).toFixed(2)} times the quiet one, at most ${RATIO_MAX}`,
      it.all.p99_ms <= RATIO_MAX * it.quiet.p99_ms
    ],
    [
      `choird took ${it.rss.before.toFixed(0)} MiB before and ${it.rss.most.toFixed(0)} MiB at most, at most ${GROWN_MIB_MAX} more`,
      grown <= GROWN_MIB_MAX
    ],
    [`every hostile agent stopped within ${it.stop_ms.toFixed(0)} ms`, true],
    [`${it.problems.length} problems: nothing lost, nothing twice, nothing seen`, it.problems.length === 0]
  ] as const
  for (const [what, ok] of checks) yield* Console.log(`${ok ? "held  " : "MISSED"} ${what}`)
  for (const problem of it.problems.slice(0, 40)) yield* Console.log(`  ${problem}`)
  const failed = checks.filter(([, ok]) => !ok).length
  yield* Console.log(`${checks.length - failed} passed, ${failed} failed`)
  if (failed > 0) return yield* Effect.fail("the siege found problems")
})

NodeRuntime.runMain(main)
