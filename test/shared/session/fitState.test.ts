/** A session's state has one limit in bytes, whatever its agent sends: a state that fits no snapshot is folded from the first event again and again. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { CORE_JOBS_MAX } from "#schema/Core.ts"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { SNAPSHOT_BYTES_MAX, TAIL_PAGE_BYTES_MAX } from "#src/choird/sessions/snapshots.ts"
import { SEEN_FILES_MAX } from "#src/shared/session/calls.ts"
import { STATE_BYTES_MAX } from "#src/shared/session/fitState.ts"
import { CANCEL_REASON_CHARS_MAX, fold, foldAll, initialState } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { SUMMARY_CHARS_MAX, SUMMARY_FACTS_MAX, SUMMARY_WORDS_MAX } from "#src/shared/session/memory.ts"
import { RESUMABLE_JOBS_MAX } from "#src/shared/session/resumableJobs.ts"
import { decodeState, encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import { stateBytes } from "#src/shared/session/stateBytes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import * as hostile from "./hostileHistory.ts"
import { makeHistory, makeRandom, pick, placed } from "../../support/history.ts"

const written = (state: SessionState): number => Buffer.byteLength(Result.getOrThrow(encodeState(state)))

const restored = (state: SessionState): SessionState =>
  Result.getOrThrow(decodeState(state.rev, FOLD_VERSION, JSON.parse(Result.getOrThrow(encodeState(state)))))

/** The state after those of some drafts that fit it. */
const taken = (state: SessionState, drafts: ReadonlyArray<EventDraft>): SessionState =>
  drafts.reduce((before, draft) => Result.getOrElse(foldAll(before, placed(before, [draft])), () => before), state)

const same = (state: SessionState): SessionState => state

const within = (state: SessionState): SessionState => {
  const bytes = written(state)
  assert.isAtMost(bytes, stateBytes(state))
  assert.isAtMost(stateBytes(state), STATE_BYTES_MAX)
  return state
}

