/**
 * Honest agents beside hostile ones on one choird: quiet windows and attacked ones in turn, so that whatever else the machine does falls
 * on both, then what became of everybody.
 */
import { Effect, Fiber, Option, Random, Schedule, Stream } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { ALL, cpuOf, QUIET, stageTimes, type Times, timesOf, watchMemory, type Window } from "./figures.ts"
import { type HomeOptions, HONEST, openSiege, type Siege } from "./home.ts"
import { makeHonest } from "./honest.ts"
import { type Kind, PACKED } from "./kinds.ts"
import { operator } from "../support/installation.ts"
import { attacksOf, judge } from "./judge.ts"

export interface SiegeOptions extends HomeOptions {
  /** How long all kinds attack at once, altogether. */
  readonly minutes: number
  readonly seed: string
  readonly windows: {
    readonly first_ms: number
    readonly quiet_ms: number
    readonly one_ms: number
    readonly all_ms: number
    readonly settle_ms: number
  }
  readonly progress?: (what: string) => void
}

export interface SiegeReport {
  readonly quiet: Times
  readonly all: Times
  /** Where the time of answers went in both kinds of windows, in words. */
  readonly stages: { readonly quiet: string; readonly all: string }
  readonly each: ReadonlyArray<{ readonly kind: Kind; readonly times: Times; readonly rss_mib: number }>
  /** choird's resident memory at most, in MiB: before any attack, in quiet windows, and at all. */
  readonly rss: { readonly before: number; readonly quiet: number; readonly most: number }
  readonly messages: number
  readonly events: number
  /** What the attacks did, by kind. */
  readonly told: Readonly<Record<string, string>>
  /** How long the slowest stop of a hostile agent took in the midst of everything. */
  readonly stop_ms: number
  readonly problems: ReadonlyArray<string>
}

const ANSWER_MS_MAX = 20_000
const STOP_MS_MAX = 120_000
/** The first attack of some only prepares the others. */
const ATTACKS_MIN = 2
/** Its messages are read, as an open terminal does. */
const FLOODED = "cards"
const FIRST_QUIET = "before"
/** After all windows, when the test itself reads every log through choird. */
const JUDGED = "judged"

/** The person of a hostile agent whose model is told what to do, again and again while it attacks. */
const drive = Effect.fnUntraced(function* (
  { choir, packed, session }: Siege,
  { id, words }: Kind,
  goes: () => boolean
) {
  const api = yield* operator(choir.home)
  const params = { id }
  let answered = 0
  const terminal = Stream.unwrap(api.chat.stream({ params })).pipe(
    Stream.runForEach(({ data }) => {
      if (data.type !== "message") return Effect.void
      if (data.in_reply_to !== null && data.kind !== "notice") answered += 1
      return api.chat.ack({ params, payload: { outbox_ids: [data.outbox_id] } })
    }),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("200 millis"))
  )
  yield* Effect.forkScoped(terminal)
  if (words === undefined) return
  let n = 0
  const once = Effect.gen(function* () {
    if (!goes()) return yield* Effect.sleep("100 millis")
    const before = answered
    n += 1
    const text = words(n, session(id)).replace(PACKED, packed)
    yield* api.chat.send({ params, payload: { client_id: `${id}-${n}`, text } })
    const waits = Effect.suspend(() => (answered > before ? Effect.void : Effect.fail("not yet")))
    yield* Effect.retry(waits, Schedule.spaced("50 millis")).pipe(Effect.timeoutOption(ANSWER_MS_MAX))
  })
  yield* Effect.forkScoped(Effect.forever(Effect.catchCause(once, () => Effect.sleep("500 millis"))))
})

/** Starts again what was given up, so that it can attack once more. */
const revive = Effect.fnUntraced(function* ({ choir }: Siege, kinds: ReadonlyArray<Kind>) {
  for (const { id } of kinds) {
    const { status } = yield* choir.api.agents.status({ params: { id } })
    if (status === "crashed" || status === "stopped")
      yield* Effect.ignore(choir.api.agents.start({ params: { id }, payload: {} }))
  }
})

/** Waits for programs that had hardly a turn within their windows, as on a busy machine. */
const allAttacked = (it: Siege, kinds: ReadonlyArray<Kind>) =>
  Effect.forEach(
    kinds.filter(({ words }) => words === undefined),
    ({ id }) =>
      Effect.gen(function* () {
        const { status } = yield* it.choir.api.agents.status({ params: { id } })
        if (status === "running" && attacksOf(it, id) < ATTACKS_MIN) return yield* Effect.fail("not yet")
      }).pipe(Effect.retry(Schedule.spaced("100 millis")), Effect.timeoutOption(ANSWER_MS_MAX)),
    { concurrency: "unbounded", discard: true }
  )

