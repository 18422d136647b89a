/** An agent that is talked with at an even pace, and how long each of its answers took. */
import { randomBytes } from "node:crypto"
import { Deferred, Effect, Random, Schedule, Stream } from "effect"
import type { AgentId, InboxId } from "#schema/Ids.ts"
import { operator } from "../support/installation.ts"

/** A message that was answered. */
export interface Turn {
  readonly began_ms: number
  readonly took_ms: number
  readonly inbox_id: InboxId
  /** How long choird took to take it. */
  readonly sent_ms: number
  /** Which of {@link TEXTS} it was. */
  readonly text: number
}

/** Between an answer and the next message, as of a person who types quickly. */
const PAUSE_MS = [700, 1500] as const
/** Longer than any answer may take; it counts as lost. */
const ANSWER_MS_MAX = 120_000
const CANARY_BYTES = 12

/** Effects outside and inside the workspace, a command, a job, and words alone. */
const TEXTS: ReadonlyArray<(n: number, canary: string) => string> = [
  (n, canary) => `call ledger.append {"note":"${n} ${canary}"}`,
  (n, canary) => `write notes/${n % 20}.txt: ${canary} ${n}; read notes/${n % 20}.txt`,
  (n, canary) => `run echo ${n} ${canary}`,
  (n, canary) =>
    `job j${n}: call ledger.append {"note":"job ${n}"}, then report progress: ${canary}, then write jobs/${n % 20}.txt: done`,
  (n, canary) => `hello number ${n}, remember ${canary}`
]

/** Talks until it is interrupted or told to end. */
export const makeHonest = Effect.fnUntraced(function* (home: string, id: AgentId) {
  // A client of its own: the connections of one are too few for the terminals of all.
  const api = yield* operator(home)
  const params = { id }
  const sent: Array<InboxId> = []
  const turns: Array<Turn> = []
  const problems: Array<string> = []
  const canaries: Array<string> = []
  const waiting = new Map<string, Deferred.Deferred<number>>()
  const early = new Map<string, number>()
  let ended = false

  /** A terminal that stays open; what it shows twice was not acknowledged the first time. */
  const terminal = Stream.unwrap(api.chat.stream({ params })).pipe(
    Stream.runForEach(({ data }) => {
      if (data.type !== "message") return Effect.void
      const { in_reply_to, kind } = data
      if (in_reply_to !== null && (kind === "reply" || kind === "error" || kind === "outage")) {
        const now_ms = performance.now()
        const asked = waiting.get(in_reply_to)
        if (asked === undefined) early.set(in_reply_to, now_ms)
        else Deferred.doneUnsafe(asked, Effect.succeed(now_ms))
        if (kind !== "reply") problems.push(`${id} answered with an ${kind}: ${data.text.slice(0, 200)}`)
      }
      return api.chat.ack({ params, payload: { outbox_ids: [data.outbox_id] } })
    }),
    Effect.ignore,
    Effect.repeat(Schedule.spaced("100 millis"))
  )

  const say = Effect.fnUntraced(function* (n: number) {
    const canary = `CANARY${randomBytes(CANARY_BYTES).toString("hex")}`
    canaries.push(canary)
    const text = n % TEXTS.length
    const payload = { client_id: `${id}-${n}`, text: TEXTS[text]?.(n, canary) ?? "" }
    const began_ms = performance.now()
    // A client that gets no answer asks again with the same id, as a person's program does.
    const { inbox_id } = yield* Effect.retry(api.chat.send({ params, payload }), Schedule.spaced("100 millis"))
    const sent_ms = performance.now() - began_ms
    sent.push(inbox_id)
    const answered = yield* Deferred.make<number>()
    waiting.set(inbox_id, answered)
    const before = early.get(inbox_id)
    const until_ms =
      before ??
      (yield* Effect.timeoutOrElse(Deferred.await(answered), {
        duration: ANSWER_MS_MAX,
        orElse: () => Effect.undefined
      }))
    waiting.delete(inbox_id)
    early.delete(inbox_id)
    if (until_ms === undefined) problems.push(`${id} had no answer to message ${n} after ${ANSWER_MS_MAX} ms`)
    turns.push({ began_ms, took_ms: (until_ms ?? performance.now()) - began_ms, inbox_id, sent_ms, text })
  })

  yield* Effect.forkScoped(terminal)
  let n = 0
  const talk = Effect.suspend(() => say(n++)).pipe(
    Effect.andThen(Effect.flatMap(Random.nextIntBetween(...PAUSE_MS), (ms) => Effect.sleep(ms))),
    Effect.repeat({ while: () => !ended })
  )
  return { id, sent, turns, problems, canaries, talk, end: Effect.sync(() => void (ended = true)) }
})
export type Honest = Effect.Success<ReturnType<typeof makeHonest>>
