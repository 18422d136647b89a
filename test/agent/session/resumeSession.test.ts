/** What an agent makes of choird's snapshot and tail: it goes on from them, and trusts neither further than the chain (docs/protocol.md, Snapshots). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import type { InitHello, InitHelloReply, Snapshot } from "#schema/AgentApi.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { AgentId, EDGE } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog, RESIDENT_LOG_BYTES_MAX } from "#src/agent/arbiter/EventLog.ts"
import { resumeSession } from "#src/agent/session/sessionLayers.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { oldestNamed } from "#src/shared/session/namedRevs.ts"
import { encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { fingerprint } from "../../simulation/fingerprint.ts"
import { makeHistory, placed, userMessage } from "../../support/history.ts"
import { makeMemoryControlPlane, SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { settingsOf } from "../../support/testing/TestAgent.ts"

const HASH = "0".repeat(64)
const INTRODUCTION: InitHello = {
  agent_id: AgentId.make("a"),
  session_id: SESSION,
  image_version: "1",
  agent_version: "1",
  tool_manifest_hash: HASH,
  skill_manifest_hash: HASH
}

const folded = (events: ReadonlyArray<ChoirEvent>): SessionState =>
  Result.getOrThrowWith(foldAll(initialState, events), ({ reason }) => new Error(reason))

const digests = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<string> => {
  const hashes = [genesis(SESSION)]
  for (const event of events) hashes.push(chainEvent(hashes.at(-1) ?? Buffer.of(), event).hash)
  return hashes.map(hex)
}

/** choird's answers over a history with a snapshot at a revision, in pages; `asked` tells which pages were asked for. */
const choirdOf = (events: ReadonlyArray<ChoirEvent>, rev: number, page: number) => {
  const hashes = digests(events)
  const state = folded(events.slice(0, rev))
  const after = oldestNamed(state) - 1
  const snapshot: Snapshot = {
    rev,
    hash: hashes[rev] ?? "",
    fold_version: FOLD_VERSION,
    state: JSON.parse(Result.getOrThrow(encodeState(state))),
    tail_after: { rev: after, hash: hashes[after] ?? "" }
  }
  const asked: Array<number> = []
  const tail = (after_rev: number) => ({
    tail_events: events.slice(after_rev, after_rev + page),
    tail_more: after_rev + page < events.length
  })
  const hello = ({ tail_from = 1 }: InitHello) =>
    Effect.sync(() => {
      asked.push(tail_from)
      return { epoch: 2, status: "resumed", ...tail(tail_from - 1) } as unknown as InitHelloReply
    })
  const first = { epoch: 2, status: "resumed" as const, snapshot, ...tail(after) }
  return { asked, first, hello, snapshot }
}

type Choird = ReturnType<typeof choirdOf>

/** What the agent has after it took over. */
const takenOver = (choird: Choird, change: (first: Choird["first"]) => Choird["first"] = (first) => first) =>
  Effect.gen(function* () {
    yield* resumeSession(INTRODUCTION, change(choird.first))
    const arbiter = yield* Arbiter
    const log = yield* EventLog
    return { state: arbiter.state(), fingerprint: fingerprint(arbiter.state()), log, arbiter }
  }).pipe(
    Effect.provide(
      Arbiter.layer.pipe(
        Layer.provideMerge(
          Layer.mergeAll(
            EventLog.layer(SESSION),
            AgentSettings.layer(settingsOf(2)),
            Layer.mock(ControlPlane, { hello: choird.hello })
          )
        )
      )
    )
  )

