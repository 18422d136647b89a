/**
 * P1, P2, P3 and R61: what a durable step costs beside the same requests and the same tool work in a bare loop. choird, the agent,
 * the model and the loop are processes, the store is a Postgres with fsync. A step is one model call and one tool call; it is
 * measured by the model, from request to request, on both sides alike (docs/performance.md).
 */
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { rolldown } from "rolldown"
import { type InstallationOptions, ROOT } from "../test/support/installation.ts"
import { startAgent, type Started } from "./agent.ts"
import type { Run } from "./model.ts"
import { onPostgres } from "./postgres.ts"
import { median, ratioAtLeast, ratioAtMost, type Row, spread } from "./Row.ts"

/** Tool calls of a turn. */
const TURN = 20
const TURNS = 30
const LANES = 16
/** Turns that each lane has in one round. */
const LANE_TURNS = 3
const LANE_ROUNDS = 5
const WARM_UPS = 3
const LANE_TURNS_PER_SECOND = 80
const JOBS = 32
const JOB_STEPS = 20
const SLOW_MODEL_MS = 200
/** Between two rounds, so that none begins in the other's wake, nor at the rate limit of the agent's socket. */
const PAUSE_MS = 600
const LANES_PAUSE_MS = 3000

const tell = (text: string) => Effect.sync(() => void process.stderr.write(`${text}\n`))

const first = ({ at_ms }: Run): number => at_ms[0] ?? 0
const last = ({ at_ms }: Run): number => at_ms.at(-1) ?? 0
const stepMs = (run: Run): number => (last(run) - first(run)) / (run.at_ms.length - 1)

/** Tool calls a second of all lanes together. */
const rate = (runs: ReadonlyArray<Run>): number => {
  const steps = runs.reduce((total, { at_ms }) => total + at_ms.length - 1, 0)
  return (steps * 1000) / (Math.max(...runs.map(last)) - Math.min(...runs.map(first)))
}

/** Lets the compiler see both sides often enough. */
const warmUp = Effect.fnUntraced(function* ({ jobs, raw }: Started) {
  for (let round = 0; round < WARM_UPS; round++) {
    const [done] = yield* jobs(LANES, "read", TURN * LANE_TURNS, 0)
    yield* Effect.sleep(LANES_PAUSE_MS)
    yield* Effect.flatMap(Effect.fromNullishOr(done), (run) => raw(run, LANES))
  }
})

/** Turns of both sides, in turn. */
const turns = Effect.fnUntraced(function* (id: string, { raw, turn }: Started) {
  const ours: Array<number> = []
  const floor: Array<number> = []
  for (let round = -1; round < TURNS; round++) {
    const done = yield* turn("read", TURN)
    const bare = yield* raw(done, 1)
    yield* Effect.sleep(PAUSE_MS)
    if (round < 0) continue
    ours.push(stepMs(done))
    floor.push(...bare.map(stepMs))
  }
  yield* tell(`${id}: ms a step: agent ${spread(ours)}, raw ${spread(floor)}`)
  return { ours: median(ours), floor: median(floor) }
})

const lanes = Effect.fnUntraced(function* ({ jobs, raw }: Started) {
  const ours: Array<number> = []
  const floor: Array<number> = []
  for (let round = 0; round < LANE_ROUNDS; round++) {
    const done = yield* jobs(LANES, "read", TURN * LANE_TURNS, 0)
    yield* Effect.sleep(LANES_PAUSE_MS)
    const bare = yield* Effect.flatMap(Effect.fromNullishOr(done[0]), (run) => raw(run, LANES))
    ours.push(rate(done) / TURN)
    floor.push(rate(bare) / TURN)
  }
  yield* tell(`P3: turns/s of ${LANES} lanes: agent ${spread(ours)}, raw ${spread(floor)}`)
  return { ours: median(ours), floor: median(floor) }
})

const slowJobs = Effect.fnUntraced(function* ({ jobs }: Started) {
  const one = rate(yield* jobs(1, "write", JOB_STEPS, SLOW_MODEL_MS))
  const all = rate(yield* jobs(JOBS, "write", JOB_STEPS, SLOW_MODEL_MS))
  yield* tell(`R61: steps/s with a model of ${SLOW_MODEL_MS} ms: 1 job ${one}, ${JOBS} jobs ${all}`)
  return { one, all }
})

/** The bundles with an agent for which reading a file is an external effect: the least that such a tool can cost. */
const externalReads = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-bench-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const programs = join(folder, "dist")
  cpSync(join(ROOT, "dist"), programs, { recursive: true })
  cpSync(join(ROOT, "package.json"), join(folder, "package.json"))
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"))
  yield* Effect.promise(async () => {
    let replaced = 0
    const bundle = await rolldown({
      input: join(ROOT, "src/agent/main.ts"),
      platform: "node",
      plugins: [
        {
          name: "external-reads",
          transform(code, id) {
            if (!id.endsWith("/tools/fsRead.ts")) return null
            replaced += 1
            return code.replace('effect: "none"', 'effect: "external"')
          }
        }
      ]
    })
    const file = join(programs, "choir-agent.js")
    await bundle.write({ file, format: "esm", codeSplitting: false, minify: true })
    if (replaced !== 1) throw new Error("src/agent/tools/fsRead.ts is not where it was")
  })
  return programs
})

/** P3 is reached by either figure. */
const enough = (row: Row): Row => ({ ...row, ok: row.ok || row.value >= LANE_TURNS_PER_SECOND })

const localFirst = (options: Partial<InstallationOptions>) =>
  Effect.gen(function* () {
    const started = yield* startAgent(options)
    yield* warmUp(started)
    const step = yield* turns("P1", started)
    const wide = yield* lanes(started)
    const slow = yield* slowJobs(started)
    return [
      ratioAtMost("P1", "local-first durable step", step.ours, "ms", step.floor, 2),
      enough(
        ratioAtLeast("P3", `turns of ${TURN} steps, ${LANES} lanes (or 80)`, wide.ours, "turns/s", wide.floor, 0.48)
      ),
      ratioAtLeast("R61", `${JOBS} jobs beside one, model of ${SLOW_MODEL_MS} ms`, slow.all, "steps/s", slow.one, 25)
    ]
  }).pipe(Effect.scoped)

const synchronous = (options: Partial<InstallationOptions>) =>
  Effect.gen(function* () {
    const programs = yield* externalReads
    const started = yield* startAgent({ ...options, programs })
    yield* warmUp(started)
    const step = yield* turns("P2", started)
    return [ratioAtMost("P2", "synchronous step (intent acknowledged)", step.ours, "ms", step.floor, 3.5)]
  }).pipe(Effect.scoped)

export const steps: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  return [...(yield* onPostgres("P1, P3, R61", localFirst)), ...(yield* onPostgres("P2", synchronous))]
})