const stopAll = (choir: Siege["choir"], ids: ReadonlyArray<AgentId>, problems: Array<string>) =>
  Effect.forEach(
    ids,
    Effect.fnUntraced(function* (id) {
      const began_ms = performance.now()
      const stopped = yield* choir.api.agents
        .stop({ params: { id } })
        .pipe(Effect.timeoutOption(STOP_MS_MAX), Effect.result)
      const done = stopped._tag === "Success" && Option.isSome(stopped.success)
      if (!done) problems.push(`${id} could not be stopped: ${JSON.stringify(stopped)}`.slice(0, 300))
      return performance.now() - began_ms
    })
  )

export const siege = Effect.fnUntraced(
  function* (options: SiegeOptions) {
    const { kinds, minutes, progress, windows: lengths } = options
    const it = yield* openSiege(options)
    progress?.(`${HONEST.length} honest and ${kinds.length} hostile agents run`)
    const honest = yield* Effect.forEach(HONEST, (id) => makeHonest(it.choir.home, id))
    const windows: Array<Window> = []
    const problems: Array<string> = []
    let going: ReadonlyArray<Kind> = []
    let label = FIRST_QUIET
    // Programs have no use for a terminal, but for the one that floods it.
    for (const kind of kinds)
      if (kind.words !== undefined || kind.id === FLOODED) yield* drive(it, kind, () => going.includes(kind))
    const most = yield* watchMemory(it.choird.pid, () => label)
    const talks = yield* Effect.forEach(honest, ({ talk }) => Effect.forkScoped(talk))

    const open = Effect.fnUntraced(function* (of: string, attackers: ReadonlyArray<Kind>, ms: number) {
      going = attackers
      label = of
      yield* revive(it, attackers)
      it.let(attackers)
      yield* Effect.sleep(lengths.settle_ms)
      const from_ms = performance.now()
      const cpu_s = cpuOf(it.choird.pid)
      yield* Effect.sleep(ms)
      windows.push({ of, from_ms, until_ms: performance.now() })
      const busy = (100_000 * (cpuOf(it.choird.pid) - cpu_s)) / ms
      const { p50_ms, p99_ms, turns } = timesOf(
        honest.flatMap((each) => each.turns),
        windows.slice(-1),
        of
      )
      const took = `${turns} turns, p50 ${p50_ms.toFixed(0)} ms, p99 ${p99_ms.toFixed(0)} ms`
      progress?.(`${of}: ${took}, choird ${Math.round(most.get(of) ?? 0)} MiB, ${busy.toFixed(0)} % of a processor`)
    })

    yield* open(FIRST_QUIET, [], lengths.first_ms)
    const rounds = Math.max(1, Math.ceil((minutes * 60_000) / lengths.all_ms))
    const order = lengths.one_ms === 0 ? [] : yield* Random.shuffle(kinds)
    for (let round = 0; round < rounds; round++) {
      const share = order.slice(
        Math.floor((round * order.length) / rounds),
        Math.floor(((round + 1) * order.length) / rounds)
      )
      yield* open(QUIET, [], lengths.quiet_ms)
      for (const kind of share) yield* open(kind.id, [kind], lengths.one_ms)
      yield* open(ALL, kinds, lengths.all_ms)
    }
    yield* allAttacked(it, kinds)
    const stops = yield* stopAll(
      it.choir,
      kinds.filter(({ ends }) => ends !== true).map(({ id }) => id),
      problems
    )
    it.let([])
    yield* Effect.forEach(honest, ({ end }) => end)
    yield* Effect.forEach(talks, Fiber.join)
    label = JUDGED
    const judged = yield* judge(it, kinds, honest)
    const turns = honest.flatMap((each) => each.turns)
    const report: SiegeReport = {
      quiet: timesOf(turns, windows, QUIET),
      all: timesOf(turns, windows, ALL),
      stages: { quiet: stageTimes(judged.stages, windows, QUIET), all: stageTimes(judged.stages, windows, ALL) },
      each: order.map((kind) => ({ kind, times: timesOf(turns, windows, kind.id), rss_mib: most.get(kind.id) ?? 0 })),
      rss: {
        before: most.get(FIRST_QUIET) ?? 0,
        quiet: most.get(QUIET) ?? 0,
        most: Math.max(...[...most].map(([of, mib]) => (of === JUDGED ? 0 : mib)))
      },
      messages: honest.reduce((sum, { sent }) => sum + sent.length, 0),
      events: judged.events,
      told: judged.told,
      stop_ms: Math.max(0, ...stops),
      problems: [...problems, ...judged.problems]
    }
    return report
  },
  (effect, { seed }) => Effect.scoped(effect).pipe(Random.withSeed(seed))
)
