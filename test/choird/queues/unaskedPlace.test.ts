/** Where a message goes that answers nobody, over the database: never to somebody else. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, EDGE, InboxId, ResourceName } from "#schema/Ids.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, CONFIG, DESK, newAgent, PHONE, storesWith, Talk } from "../../support/stores.ts"

const BOT = ResourceName.make("bot")
const WATCH = ResourceName.make("watch")
const EVA = ResourceName.make("eva")
/** Bob has a console, a phone and a watch; Eva has a phone. */
const BOBS = [DESK, PHONE, WATCH]
const gateway = { [DESK]: ResourceName.make("terminal") }

const stores = storesWith({
  ...CONFIG,
  gateways: { ...CONFIG.gateways, second: { type: "telegram", secret: "bot-token" } },
  dms: {
    ...CONFIG.dms,
    phone: { gateway: "bot", user_id: "1", admin: true },
    watch: { gateway: "second", user_id: "1" },
    eva: { gateway: "bot", user_id: "2" }
  }
})

let written = 0
const write = (agent_id: AgentId, dm: ResourceName) =>
  Effect.flatMap(Inbox, (inbox) =>
    inbox.receive({
      gateway: gateway[dm] ?? BOT,
      client_id: `unasked-${(written += 1)}`,
      agent_id,
      dm,
      text: "hello",
      attachments: []
    })
  )

/** The DMs at which an agent's messages wait, in their order. */
const places = Effect.fnUntraced(function* (agent_id: AgentId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly dm: string }>`SELECT dm FROM choir_control.outbox
    WHERE agent_id = ${agent_id} ORDER BY outbox_id`
  return rows.map(({ dm }) => dm)
})

/** An agent's session with a message that was asked at one DM, and one of its own accord. */
const session = Effect.fnUntraced(function* (dms: ReadonlyArray<ResourceName>) {
  const agent_id = newAgent()
  const sessions = yield* SessionStore
  const { session_id } = yield* sessions.create(agent_id, { ...BINDINGS, dm: dms[0] ?? DESK, dms }, "abc1234")
  const talk = new Talk(session_id, agent_id)
  return {
    agent_id,
    say: (in_reply_to?: string) =>
      Effect.gen(function* () {
        const from = talk.rev
        const answers = in_reply_to === undefined ? {} : { in_reply_to: InboxId.make(in_reply_to) }
        talk.commit({ event_type: "AgentMessage", lane: EDGE, payload: { kind: "notice", text: "busy", ...answers } })
        yield* Effect.flatMap(EventStore, (events) => events.append(talk.caller, talk.heartbeat(from)))
      })
  }
})

describeStores("what answers nobody", (it) => {
  it.effect("comes at the phone in which the person wrote last, and never at the console beside it", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const agent_id = newAgent()
      const notify = (source_id: string) =>
        outbox.notify({ agent_id, dms: BOBS, source_id: `${agent_id}/${source_id}`, text: "the disk is full" })
      yield* notify("1")
      yield* write(agent_id, WATCH)
      yield* write(agent_id, DESK)
      yield* notify("2")
      yield* notify("2")
      yield* write(agent_id, PHONE)
      yield* notify("3")
      assert.deepStrictEqual(yield* places(agent_id), [PHONE, WATCH, PHONE])
      yield* outbox.notify({ agent_id, dms: [ResourceName.make("gone")], source_id: `${agent_id}/4`, text: "x" })
      assert.lengthOf(yield* places(agent_id), 3)
    }).pipe(Effect.provide(stores))
  )

  it.effect("comes at the admin's phone where another person wrote last", () =>
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const agent_id = newAgent()
      yield* write(agent_id, EVA)
      yield* outbox.notify({ agent_id, dms: [EVA, DESK, PHONE], source_id: `${agent_id}/1`, text: "crashed" })
      assert.deepStrictEqual(yield* places(agent_id), [PHONE])
    }).pipe(Effect.provide(stores))
  )

  it.effect("is told apart from a notice on the way to an answer, which comes where that was asked", () =>
    Effect.gen(function* () {
      const { agent_id, say } = yield* session([DESK, PHONE, EVA])
      const asked = yield* write(agent_id, EVA)
      yield* write(agent_id, PHONE)
      yield* say(asked.type === "queued" ? asked.inbox_id : "0")
      yield* say()
      // An id that is nobody's names no place of the agent's choice.
      yield* say("999999999")
      assert.deepStrictEqual(yield* places(agent_id), [EVA, PHONE, PHONE])
    }).pipe(Effect.provide(stores))
  )
})
