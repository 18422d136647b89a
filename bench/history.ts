/** R66: what a session of 100,000 events takes of the agent's memory, grown and resumed, and how long a prompt takes to make. */
import { readFileSync } from "node:fs"
import { Effect, Result, Schedule } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { corePrompt } from "#src/agent/model/prompt/Prompt.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { WINDOW_REVS_MAX } from "#src/shared/session/lanes.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { type Started, startAgent } from "./agent.ts"
import { onPostgres } from "./postgres.ts"
import { atMost, median, type Row, spread } from "./Row.ts"

const EVENTS = 100_000
const JOBS = 16
/** With ten calls an answer, a step has up to 31 events, and fewer where calls are refused because too many wait. */
const JOB_STEPS = Math.ceil(EVENTS / 20 / JOBS)
const IDENTITY = { user: "", soul: "", soulCore: "" }
const SHOWN: ReadonlySet<ChoirEvent["event_type"]> = new Set(["ModelOutput", "ToolResultCommitted"])
const PROMPTS = 100

/** The most that a process ever had in memory, in MiB. */
const peakMib = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1024

const eventually = <A, E>(look: Effect.Effect<A, E>) =>
  Effect.retry(look, Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(3000)]))

/** The running agent's pid, once choird says that it runs and has everything. */
const settledAgent = ({ choir, choird }: Started, not?: number) =>
  eventually(
    Effect.gen(function* () {
      const pid = yield* Effect.flatMap(choird.agent, Effect.fromOption)
      const { acked_rev, last_rev, status } = yield* choir.api.agents.status({ params: choir.params })
      const ready = pid !== not && status === "running" && acked_rev === last_rev && (last_rev ?? 0) >= EVENTS
      return ready ? pid : yield* Effect.fail("not yet")
    })
  )

/** A core of the session with as many events in its window as there may be: compactions keep it far below that. */
const fullCore = (events: ReadonlyArray<ChoirEvent>): CoreLane => {
  const stop = events.findIndex(({ event_type }) => event_type === "CoreStopped")
  const { cores } = Result.getOrThrow(foldAll(initialState, events.slice(0, stop)))
  const core = [...cores.values()].find(({ lane }) => lane === events[stop]?.lane)
  if (core === undefined) throw new Error("no job of the session stopped")
  const window = events
    .slice(0, stop)
    .filter(({ event_type, lane }) => lane === core.lane && SHOWN.has(event_type))
    .map(({ rev }) => rev)
  return { ...core, window: window.slice(-WINDOW_REVS_MAX) }
}

/** The first prompt makes every message; the next ones find most of them made. */
const promptMs = (events: ReadonlyArray<ChoirEvent>): number => {
  const core = fullCore(events)
  const sources = {
    find: (rev: number) => events[rev - 1],
    identity: IDENTITY,
    isMasked: () => false,
    offered: new Set<string>(),
    skills: new Map(),
    environment: ""
  }
  const times = Array.from({ length: 2 * PROMPTS }, () => {
    const started = performance.now()
    corePrompt(core, sources, events.length)
    return performance.now() - started
  })
  process.stderr.write(
    `R66: ms a prompt of ${core.window.length} events: first ${times[0]}, then ${spread(times.slice(PROMPTS))}\n`
  )
  return median(times.slice(PROMPTS))
}

export const history: Effect.Effect<ReadonlyArray<Row>, unknown> = onPostgres("R66", (options) =>
  Effect.gen(function* () {
    const started = yield* startAgent(options)
    yield* started.jobs(JOBS, "reads", JOB_STEPS, 0)
    const pid = yield* settledAgent(started)
    const grown = peakMib(pid)
    const session_id = yield* Effect.fromNullishOr(started.session_id)
    const events = (yield* started.choir.events(session_id)).map(({ event }) => event)
    const killed = performance.now()
    yield* Effect.sync(() => process.kill(pid, "SIGKILL"))
    const next = yield* settledAgent(started, pid)
    // Its answer says that it holds the whole session again.
    yield* started.turn("read", 1)
    const recovered = performance.now() - killed
    yield* Effect.sync(() =>
      process.stderr.write(`R66: ${events.length} events, an answer ${Math.round(recovered)} ms after the kill\n`)
    )
    return [
      atMost("R66", "agent that made 100,000 events, peak", grown, "MiB", 300),
      atMost("R66", "agent that resumed them, peak", peakMib(next), "MiB", 300),
      atMost("R66", "a prompt at the window's limit", promptMs(events), "ms", 5)
    ]
  }).pipe(Effect.scoped)
)
