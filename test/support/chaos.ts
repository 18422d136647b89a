/**
 * Kills real processes at random points while a conversation goes on, and then checks that nothing acknowledged was lost or done
 * twice (R1, R2, R3).
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Random, Schedule } from "effect"
import { type Conversation, JOB_STEPS_MAX, startConversation, THINKING_MS } from "./chaosConversation.ts"
import type { TestPostgres } from "./postgres.ts"
import { conversationProblems, historyProblems, ledgerProblems } from "./verifyHistory.ts"

export const TARGETS = ["agent", "choird", "postgres"] as const
export type Target = (typeof TARGETS)[number]

export interface ChaosOptions {
  readonly target: Target
  /** Where choird keeps its tables; a Postgres that is killed is always a server. */
  readonly database: "embedded" | "server"
  readonly kills: number
  readonly seed: string
  /** After the kills of Postgres, one absence of this many ms, in which the agent works on. */
  readonly outage_ms?: number
  /** Told after each kill. */
  readonly progress?: (kill: number) => void
}

export interface ChaosReport {
  readonly kills: number
  readonly messages: number
  readonly events: number
  /** From the moment a killed Postgres accepts connections until choird has all that the agent was told before, in ms. */
  readonly catch_ups_ms: ReadonlyArray<number>
  readonly problems: ReadonlyArray<string>
}

/** What R3 allows for {@link ChaosReport.catch_ups_ms}. */
const CATCH_UP_MS_MAX = 10_000
/** How long the provider thinks during an outage, so that the job of it lasts. */
const OUTAGE_THINKING_MS = 1000
/** How many steps of its job the agent has to do in a minute of an outage. */
const OUTAGE_STEPS_A_MINUTE_MIN = 30
/** How long a killed Postgres stays away at most. */
const AWAY_MS_MAX = 300

/** What a user asks for: effects outside and inside the workspace, and jobs. */
const text = (index: number): string =>
  [
    `call ledger.append {"note":"${index}"}`,
    `write notes/${index}.txt: line ${index}; read notes/${index}.txt; run wc -c notes/${index}.txt`,
    `job j${index}: call ledger.append {"note":"job ${index}"}, then write notes/j${index}.txt: done`,
    `hello number ${index}`
  ][index % 4] ?? ""

const longJob = (name: string): string =>
  `job ${name}: ${Array.from({ length: JOB_STEPS_MAX }, (_, step) => `write ${name}/${step}.txt: ${step}`).join(", then ")}`

const lines = (path: string): ReadonlyArray<string> =>
  existsSync(path)
    ? readFileSync(path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : []

/** Kills, and whether anything was hit. */
const strike = Effect.fnUntraced(function* (
  target: Exclude<Target, "postgres">,
  { choird, restartChoird }: Conversation
) {
  if (target === "choird") {
    yield* restartChoird
    return true
  }
  const pid = Option.getOrUndefined(yield* choird().agent)
  if (pid === undefined) return false
  return yield* Effect.orElseSucceed(
    Effect.try(() => process.kill(pid, "SIGKILL")),
    () => false
  )
})

/** Postgres dies, stays away for a while, and is started again; answers how long the catching up took, in ms. */
const strikePostgres = Effect.fnUntraced(function* (
  server: TestPostgres,
  { caughtUp }: Conversation,
  away: Effect.Effect<unknown>
) {
  yield* Effect.promise(server.kill)
  yield* away
  yield* Effect.promise(server.restart)
  const back = performance.now()
  yield* caughtUp
  return performance.now() - back
})

/** A long absence: the agent goes on with a job meanwhile. Answers the catching up, in ms, and what was wrong. */
const outage = Effect.fnUntraced(function* (server: TestPostgres, it: Conversation, ms: number) {
  const spawned = Effect.andThen(
    it.look,
    Effect.suspend(() =>
      it.seen.some(({ event }) => event.event_type === "CoreStarted" && event.payload.job_name === "outage")
        ? Effect.void
        : Effect.fail("not yet")
    )
  )
  yield* it.say("outage", longJob("outage"))
  yield* Effect.retry(spawned, it.often)
  yield* it.think(OUTAGE_THINKING_MS)
  const before = it.answered()
  const catch_up_ms = yield* strikePostgres(server, it, Effect.sleep(ms))
  const steps = it.answered() - before
  yield* it.think(THINKING_MS)
  const wanted = (OUTAGE_STEPS_A_MINUTE_MIN * ms) / 60_000
  return { catch_up_ms, problems: steps >= wanted ? [] : [`the agent did ${steps} steps in an outage of ${ms} ms`] }
})

/** Waits until every message has its reply and every job has ended, whatever is still being restarted. */
const settled = ({ look, running, seen, sent }: Conversation) => {
  const done = Effect.gen(function* () {
    yield* Effect.ignore(running)
    yield* look
    const replies = new Set(
      seen.flatMap(({ event }) =>
        event.event_type === "AgentMessage" && event.payload.kind === "reply" ? [event.payload.in_reply_to] : []
      )
    )
    const count = (type: string) => seen.filter(({ event }) => event.event_type === type).length
    const waits = sent.some((id) => !replies.has(id)) || count("CoreStarted") !== count("CoreStopped")
    if (waits) return yield* Effect.fail("not yet")
  })
  const patiently = Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(1200)])
  return Effect.ignore(Effect.retry(done, patiently))
}

