import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { COMMIT_BYTES_MAX, EventLog, RESIDENT_LOG_BYTES_MAX } from "#src/agent/arbiter/EventLog.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { SESSION } from "../../support/testing/MemoryControlPlane.ts"
import { makeHistory, makeRandom } from "../../support/history.ts"
import { HEARTBEAT_PATCH_BYTES_MAX } from "#src/agent/control/Replication.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

const notice = (rev: number, text: string) =>
  ({
    v: 2,
    rev,
    event_type: "AgentMessage",
    lane: "edge",
    payload: { kind: "notice", text },
    created_at: "2026-01-01T00:00:00.000Z",
    salt: rev.toString(16).padStart(32, "0")
  }) as ChoirEvent

const withLog = <A>(use: (log: EventLog["Service"]) => A) =>
  Effect.map(EventLog, use).pipe(Effect.provide(EventLog.layer(SESSION)))

describe("EventLog", () => {
  it.effect("chains what is appended and finds it again", () =>
    withLog((log) => {
      const { batches, events } = makeHistory(1, 60)
      for (const batch of batches) assert.isUndefined(log.append(batch))
      let hash = genesis(SESSION)
      assert.strictEqual(log.hashAt(0), hex(hash))
      for (const event of events) {
        hash = chainEvent(hash, event).hash
        assert.strictEqual(log.hashAt(event.rev), hex(hash))
        assert.strictEqual(log.get(event.rev), event)
      }
      assert.strictEqual(log.head(), events.length)
      assert.throws(() => log.get(events.length + 1), RangeError)
      assert.throws(() => log.get(0), RangeError)
    })
  )

  it.effect("gives whole batches, as many as fit, at least one, and all of them in order", () =>
    withLog((log) => {
      const { batches, events } = makeHistory(2, 200)
      for (const batch of batches) log.append(batch)
      const ends = new Set([0, ...batches.map((batch) => batch.at(-1)?.rev ?? 0)])
      const random = makeRandom(5)
      for (let round = 0; round < 50; round++) {
        const bytes_max = Math.floor(random() * 20_000)
        const sent: Array<ChoirEvent> = []
        let rev = 0
        for (let batch = log.after(0, bytes_max); batch !== undefined; batch = log.after(rev, bytes_max)) {
          assert.deepStrictEqual(
            [batch.base_rev, batch.hash_prev, batch.hash_new],
            [rev, log.hashAt(rev), log.hashAt(batch.new_rev)]
          )
          assert.isTrue(ends.has(batch.new_rev))
          const bytes = batch.events.reduce((total, event) => total + chainEvent(genesis(SESSION), event).bytes, 0)
          const isOne = ![...ends].some((end) => end > rev && end < batch.new_rev)
          assert.isTrue(bytes <= bytes_max || isOne)
          sent.push(...batch.events)
          rev = batch.new_rev
        }
        assert.deepStrictEqual(sent, events)
      }
    })
  )

  it.effect("splits a history of several MiB into heartbeats that fit a body", () =>
    withLog((log) => {
      for (let rev = 1; rev <= 40; rev++) log.append([notice(rev, "é".repeat(100_000))])
      assert.isAbove(log.bytesAfter(0), 8_000_000)
      assert.strictEqual(log.bytesAfter(40), 0)
      let rev = 0
      let beats = 0
      for (let batch = log.after(0, HEARTBEAT_PATCH_BYTES_MAX); batch !== undefined; beats++) {
        assert.isAtMost(log.bytesAfter(rev) - log.bytesAfter(batch.new_rev), HEARTBEAT_PATCH_BYTES_MAX)
        rev = batch.new_rev
        batch = log.after(rev, HEARTBEAT_PATCH_BYTES_MAX)
      }
      assert.deepStrictEqual([rev, beats], [40, 14])
    })
  )

  it.effect("refuses a batch of which one event is too large, and then takes none of it (R48)", () =>
    withLog((log) => {
      const frame = chainEvent(genesis(SESSION), notice(1, "")).bytes
      assert.isUndefined(log.append([notice(1, "a".repeat(EVENT_BYTES_MAX - frame))]))
      assert.match(
        log.append([notice(2, "a"), notice(3, "a".repeat(EVENT_BYTES_MAX - frame + 1))]) ?? "",
        /an event may have/u
      )
      const half = "a".repeat(COMMIT_BYTES_MAX / 2)
      assert.match(log.append([notice(2, half), notice(3, half)]) ?? "", /events of one commit/u)
      assert.strictEqual(log.head(), 1)
    })
  )

  it.effect("lets acknowledged events go beyond its room, oldest first, and keeps the named ones (D9)", () =>
    withLog((log) => {
      const size = 100_000
      const count = Math.ceil((2.5 * RESIDENT_LOG_BYTES_MAX) / size)
      const hashes: Array<string> = []
      for (let rev = 1; rev <= count; rev++) {
        log.append([notice(rev, "a".repeat(size))])
        hashes.push(log.hashAt(rev))
        if (log.isFull()) log.trim(rev - 10, new Set([3, 5]))
      }
      assert.isAtMost(log.bytesAfter(log.oldest() - 1), RESIDENT_LOG_BYTES_MAX + 10 * 2 * size)
      assert.isAbove(log.oldest(), count / 2)
      assert.strictEqual(log.get(3).rev, 3)
      assert.strictEqual(log.get(5).rev, 5)
      assert.isUndefined(log.find(4))
      assert.throws(() => log.get(4), RangeError)
      assert.strictEqual(log.hashAt(log.oldest() - 1), hashes[log.oldest() - 2])
      assert.strictEqual(log.hashAt(count), hashes[count - 1])
      assert.strictEqual(log.after(log.oldest() - 1, 1)?.base_rev, log.oldest() - 1)
      log.trim(count - 10, new Set([5]))
      assert.isUndefined(log.find(3))
      assert.strictEqual(log.get(5).rev, 5)
    })
  )

  it.effect("never lets go of what choird does not have (R14)", () =>
    withLog((log) => {
      const size = 200_000
      const count = Math.ceil((1.5 * RESIDENT_LOG_BYTES_MAX) / size)
      for (let rev = 1; rev <= count; rev++) log.append([notice(rev, "a".repeat(size))])
      log.trim(7, new Set())
      assert.strictEqual(log.oldest(), 8)
      assert.strictEqual(log.after(7, 1)?.events[0]?.rev, 8)
    })
  )

  it.effect("takes over an earlier epoch's events and goes on from their end", () =>
    withLog((log) => {
      const { events } = makeHistory(3, 40)
      log.restore(events.slice(0, 20))
      assert.strictEqual(log.head(), 20)
      log.append(events.slice(20, 22))
      assert.deepStrictEqual(log.after(20, 1)?.events, events.slice(20, 22))
    })
  )
})
