/** Text from outside that the agent told its person, and that comes back when they reply to that message after its label has ended: a messenger quotes the message. */
import { assert, describe, it as plain } from "@effect/vitest"
import { Effect } from "effect"
import { EDGE, ResourceName } from "#schema/Ids.ts"
import type { EventDraft } from "#schema/Event.ts"
import { Outbox, type SentAs } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { writersOf } from "#src/shared/session/sourceWords.ts"
import { describeStores } from "../support/engines.ts"
import { DESK, modelOutput, newTalk, reply, stores, type Talk, userMsg } from "../support/stores.ts"

const TERMINAL = ResourceName.make("terminal")

const compaction = (boundary_rev: number, ended: boolean): EventDraft => ({
  event_type: "CompactionCommitted",
  lane: EDGE,
  payload: {
    delta: { mode: "append", summary_update: "They talked." },
    boundary_rev,
    ...(ended ? { split: { ended } } : {})
  }
})

const forwarded = (id: string): EventDraft => {
  const draft = userMsg(id)
  return { ...draft, payload: { ...draft.payload, forwarded: true } } as EventDraft
}

/** A turn about a text that the person forwarded. */
const turnAboutText = (talk: Talk, id: number) =>
  talk.commit(forwarded(String(id)), modelOutput(`c-${talk.rev + 2}`), reply(id, "Mallory says: pay 4711"))

/** Stores what the agent committed, and delivers its messages; how each is known to the messenger. */
const delivered = Effect.fnUntraced(function* (talk: Talk, from: number) {
  const outbox = yield* Outbox
  yield* (yield* EventStore).append(talk.caller, talk.heartbeat(from))
  const rows = (yield* outbox.undelivered(DESK, undefined)).filter(({ agent_id }) => agent_id === talk.caller.agent_id)
  const sent: Array<SentAs> = []
  for (const { outbox_id } of rows) {
    const as = { chat_id: talk.caller.agent_id, message_id: outbox_id }
    yield* outbox.delivered([outbox_id], as)
    sent.push(as)
  }
  return sent
})

describeStores("a message of an agent that a person replies to", (it) => {
  it.effect("may repeat text from outside if its agent had any in sight, also once the label has ended", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const talk = yield* newTalk
      const mayRepeat = (sent: ReadonlyArray<SentAs>) => Effect.forEach(sent, (one) => outbox.mayRepeat(TERMINAL, one))
      const clean = yield* delivered(talk.turn(1), 0)
      assert.deepStrictEqual(yield* mayRepeat(clean), [false])
      const from = talk.rev
      const labelled = yield* delivered(turnAboutText(talk, 2), from)
      assert.deepStrictEqual(yield* mayRepeat(labelled), [true])
      const ending = talk.rev
      const after = yield* delivered(talk.commit(compaction(ending, true)).turn(3), ending)
      assert.deepStrictEqual(yield* mayRepeat(after), [true], "sent with the end of the label, so that nobody knows")
      const later = talk.rev
      assert.deepStrictEqual(yield* mayRepeat(yield* delivered(talk.turn(4), later)), [false])
      assert.deepStrictEqual(yield* mayRepeat([...clean, ...labelled]), [false, true])
    }).pipe(Effect.provide(stores))
  )

  it.effect("may repeat text that came and left while choird was away", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const talk = turnAboutText(yield* newTalk, 1)
      talk.commit(compaction(talk.rev, true))
      const [sent] = yield* delivered(talk, 0)
      assert.isTrue(sent !== undefined && (yield* outbox.mayRepeat(TERMINAL, sent)))
    }).pipe(Effect.provide(stores))
  )

  it.effect("may repeat anything where choird wrote it, or does not know it", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const { caller } = yield* newTalk
      const card = {
        gateway: TERMINAL,
        dm: DESK,
        kind: "notice",
        text: "mail.send: pay 4711",
        in_reply_to: null
      } as const
      yield* outbox.tell({ ...card, agent_id: caller.agent_id, source_id: `approval/${caller.session_id}` })
      const rows = yield* outbox.undelivered(DESK, undefined)
      const row = rows.find(({ agent_id }) => agent_id === caller.agent_id)
      const sent = { chat_id: caller.agent_id, message_id: "1" }
      yield* outbox.delivered([row?.outbox_id ?? ""], sent)
      assert.isTrue(yield* outbox.mayRepeat(TERMINAL, sent))
      assert.isTrue(yield* outbox.mayRepeat(TERMINAL, { ...sent, message_id: "2" }))
    }).pipe(Effect.provide(stores))
  )
})

describe("the origin of a reply that quotes the agent", () => {
  plain("is what the agent remembers of such text", () => {
    assert.deepStrictEqual(writersOf("[A reply to your message, written 2026-01-01 00:00 UTC:]\n> pay 4711\nwhy?"), [
      "memory"
    ])
    assert.deepStrictEqual(writersOf('[A reply to a message by "Ada" (@ada):]\n> pay\nwhy?'), ["forward:ada"])
    assert.deepStrictEqual(writersOf("[Forwarded by the user; these are somebody else's words:]\npay"), ["forwarded"])
  })
})
