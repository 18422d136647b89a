/**
 * P5, the first words of a turn: how long a person at a console sees nothing, while a model that needs 800 ms to begin writes 50 tokens a second.
 * choird and the agent are processes of their own, on the embedded database.
 */
import { Effect, Fiber, Stream } from "effect"
import { makeInstallation } from "../test/support/installation.ts"
import { answer, makeProviderOf, type Reply } from "../test/support/testing/Provider.ts"
import { atMost, place, type Row, spread } from "./Row.ts"

const TOKENS_PER_SECOND = 50
/** The model reads and thinks for so long. */
const BEGINS_MS = 800
const TURNS = 20
/** Turns before those that count. */
const FIRST = -3
const WORDS = 60

export const firstWords: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.gen(function* () {
  const provider = yield* makeProviderOf({ tokens_per_second: TOKENS_PER_SECOND })
  let began_ms = 0
  const slow: Reply = Effect.gen(function* () {
    yield* Effect.sleep(BEGINS_MS)
    // The first token is written after its own time.
    began_ms = performance.now() + 1000 / TOKENS_PER_SECOND
    return yield* answer("word ".repeat(WORDS))
  })
  yield* provider.otherwise(() => slow)
  const choir = yield* makeInstallation({ endpoint: provider.endpoint })
  yield* choir.start
  yield* choir.build
  yield* choir.api.agents.start({ params: choir.params, payload: {} })
  const [signs, words]: [Array<number>, Array<number>] = [[], []]
  for (let turn = FIRST; turn < TURNS; turn++) {
    const events = yield* choir.api.chat.stream({ params: choir.params })
    let [sent_ms, sign_ms, word_ms] = [Infinity, 0, 0]
    const settled = yield* Effect.forkChild(
      events.pipe(
        Stream.map(({ data }) => data),
        Stream.takeUntil((event) => {
          const at_ms = performance.now()
          if (at_ms < sent_ms) return false
          if (event.type === "activity" && event.edge !== "EDGE_IDLE") sign_ms ||= at_ms
          if (event.type === "draft") word_ms ||= at_ms
          return event.type === "settled"
        }),
        Stream.runDrain
      )
    )
    yield* Effect.sleep("1 second")
    sent_ms = performance.now()
    yield* choir.send(`t${turn - FIRST}`, "Say something long.")
    yield* Fiber.join(settled)
    if (turn < 0) continue
    signs.push(sign_ms - sent_ms)
    words.push(word_ms - began_ms)
  }
  yield* Effect.sync(() =>
    process.stderr.write(`P5: ms to the first sign ${spread(signs)}, from first token to first word ${spread(words)}\n`)
  )
  return [
    atMost("P5", "first sign of a turn, p90", place(signs, 0.9), "ms", 300),
    atMost("P5", "first word after the model's first token, p90", place(words, 0.9), "ms", 200)
  ]
}).pipe(Effect.scoped)