describe("resumeSession", () => {
  it.effect("knows from any snapshot and its tail what it would know from all events (R5)", () =>
    Effect.gen(function* () {
      let shorter = 0
      for (let seed = 1; seed <= 6; seed++) {
        const { events, state } = makeHistory(seed, 90)
        for (let rev = 1; rev <= events.length; rev += 7) {
          const choird = choirdOf(events, rev, 10)
          const { fingerprint: known, log } = yield* takenOver(choird)
          assert.strictEqual(known, fingerprint(state), `seed ${seed}, snapshot at ${rev}`)
          assert.deepStrictEqual([log.head(), log.oldest()], [events.length, choird.snapshot.tail_after.rev + 1])
          assert.strictEqual(log.hashAt(log.head()), digests(events).at(-1))
          if (log.oldest() > 1) shorter += 1
        }
      }
      assert.isAbove(shorter, 5)
    })
  )

  it.effect("asks for the first page of the tail where the answer holds none beside a large snapshot", () =>
    Effect.gen(function* () {
      const { events, state } = makeHistory(4, 60)
      const choird = choirdOf(events, 40, 7)
      const { fingerprint: known } = yield* takenOver(choird, (first) => ({
        ...first,
        tail_events: [],
        tail_more: true
      }))
      assert.strictEqual(known, fingerprint(state))
      assert.strictEqual(choird.asked[0], choird.snapshot.tail_after.rev + 1)
    })
  )

  it.effect("folds only what came after the snapshot", () =>
    Effect.gen(function* () {
      const { events, state } = makeHistory(4, 60)
      const choird = choirdOf(events, 40, 7)
      const told = { ...(choird.snapshot.state as Record<string, unknown>) }
      const spent = { ...(told["spent"] as SessionState["spent"]), tool_calls: 1_000_000 }
      const { state: known } = yield* takenOver(choird, (first) => ({
        ...first,
        snapshot: { ...first.snapshot, state: { ...told, spent } }
      }))
      const before = folded(events.slice(0, 40)).spent.tool_calls
      assert.strictEqual(known.spent.tool_calls, 1_000_000 + state.spent.tool_calls - before)
    })
  )

  const { events, state } = makeHistory(9, 60)
  const REV = 30
  const damaged: Readonly<Record<string, (first: Choird["first"]) => Choird["first"]>> = {
    "of another fold": (first) => ({ ...first, snapshot: { ...first.snapshot, fold_version: FOLD_VERSION + 1 } }),
    "no state": (first) => ({ ...first, snapshot: { ...first.snapshot, state: { rev: REV } } }),
    "a state of another revision": (first) => ({ ...first, snapshot: { ...first.snapshot, rev: REV + 1 } }),
    "made at another event": (first) => ({ ...first, snapshot: { ...first.snapshot, hash: HASH } }),
    "of a tail that follows another event": (first) => ({
      ...first,
      snapshot: { ...first.snapshot, tail_after: { ...first.snapshot.tail_after, hash: HASH } }
    }),
    "of a tail that starts too late": (first) => ({ ...first, tail_events: first.tail_events.slice(1) }),
    "of a tail that begins after it": (first) => ({
      ...first,
      snapshot: { ...first.snapshot, tail_after: { rev: REV + 1, hash: HASH } }
    }),
    "of a tail that ends before it": (first) => ({
      ...first,
      tail_events: first.tail_events.slice(0, 1),
      tail_more: false
    }),
    "such that the tail does not follow from it": (first) => ({
      ...first,
      snapshot: {
        ...first.snapshot,
        state: { ...(first.snapshot.state as Record<string, never>), last_inbox_id: "999999999" }
      }
    })
  }
  for (const [what, change] of Object.entries(damaged))
    it.effect(`folds the whole log when the snapshot is ${what}`, () =>
      Effect.gen(function* () {
        const choird = choirdOf(events, REV, 10)
        assert.isAtLeast(REV - choird.snapshot.tail_after.rev, 2, "the tail begins before the snapshot")
        const { fingerprint: known, log } = yield* takenOver(choird, change)
        assert.strictEqual(known, fingerprint(state))
        assert.deepStrictEqual([log.head(), log.oldest()], [events.length, 1])
        assert.isTrue(choird.asked.includes(1))
      })
    )

  it.effect("commits after it, and the chain goes on", () =>
    Effect.gen(function* () {
      const idle = makeHistory(11, 40)
      const choird = choirdOf(idle.events, 20, 100)
      const { arbiter, log } = yield* takenOver(choird)
      const [notice] = yield* arbiter.commit({ type: "Notice", lane: EDGE, text: "back" })
      assert.strictEqual(notice?.rev, idle.events.length + 1)
      assert.strictEqual(
        log.hashAt(log.head()),
        digests([...idle.events, ...(notice === undefined ? [] : [notice])]).at(-1)
      )
    })
  )

  it.effect("lets go of what is too much while it comes, and keeps what the state names (D9)", () =>
    Effect.gen(function* () {
      // A turn is open from the first event on, and notices make the log long.
      const size = 100_000
      const count = Math.ceil((2 * RESIDENT_LOG_BYTES_MAX) / size)
      const opened = placed(initialState, [
        {
          event_type: "UserMsg",
          lane: EDGE,
          payload: { inbox_id: "1", dm: "me", text: "hi", attachments: [] } as never
        }
      ])
      const notices = placed(
        folded(opened),
        Array.from({ length: count }, () => ({
          event_type: "AgentMessage" as const,
          lane: EDGE,
          payload: { kind: "notice" as const, text: "n".repeat(size) }
        }))
      )
      const long = [...opened, ...notices]
      const { log, state: known } = yield* takenOver(choirdOf(long, count - 5, 8))
      assert.deepStrictEqual([log.head(), known.rev, known.edge.turn?.rev], [count + 1, count + 1, 1])
      assert.isAbove(log.oldest(), 2)
      assert.isAtMost(log.bytesAfter(log.oldest() - 1), RESIDENT_LOG_BYTES_MAX)
      assert.strictEqual(log.get(1).event_type, "UserMsg")
    })
  )

  it.effect("is served snapshots by the control plane in memory", () =>
    Effect.gen(function* () {
      const plane = yield* makeMemoryControlPlane
      assert.deepStrictEqual(plane.recovery(1), { epoch: 1, status: "fresh", tail_events: [], tail_more: false })
      yield* Effect.gen(function* () {
        const arbiter = yield* Arbiter
        const log = yield* EventLog
        const control = yield* ControlPlane
        for (let id = 1; id <= 12; id++) {
          yield* arbiter.commit(userMessage(String(id)))
          yield* arbiter.commit({ type: "Answer", text: "yes" })
        }
        const batch = log.after(0, 1_000_000)
        yield* control.heartbeat({
          epoch: 1,
          base_rev: 0,
          new_rev: 24,
          hash_prev: log.hashAt(0),
          hash_new: log.hashAt(24),
          patches: log.after(0, 1_000_000)?.events ?? [],
          config_version: 1,
          timestamp: ""
        })
        assert.strictEqual(batch?.new_rev, 24)
      }).pipe(
        Effect.provide(
          Arbiter.layer.pipe(
            Layer.provideMerge(
              Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1)), plane.layer(1))
            )
          )
        )
      )
      assert.strictEqual(plane.recovery(2).snapshot?.rev, 24)
    })
  )
})
