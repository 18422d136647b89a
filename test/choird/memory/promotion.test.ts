import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { SUMMARY, choird, drain, said, append, end, session, rows, embed, newOne } from "../../support/endedSessions.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, type Talk } from "../../support/stores.ts"

describeStores("promotion of sessions", (it) => {
  it.effect("promotes the sessions beyond the newest: their summary is found by meaning, their detail by words", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      const plane = choird([agent_id], { mid_term_sessions: 2 })
      const [with_summary, without, ...newest] = yield* Effect.gen(function* () {
        const talks = [yield* session(agent_id, "oak", SUMMARY), yield* session(agent_id, "elm")]
        yield* drain
        yield* embed(agent_id)
        return [...talks, yield* session(agent_id, "ash", SUMMARY), yield* session(agent_id, "fir")]
      }).pipe(Effect.provide(plane))
      yield* Effect.provide(drain, plane)
      for (const talk of newest)
        assert.deepStrictEqual(
          (yield* rows(agent_id, talk.caller.session_id)).map(({ tier }) => tier),
          ["mid_term"]
        )
      const old = yield* rows(agent_id, without?.caller.session_id)
      assert.deepStrictEqual(
        old.map(({ due, tier, vectors }) => ({ due, tier, vectors })),
        [{ due: false, tier: "long_term_detail", vectors: 0 }]
      )
      const promoted = yield* rows(agent_id, with_summary?.caller.session_id)
      const summaries = promoted.filter(({ tier }) => tier === "long_term_summary")
      assert.strictEqual(promoted.length - summaries.length, 1)
      assert.isAtLeast(summaries.length, 3)
      for (const { due, text } of summaries) {
        assert.isTrue(due)
        assert.isAtMost(text.length, 1600)
        assert.include(text, "Plans for the garden")
      }
      const all = summaries.map(({ text }) => text).join("\n")
      for (const words of ["Decision: Plant an oak", "Open: Who waters it", "Fact: Bed 19 is 19 metres long."])
        assert.include(all, words)
      // A larger number of sessions leaves those that were promoted where they are.
      yield* Effect.gen(function* () {
        yield* session(agent_id, "yew")
        yield* drain
      }).pipe(Effect.provide(choird([agent_id], { mid_term_sessions: 10 })))
      assert.deepStrictEqual(yield* rows(agent_id, with_summary?.caller.session_id), promoted)
    })
  )

  it.effect("makes a promoted session that goes on mid-term again with what is new, and promotes it in its turn", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const old = yield* session(agent_id, "oak", SUMMARY)
        const { session_id } = old.caller
        yield* session(agent_id, "elm")
        yield* drain
        yield* (yield* SessionStore).resume(session_id, BINDINGS, "0000000")
        yield* append(old, said(2, "more on the oak"))
        yield* end(session_id)
        yield* drain
        const tiers = () =>
          Effect.map(rows(agent_id, session_id), (found) =>
            found.filter(({ tier }) => tier !== "long_term_summary").map(({ tier }) => tier)
          )
        assert.deepStrictEqual(yield* tiers(), ["long_term_detail", "mid_term"])
        const before = (yield* rows(agent_id, session_id)).length
        yield* session(agent_id, "ash")
        yield* drain
        assert.deepStrictEqual(yield* tiers(), ["long_term_detail", "long_term_detail"])
        assert.strictEqual((yield* rows(agent_id, session_id)).length, before)
      }).pipe(Effect.provide(choird([agent_id], { mid_term_sessions: 1 })))
    })
  )

  it.effect("deletes the detail of the oldest sessions where there is too much of it, and keeps their summaries", () =>
    Effect.gen(function* () {
      const agent_id = yield* newOne
      yield* Effect.gen(function* () {
        const talks: Array<Talk> = []
        for (const text of ["oak", "elm", "ash", "fir"]) talks.push(yield* session(agent_id, text, SUMMARY))
        yield* drain
        const tiersOf = (talk: Talk | undefined) =>
          Effect.map(rows(agent_id, talk?.caller.session_id), (found) => [...new Set(found.map(({ tier }) => tier))])
        assert.deepStrictEqual(yield* tiersOf(talks[0]), ["long_term_summary"])
        assert.deepStrictEqual(yield* tiersOf(talks[1]), ["long_term_detail", "long_term_summary"])
        assert.deepStrictEqual(yield* tiersOf(talks[3]), ["mid_term"])
      }).pipe(Effect.provide(choird([agent_id], { mid_term_sessions: 1 }, 2)))
    })
  )
})