/** What is wrong with what is left, in sentences. */
const judge = Effect.fnUntraced(function* (it: Conversation) {
  const { choir, seen, sent, session } = it
  const history = yield* it.whole
  const verification = yield* choir.api.sessions.verify({ params: { id: session } })
  const lost = seen.filter(({ event, hash }) => history[event.rev - 1]?.hash !== hash)
  return {
    events: history.length,
    problems: [
      ...historyProblems(session, history),
      ...conversationProblems(sent, history),
      ...ledgerProblems(lines(join(choir.workspace, "ledger")), history),
      ...lost.map(({ event }) => `the acknowledged revision ${event.rev} is not the one that was acknowledged`),
      ...(verification.ok ? [] : [`choird's own verification fails: ${JSON.stringify(verification.problem)}`])
    ]
  }
})

export const chaos = Effect.fnUntraced(
  function* (options: ChaosOptions) {
    const { database, kills, outage_ms = 0, progress, target } = options
    const it = yield* startConversation(target === "postgres" ? "server" : database)
    const agent = yield* it.choird().agent
    const catch_ups_ms: Array<number> = []
    const problems: Array<string> = []
    let killed = 0
    let index = 0
    // A try that comes between two lives of the agent hits nothing and is not counted.
    for (; killed < kills && index < 3 * kills; index++) {
      yield* it.say(String(index), text(index))
      if (index % 5 === 0) yield* Effect.ignore(it.look)
      yield* Effect.sleep(yield* Random.nextIntBetween(0, 250))
      if (target !== "postgres") {
        if (!(yield* strike(target, it))) continue
      } else if (it.server !== undefined)
        catch_ups_ms.push(
          yield* strikePostgres(it.server, it, Effect.sleep(yield* Random.nextIntBetween(0, AWAY_MS_MAX)))
        )
      killed += 1
      progress?.(killed)
    }
    if (target === "postgres" && it.server !== undefined && outage_ms > 0) {
      const one = yield* outage(it.server, it, outage_ms)
      catch_ups_ms.push(one.catch_up_ms)
      problems.push(...one.problems)
    }
    yield* it.say("last", text(3))
    yield* settled(it)
    const late = catch_ups_ms.filter((ms) => ms > CATCH_UP_MS_MAX)
    problems.push(...late.map((ms) => `choird had caught up only ${Math.round(ms)} ms after Postgres was back`))
    if (target === "postgres" && Option.getOrUndefined(yield* it.choird().agent) !== Option.getOrUndefined(agent))
      problems.push("the agent is not the process that it was: choird ended it")
    const judged = yield* judge(it)
    const report: ChaosReport = {
      kills: killed,
      messages: it.sent.length,
      events: judged.events,
      catch_ups_ms,
      problems: [...problems, ...judged.problems]
    }
    return report
  },
  (effect, { seed }) => Effect.scoped(effect).pipe(Random.withSeed(seed))
)
