/** Invariant 4: the log alone says what a session is; it is never rewritten, here or at choird, and summaries are only views of it. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, Rev, Sha256 } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { decide, prepare } from "#src/choird/sessions/decideAppend.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { userMessage } from "../support/history.ts"
import { SESSION } from "../support/testing/MemoryControlPlane.ts"
import { settingsOf } from "../support/testing/TestAgent.ts"
import { EVENT_BYTES_MAX } from "#src/shared/events/storedPayload.ts"

/** The commands of a short session: two turns, and a compaction of the first. */
const COMMANDS: ReadonlyArray<Command> = [
  userMessage("1", "one"),
  { type: "Answer", text: "answered" },
  userMessage("2", "two"),
  { type: "Compact", lane: EDGE, boundary_rev: 2, deltas: [{ mode: "append", summary_update: "One was answered." }] },
  { type: "Answer", text: "answered again" }
]

/** What choird holds, folded and chained from the events themselves. */
const stored = (events: ReadonlyArray<ChoirEvent>) => {
  let hash: Buffer = genesis(SESSION)
  const hashes = [hash, ...events.map((event) => (hash = chainEvent(hash, event).hash))]
  const state = Result.getOrThrow(foldAll(initialState, events))
  return { hashes, hash, replay: { at: { hash, state }, head: { rev: state.rev, hash }, problem: undefined } }
}

/** What choird makes of a heartbeat with these events when it has `held`. */
const offered = (held: ReadonlyArray<ChoirEvent>, sent: ReadonlyArray<ChoirEvent>): string => {
  const { hashes, replay } = stored(held)
  const heartbeat = {
    epoch: 1 as never,
    base_rev: Rev.make(0),
    new_rev: Rev.make(sent.length),
    hash_prev: Sha256.make(hex(genesis(SESSION))),
    hash_new: Sha256.make(hex(stored(sent).hash)),
    patches: sent,
    config_version: 1,
    timestamp: ""
  }
  const prepared = prepare(heartbeat)
  if (prepared.type !== "chain") return prepared.type
  return decide(heartbeat, prepared.links, replay, (rev) => hashes[rev]).type
}

const authority = Arbiter.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1))))
)

export const logIsTheTruth = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const held = (): ReadonlyArray<ChoirEvent> => Array.from({ length: log.head() }, (_, index) => log.get(index + 1))
  for (const command of COMMANDS) {
    const before = structuredClone(held())
    yield* arbiter.commit(command)
    assert.deepStrictEqual(
      held().slice(0, before.length),
      before,
      `${command.type} changed what was committed before it`
    )
    assert.deepStrictEqual(Result.getOrThrow(foldAll(initialState, held())), arbiter.state())
  }
  const events = held()
  assert.strictEqual(arbiter.state().edge.summary.summary, "One was answered.")
  assert.include(JSON.stringify(events), "one", "a summary took the place of events")

  const refused = yield* Effect.flip(arbiter.commit({ type: "Notice", lane: EDGE, text: "x".repeat(EVENT_BYTES_MAX) }))
  assert.strictEqual(refused.unfit, true)
  assert.strictEqual(arbiter.state().rev, log.head(), "the state knows of an event that the log does not hold")

  const [first] = events
  assert.ok(first?.event_type === "UserMsg")
  const another: ChoirEvent = { ...first, payload: { ...first.payload, text: "another" } }
  const forged = [another, ...events.slice(1)]
  assert.notStrictEqual(
    hex(stored(forged).hash),
    log.hashAt(events.length),
    "the newest digest does not depend on the oldest event"
  )
  assert.strictEqual(offered(events.slice(0, 3), events), "store")
  assert.strictEqual(offered(events, events), "duplicate")
  assert.strictEqual(offered(events.slice(0, 3), forged), "conflict", "choird took another history for its own")
}).pipe(Effect.provide(authority))
