/**
 * Stops an agent or choird for three seconds, again and again, as a long garbage collection does, and looks whether anybody is taken for
 * dead; at last the agent is stopped for good, and has to be (R7).
 */
import { Effect, Option, Random, Schedule } from "effect"
import { startConversation } from "../support/chaosConversation.ts"
import { conversationProblems, historyProblems } from "../support/verifyHistory.ts"

export interface StallsOptions {
  readonly minutes: number
  readonly seed: string
  /** Told after each stall. */
  readonly progress?: (stall: number) => void
}

const STALL_MS = 3000
/** From one stall's end to the next one's beginning, at most. */
const PAUSE_MS_MAX = 6000
/** The default threshold and a heartbeat, in ms: R7's limit for a hang. */
const HANG_MS_MAX = 15_000
/** Every so many stalls somebody says something. */
const WORDS_EVERY = 5

export const stalls = Effect.fnUntraced(
  function* ({ minutes, progress }: StallsOptions) {
    const it = yield* startConversation("embedded")
    const agent = yield* it.choird().agent
    const pid = yield* Effect.fromOption(agent)
    const show = it.choir.api.session.show({ params: { id: it.session } })
    const end = performance.now() + minutes * 60_000
    const problems: Array<string> = []
    let count = 0
    let choirds = 0
    for (; performance.now() < end; count += 1) {
      const ofChoird = yield* Random.nextBoolean
      const signal = (name: NodeJS.Signals) =>
        ofChoird ? it.choird().signal(name) : Effect.sync(() => void process.kill(pid, name))
      choirds += ofChoird ? 1 : 0
      yield* signal("SIGSTOP")
      yield* Effect.sleep(STALL_MS)
      yield* signal("SIGCONT")
      if (count % WORDS_EVERY === 0) yield* it.say(`${count}`, `hello number ${count}`)
      yield* Effect.sleep(yield* Random.nextIntBetween(0, PAUSE_MS_MAX))
      const { epoch } = yield* show
      if (epoch !== 1) {
        problems.push(`stall ${count} of ${ofChoird ? "choird" : "the agent"} was taken for a death`)
        break
      }
      progress?.(count + 1)
    }
    yield* Effect.retry(it.look, it.often)
    problems.push(...conversationProblems(it.sent, it.seen), ...historyProblems(it.session, it.seen))
    // A silence that never ends has to be seen all the same.
    const began = performance.now()
    if (problems.length === 0) {
      yield* Effect.sync(() => void process.kill(pid, "SIGSTOP"))
      const next = Effect.flatMap(it.choird().agent, (now) =>
        Option.exists(now, (other) => other !== pid) ? Effect.void : Effect.fail("not yet")
      )
      const seen = yield* Effect.retry(next, Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(600)])).pipe(
        Effect.isSuccess
      )
      if (!seen) problems.push("a silence of a minute was not taken for a death")
    }
    const hang_ms = Math.round(performance.now() - began)
    if (hang_ms > HANG_MS_MAX + STALL_MS) problems.push(`a silence was seen only after ${hang_ms} ms`)
    return { stalls: count, choirds, messages: it.sent.length, hang_ms, problems }
  },
  (effect, { seed }) => Effect.scoped(effect).pipe(Random.withSeed(seed))
)
