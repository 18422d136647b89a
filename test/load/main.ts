/** `npm run load`: many agents at a steady rate on a Postgres server (R60, R13). */
import { loadavg } from "node:os"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect } from "effect"
import { programOptions } from "../support/programOptions.ts"
import { load } from "./load.ts"

const USAGE = `npm run load -- [options]
  --minutes N     how long (5)
  --agents N      (20)
  --jobs N        of each agent (5)
  --rate N        events a second of all agents together (500)
R60 is what it does without options; one agent with 5 jobs and 200 events a second is R13. The exit code is 1 when a target is missed.`

const { positive, values } = programOptions(USAGE, {
  minutes: { type: "string", default: "5" },
  agents: { type: "string", default: "20" },
  jobs: { type: "string", default: "5" },
  rate: { type: "string", default: "500" }
})
const minutes = positive("minutes", values.minutes)
const agents = positive("agents", values.agents)
const jobs = positive("jobs", values.jobs)
const rate = positive("rate", values.rate)

/** What R13 allows one agent, and R60 many. */
const P99_MS_MAX = agents === 1 ? 100 : 250
const CPU_PERCENT_MAX = 70
const RSS_MIB_MAX = 500
/** The rate counts as held within a tenth. */
const RATE_MIN = 0.9 * rate

const main = Effect.gen(function* () {
  const it = yield* load({ agents, jobs, rate, minutes })
  const rows = [
    ["events a second", it.events_per_second, `>= ${RATE_MIN}`, it.events_per_second >= RATE_MIN],
    ["visible events stored, p50 ms", it.p50_ms, "", true],
    ["visible events stored, p99 ms", it.p99_ms, `<= ${P99_MS_MAX}`, it.p99_ms <= P99_MS_MAX],
    ["choird, % of a core", it.choird_cpu_percent, `<= ${CPU_PERCENT_MAX}`, it.choird_cpu_percent <= CPU_PERCENT_MAX],
    ["choird, MiB", it.choird_rss_mib, `<= ${RSS_MIB_MAX}`, it.choird_rss_mib <= RSS_MIB_MAX],
    ["all agents, MiB", it.agents_rss_mib, "", true],
    ["errors", it.errors.length, "<= 0", it.errors.length === 0]
  ] as const
  yield* Console.log(`${agents} agents, ${agents * jobs} jobs, ${minutes} min, ${it.visible} visible events`)
  for (const [name, value, target, ok] of rows)
    yield* Console.log(`${name.padEnd(32)} ${value.toFixed(1).padStart(9)}  ${target.padEnd(8)} ${ok ? "" : "MISSED"}`)
  for (const error of it.errors.slice(0, 20)) yield* Console.log(`  ${error}`)
  yield* Console.log(`load average ${loadavg()[0]?.toFixed(1)}`)
  if (rows.some(([, , , ok]) => !ok)) return yield* Effect.fail("a target is missed")
})

NodeRuntime.runMain(main)