describe("the state of a session", () => {
  it("fits a snapshot and INIT_HELLO's reply", () => {
    assert.isAtMost(STATE_BYTES_MAX, SNAPSHOT_BYTES_MAX)
    assert.isAtMost(STATE_BYTES_MAX, TAIL_PAGE_BYTES_MAX)
  })

  it("stays within its limit with all of its lanes as full as they may be, with the longest names and texts", () => {
    for (const character of hostile.CHARACTERS) {
      const random = makeRandom(1)
      const text = hostile.textsOf(character)
      let state = taken(initialState, [hostile.message(initialState)])
      const names = Array.from(
        { length: CORE_JOBS_MAX + RESUMABLE_JOBS_MAX },
        (_, index) => `${"j".repeat(36)}${index}`
      )
      for (const [at, name] of names.entries()) {
        const lane = `core:${name}`
        state = (at % 16 === 0 ? within : same)(
          taken(state, [
            hostile.startedJob(name, text),
            hostile.skillBegun(lane, text),
            hostile.output(lane, [`r${at}`], text),
            hostile.requested(lane, `r${at}`, text, false),
            hostile.committedCall(lane, `r${at}`),
            hostile.result(lane, `r${at}`, text, at),
            hostile.cancelledJob(lane, text, 400_000),
            ...(at < RESUMABLE_JOBS_MAX ? [hostile.stoppedJob(name, name)] : [])
          ])
        )
      }
      assert.strictEqual(state.cores.size, CORE_JOBS_MAX)
      assert.strictEqual(state.resumable.size, RESUMABLE_JOBS_MAX)
      const lanes = [EDGE, ...[...state.cores.values()].map(({ lane }) => lane)]
      for (const [at, lane] of lanes.entries()) {
        const facts = at < 2 ? SUMMARY_FACTS_MAX + 1 : 1
        for (let fact = 0; fact < facts; fact++)
          state = taken(state, [hostile.compaction(lane, laneOf(state, lane) ?? state.edge, text, random)])
        assert.strictEqual(laneOf(state, lane)?.boundary, 0)
        if (at % 16 === 0) within(state)
      }
      for (const [at, lane] of lanes.entries()) {
        if (at % 4 !== 0) continue
        const ids = Array.from({ length: 128 }, (_, index) => `c${at}-${index}`)
        state = (at % 16 === 0 ? within : same)(
          taken(state, [hostile.output(lane, ids, text), ...ids.map((id) => hostile.requested(lane, id, text))])
        )
      }
      assert.isAbove(stateBytes(state), STATE_BYTES_MAX / 2)
      for (const { cancelled, model } of state.cores.values()) {
        assert.isTrue(cancelled?.endsWith("…"))
        assert.strictEqual(cancelled?.length, CANCEL_REASON_CHARS_MAX)
        assert.isAtMost(model.length, 128)
      }
    }
  })

  it("takes every call of as many jobs as there are by default, with the longest names, and keeps their outputs in the windows", () => {
    const text = hostile.textsOf("a")
    let state = Result.getOrThrow(foldAll(initialState, placed(initialState, [hostile.message(initialState)])))
    const take = (drafts: ReadonlyArray<EventDraft>) => {
      state = Result.getOrThrow(foldAll(state, placed(state, drafts)))
    }
    for (let at = 0; at < 8; at++) {
      const lane = `core:j${at}`
      const ids = Array.from({ length: 128 }, (_, index) => `c${at}-${index}`)
      take([
        hostile.startedJob(`j${at}`, text),
        hostile.output(lane, ids, text),
        ...ids.map((id) => hostile.requested(lane, id, text))
      ])
      within(state)
    }
    for (const { output, window } of state.cores.values()) assert.include(window, output.rev)
  })

  it("forgets files before it forgets what lanes were told, and of both the oldest", () => {
    const text = hostile.textsOf("a")
    const random = makeRandom(1)
    let state = taken(initialState, [hostile.message(initialState)])
    const lanes = [EDGE, ...Array.from({ length: 8 }, (_, index) => `core:j${index}` as LaneId)]
    for (const lane of lanes) {
      if (lane !== EDGE) state = taken(state, [hostile.startedJob(lane.slice("core:".length), text)])
      for (let fact = 0; fact < SUMMARY_FACTS_MAX; fact++)
        state = taken(state, [hostile.compaction(lane, laneOf(state, lane) ?? state.edge, text, random, 120)])
      state = taken(state, [
        hostile.output(lane, ["c"], text),
        hostile.requested(lane, "c", text, false),
        hostile.committedCall(lane, "c"),
        hostile.result(lane, "c", text, 0, 0)
      ])
      within(state)
    }
    const memories = [state.edge, ...state.cores.values()]
    const files = memories.reduce((total, { seen }) => total + seen.size, 0)
    assert.isBelow(files, memories.length * SEEN_FILES_MAX)
    assert.isAbove(files, 0)
    for (const { summary } of memories) {
      assert.strictEqual(summary.facts.length, SUMMARY_FACTS_MAX)
      assert.strictEqual(summary.words.length, SUMMARY_WORDS_MAX)
      assert.strictEqual(summary.summary.length, SUMMARY_CHARS_MAX)
    }
  })

  it("stays within it at every event of random hostile histories, and is the same from any snapshot on", () => {
    for (let seed = 1; seed <= 3; seed++) {
      const random = makeRandom(seed)
      const text = hostile.textsOf(pick(random, hostile.CHARACTERS))
      let state = initialState
      let again = initialState
      let refused = 0
      for (let n = 1; n <= 300; n++) {
        const events = placed(state, [hostile.hostileDraft(random, state, text, n)])
        const next = foldAll(state, events)
        if (Result.isFailure(next)) {
          refused += 1
          continue
        }
        state = next.success
        again = Result.getOrThrow(foldAll(again, events))
        assert.isAtMost(stateBytes(state), STATE_BYTES_MAX)
        assert.strictEqual(stateBytes(again), stateBytes(state))
        if (n % 25 !== 0) continue
        again = restored(within(state))
        assert.deepStrictEqual(again, state)
      }
      assert.isBelow(refused, 270)
    }
  })

  it("is counted no more than some kilobytes for each lane too large, and never too small", () => {
    for (let seed = 1; seed <= 10; seed++) {
      let state = initialState
      for (const event of makeHistory(seed, 150).events) {
        state = Result.getOrThrow(fold(state, event))
        const lanes = 1 + state.cores.size + state.resumable.size
        assert.isAtLeast(stateBytes(state), written(state))
        assert.isBelow(stateBytes(state) - written(state), 2048 * (lanes + 1))
      }
    }
  })
})
