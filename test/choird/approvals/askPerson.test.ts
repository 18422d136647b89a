import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ResourceName } from "#schema/Ids.ts"
import { tellAsked } from "#src/choird/approvals/askPerson.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { alive, asked, deliver, FAMILY, say, TABLET } from "../../support/chatDecisions.ts"
import { decide, find, traces } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { DESK, PHONE } from "../../support/stores.ts"

const CHANGE = { change: [{ op: "set", path: "/budgets/turn_max_steps", value: 9 }], reason: "more room" }
const SUMMARY = "config_change /budgets/turn_max_steps"

/** A change of the configuration that somebody at a DM caused, of an agent with these DMs. */
const proposed = Effect.fnUntraced(function* (dm: ResourceName, dms: ReadonlyArray<ResourceName>, call: string) {
  const sql = yield* SqlClient.SqlClient
  const { agent_id, numbers, talk } = yield* asked(dm, call)
  const [number = ""] = numbers
  // The messages of the call that it was before.
  yield* sql`DELETE FROM choir_control.outbox WHERE source_id = ${`approval/${number}`}`
  yield* sql`UPDATE choir_control.pending_approvals
    SET request_type = 'config_change', canonical = ${JSON.stringify(CHANGE)}, summary = ${SUMMARY}, shown = 'all of it'
    WHERE id = ${BigInt(number)}`
  const { config } = yield* Effect.flatMap(ConfigStore, ({ current }) => current)
  const state = yield* Effect.flatMap(EventStore, (events) => events.state(talk.caller.session_id))
  const woken = yield* tellAsked(config, yield* find(number), { text: "all of it", state, dms, freeOf: () => [] })
  return { agent_id, number, woken, told: traces(talk.caller.session_id).pipe(Effect.map(({ told }) => told)) }
})

describeStores("a change of the configuration", (it) => {
  it.effect(
    "that somebody without the rights of an admin caused is asked at an admin's chat, and the person reads who decides",
    () =>
      Effect.gen(function* () {
        const places = [
          [TABLET, [TABLET, PHONE]],
          [TABLET, [TABLET]],
          [FAMILY, [FAMILY]]
        ] as const
        for (const [index, [dm, dms]] of places.entries()) {
          const { agent_id, number, told, woken } = yield* proposed(dm, dms, `change-${index}`)
          assert.deepStrictEqual(woken, [PHONE, dm])
          const [card, line, ...more] = yield* told
          assert.lengthOf(more, 0)
          assert.strictEqual(card?.dm, PHONE)
          assert.include(card?.text, `${agent_id} asks for your approval (number ${number}).\nall of it\n`)
          assert.include(card?.text, `Tap a button, or send /approve ${number} or /reject ${number}.`)
          assert.deepStrictEqual(line, {
            dm,
            text: `${agent_id} asks to change the configuration (number ${number}): ${SUMMARY}. An admin was asked and decides.`
          })
          yield* deliver(PHONE)
          yield* decide(number, "rejected")
        }
      }).pipe(alive)
  )

  it.effect("is reported to that person too, however an admin decides", () =>
    Effect.gen(function* () {
      const { agent_id, number, told } = yield* proposed(TABLET, [TABLET], "change-decided")
      yield* deliver(PHONE)
      assert.match((yield* say(agent_id, "rejected", number)).text, /^Rejected /u)
      const heard = (yield* told).filter(({ dm }) => dm === TABLET).map(({ text }) => text)
      assert.lengthOf(heard, 2)
      assert.strictEqual(heard[1], `Rejected: ${SUMMARY} (approval ${number}).`)
    }).pipe(alive)
  )

  it.effect("that an admin caused is asked where they wrote, in one message", () =>
    Effect.gen(function* () {
      const { told, woken } = yield* proposed(PHONE, [PHONE, DESK], "change-admin")
      assert.deepStrictEqual(woken, [PHONE])
      assert.deepStrictEqual(
        (yield* told).map(({ dm }) => dm),
        [PHONE]
      )
    }).pipe(alive)
  )
})
