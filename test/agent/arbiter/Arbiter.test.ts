import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Result, Schema } from "effect"
import { ChoirEvent } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { userMessage } from "../../support/history.ts"
import { goldenEvents } from "../../support/mixedHistory.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { settingsOf } from "../../support/testing/TestAgent.ts"
import { historyProblems } from "../../support/verifyHistory.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

const arbiterLayer = Arbiter.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1))))
)

const notice = (text: string): Command => ({ type: "Notice", lane: EDGE, text })
const start = Effect.forkChild({ startImmediately: true })

describe("Arbiter", () => {
  it.effect("commits in order, and its state is the fold of its log", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const log = yield* EventLog
      yield* arbiter.commit(userMessage("1"))
      yield* Effect.forEach(Array.from({ length: 50 }, String), (text) => arbiter.commit(notice(text)), {
        concurrency: "unbounded"
      })
      yield* arbiter.commit({ type: "Answer", text: "bye" })
      const events = Array.from({ length: log.head() }, (_, index) => log.get(index + 1))
      assert.deepStrictEqual(
        events.map(({ rev }) => rev),
        Array.from({ length: 52 }, (_, index) => index + 1)
      )
      assert.deepStrictEqual(foldAll(initialState, events), Result.succeed(arbiter.state()))
      const strict = Schema.decodeUnknownResult(Schema.Array(ChoirEvent), { onExcessProperty: "error" })
      assert.isTrue(Result.isSuccess(strict(JSON.parse(JSON.stringify(events)))))
    }).pipe(Effect.provide(arbiterLayer))
  )

  it.effect("continues with salted events of version 2 in a session that began with version 1 (D52)", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const log = yield* EventLog
      const old = goldenEvents("files")
      yield* arbiter.restore(old.map(({ event }) => event))
      assert.strictEqual(log.hashAt(old.length), old.at(-1)?.hash)
      const events = yield* Effect.forEach(Array.from({ length: 600 }, String), (text) => arbiter.commit(notice(text)))
      const added = events.flat()
      assert.deepStrictEqual([...new Set(added.map(({ v }) => v))], [2])
      assert.strictEqual(new Set(added.map(({ salt }) => salt)).size, 600)
      for (const { salt } of added) assert.match(salt ?? "", /^[0-9a-f]{32}$/u)
      const history = [...old.map(({ event }) => event), ...added]
      const printed = history.map((event) => ({ event, hash: log.hashAt(event.rev) }))
      assert.deepStrictEqual(historyProblems(SESSION, printed), [])
    }).pipe(Effect.provide(arbiterLayer))
  )

  it.effect("appends nothing where it refuses: by a rule, by the fold, by size or by depth (R48)", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const log = yield* EventLog
      yield* arbiter.commit(userMessage("1"))
      const before = arbiter.state()
      let heard = 0
      yield* arbiter.onCommit(() => heard++)
      const deep = JSON.parse("[".repeat(20_000) + "]".repeat(20_000))
      const usage = { input_tokens: 1, output_tokens: 1 }
      const output = { purpose: "turn", model: "m", finish_reason: "", usage, latency_ms: 0 } as const
      const refusals: ReadonlyArray<readonly [Command, RegExp, boolean | undefined]> = [
        [userMessage("1"), /taken before/u, undefined],
        [userMessage("2"), /no reply yet/u, undefined],
        [notice("a".repeat(EVENT_BYTES_MAX)), /bytes at most/u, true],
        [
          { type: "Output", lane: "edge" as never, output: { ...output, tool_calls: [{ name: "t", input: deep }] } },
          /levels at most/u,
          true
        ]
      ]
      for (const [command, reason, unfit] of refusals) {
        const refused = yield* Effect.flip(arbiter.commit(command))
        assert.match(refused.message, reason)
        assert.strictEqual(refused.unfit, unfit)
      }
      assert.deepStrictEqual([log.head(), heard], [1, 0])
      assert.strictEqual(arbiter.state(), before)
    }).pipe(Effect.provide(arbiterLayer))
  )

  it.effect("replaces what no store keeps before it chains it", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const [event] = yield* arbiter.commit(userMessage("1", "a\0b\ud800"))
      assert.strictEqual(event?.event_type === "UserMsg" && event.payload.text, "a\uFFFDb\uFFFD")
    }).pipe(Effect.provide(arbiterLayer))
  )

  it.effect("looks at each commit for who waits, even at a state that the next commit ends", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const passing = yield* start(arbiter.until(({ edge }) => edge.state === "EDGE_CONTEXT_READY"))
      const later = yield* start(arbiter.until(({ rev }) => rev === 7))
      for (const id of ["1", "2", "3", "4"]) {
        yield* arbiter.commit(userMessage(id))
        yield* arbiter.commit({ type: "Answer", text: id })
      }
      yield* Fiber.join(passing)
      assert.isAtLeast((yield* Fiber.join(later)).rev, 7)
      assert.strictEqual((yield* arbiter.until(({ rev }) => rev === 8)).rev, 8)
    }).pipe(Effect.provide(arbiterLayer))
  )

  it.effect("forgets a waiter that is interrupted", () =>
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      let looks = 0
      const waiter = yield* start(arbiter.until(() => ++looks > 1000))
      yield* Fiber.interrupt(waiter)
      yield* arbiter.commit(notice("x"))
      assert.strictEqual(looks, 1)
    }).pipe(Effect.provide(arbiterLayer))
  )
})
