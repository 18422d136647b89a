import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { alive, asked, bind, BOT, FAMILY, GROUP_ID, listen, TABLET } from "../../support/chatDecisions.ts"
import { describeStores } from "../../support/engines.ts"
import { newAgent, PHONE } from "../../support/stores.ts"

let typed = 0
/** The answer to words as a person types them at a DM of the agent. */
const say = (agent_id: AgentId, dm: ResourceName, words: string, writer = dm) =>
  Effect.gen(function* () {
    const commands = yield* GatewayCommands
    const read = readCommand(words, writer === PHONE) ?? assert.fail(`no command: ${words}`)
    if (read.type === "say") return read.text
    if (read.type === "forbidden") return "forbidden"
    const request_id = `typed-${(typed += 1)}`
    const speaker = { agent_id, gateway: BOT, dm, writer, request_id, admin: writer === PHONE, zone: "Asia/Tokyo" }
    return (yield* commands.run(read.command, speaker)).text
  })

describeStores("reminders in a chat", (it) => {
  it.effect("are set in the words and the zone of the person, listed, skipped and removed", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      assert.strictEqual(
        yield* say(agent_id, PHONE, "/next"),
        "No reminders are set. To set one: /remind tomorrow 9:00 call Bob"
      )
      assert.match(
        yield* say(agent_id, PHONE, "/remind every day at 8:00 stretch"),
        /^Reminder 1, daily at 08:00, first (?:today|tomorrow) at 08:00 \(Asia\/Tokyo\): stretch\n\/next lists/u
      )
      assert.match(yield* say(agent_id, PHONE, "/next"), /^1\. daily at 08:00, next .* at 08:00: stretch\n/u)
      assert.match(yield* say(agent_id, PHONE, "/skip 1"), /^Skipped\. Reminder 1 comes next .* at 08:00\.$/u)
      assert.strictEqual(yield* say(agent_id, PHONE, "/cancel plan 1"), "Removed reminder 1.")
      assert.strictEqual(yield* say(agent_id, PHONE, "/cancel plan 1"), "Plan 1 is over.")
      assert.match(yield* say(agent_id, PHONE, "/remind stretch"), /^There is no time in it/u)
      assert.match(yield* say(agent_id, PHONE, "/remind"), /^Usage: \/remind <when> <text>/u)
      assert.match(yield* say(agent_id, PHONE, "/skip soon"), /^Usage: \/skip <number>/u)
    }).pipe(alive)
  )

  it.effect("stand in one list with the requests that wait for a person", () =>
    Effect.gen(function* () {
      const { agent_id, numbers } = yield* asked(PHONE, "call-list")
      assert.include(yield* say(agent_id, PHONE, "/next"), `(number ${numbers[0]})`)
    }).pipe(alive)
  )

  it.effect("of one person are not seen, skipped or removed by another, but for an admin", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* say(agent_id, PHONE, "/remind in 3 hours buy the present")
      yield* say(agent_id, TABLET, "/remind in 3 hours water the plants")
      const theirs = yield* say(agent_id, TABLET, "/next")
      assert.include(theirs, "water the plants")
      assert.notInclude(theirs, "present")
      assert.strictEqual(
        yield* say(agent_id, TABLET, "/cancel plan 1"),
        "There is no reminder 1 here; /next lists them."
      )
      const all = yield* say(agent_id, PHONE, "/next")
      for (const words of ["buy the present", "water the plants"]) assert.include(all, words)
      // In a group nobody's private reminders are read out.
      assert.include(yield* say(agent_id, FAMILY, "/next", PHONE), "No reminders are set.")
      yield* say(agent_id, FAMILY, "/remind in 3 hours pack the tent", TABLET)
      assert.include(yield* say(agent_id, FAMILY, "/next", PHONE), "pack the tent")
      assert.strictEqual(
        yield* say(agent_id, FAMILY, "/cancel plan 2", TABLET),
        "There is no reminder 2 here; /next lists them."
      )
    }).pipe(alive)
  )

  it.effect("are put off and stopped by the buttons below them, by those who may see them", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      yield* say(agent_id, PHONE, "/remind every day at 8:00 stretch")
      const taps = yield* CardTaps
      const plans = yield* Plans
      const tap = (user_id: string, data: string, id = data) => taps.tap(BOT, { id, user_id, data, on: undefined })
      const open = Effect.map(plans.list(agent_id, false), (rows) => rows.map(({ plan_id }) => Number(plan_id)))
      assert.deepInclude(yield* tap("3", `plan:stop:1:${agent_id}`), {
        text: "There is no reminder 1 here.",
        loud: true
      })
      assert.isUndefined(yield* tap("99", `plan:stop:1:${agent_id}`))
      for (let again = 0; again < 2; again += 1)
        assert.match((yield* tap("1", `plan:later:1:${agent_id}`))?.text ?? "", /^I will remind you again /u)
      assert.deepStrictEqual(
        [...(yield* open)].toSorted((a, b) => a - b),
        [1, 2]
      )
      assert.deepInclude(yield* tap("1", `plan:stop:1:${agent_id}`), { text: "Reminder 1 is removed." })
      assert.deepStrictEqual(yield* open, [2])
      assert.deepInclude(yield* tap("1", `plan:stop:1:${agent_id}`, "again"), { text: "Plan 1 is over.", loud: true })
    }).pipe(alive)
  )

  it.effect("are put off once by taps in a row, and those of a group by its buttons alone", () =>
    Effect.gen(function* () {
      const agent_id = newAgent()
      listen(agent_id)
      bind(agent_id, PHONE, TABLET, FAMILY)
      yield* say(agent_id, TABLET, "/remind every day at 8:00 stretch")
      yield* say(agent_id, FAMILY, "/remind every day at 9:00 pack", TABLET)
      const taps = yield* CardTaps
      const plans = yield* Plans
      const tap = (id: string, data: string, chat_id: string) =>
        taps.tap(BOT, { id, user_id: "3", data, on: { chat_id, message_id: "7" } })
      for (const id of ["one", "two"])
        assert.match((yield* tap(id, `plan:later:1:${agent_id}`, "3"))?.text ?? "", /^I will remind you again /u)
      assert.lengthOf(yield* plans.list(agent_id, false), 3)
      const forged = yield* tap("three", `plan:stop:2:${agent_id}`, "3")
      assert.strictEqual(forged?.text, "There is no reminder 2 here.")
      const stopped = yield* tap("four", `plan:stop:2:${agent_id}`, GROUP_ID)
      assert.strictEqual(stopped?.text, "Reminder 2 is removed.")
    }).pipe(alive)
  )
})
