/** Reminders on a phone with real processes: by command and by the agent, through a stopped agent and a killed choird. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { buttonsOf } from "../support/cards.ts"
import { ResourceName } from "#schema/Ids.ts"
import { botConfig } from "../support/botConfig.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"
import { makeTelegram } from "../support/testing/Telegram.ts"

const USER = 4711
const PHONE = ResourceName.make("phone")
const TOKEN = "1000:secret"

describe("reminders on a phone", () => {
  it.live(
    "come at their time, once, whether the agent runs or choird was killed, and are put off by a button",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const telegram = yield* makeTelegram
        const bot = telegram.bot(TOKEN)
        const choir = yield* makeTestInstallation({
          endpoint: provider.endpoint,
          runtime: "process",
          secrets: { "bot-token": TOKEN },
          config: botConfig(telegram.url, { phone: { user_id: String(USER), admin: true, timezone: "Europe/Berlin" } })
        })
        const choird = yield* choir.start
        yield* choir.build
        yield* choir.api.agents.start({ params: choir.params, payload: { dm: PHONE } })
        const said = (words: string) => bot.sent.first(({ text }) => text?.includes(words) === true)

        // Without a model, and with its number, time and zone in the answer.
        yield* bot.text(USER, "/remind in 2 seconds take the bread out")
        assert.match(
          (yield* said("/cancel plan 1")).text ?? "",
          /^◆ Reminder 1, today at \d\d:\d\d \(Europe\/Berlin\): take the bread out$/mu
        )
        const bread = yield* said("◆ Reminder 1: take")
        const [later] = buttonsOf(bread)
        assert.strictEqual(later?.text, "In 1 hour")
        yield* bot.tap(USER, bread, later?.callback_data ?? "")
        const listed = Effect.andThen(bot.text(USER, "/next"), said("To leave out the next time"))
        assert.match((yield* listed).text ?? "", /^◆ 2\. .*: take the bread out$/mu)

        // A reply with a time alone puts it off to then.
        yield* bot.reply(USER, bread, "tomorrow 9:00")
        yield* said("Reminder 3, tomorrow at 09:00 (Europe/Berlin): take the bread out")

        // By the agent, in the chat that asked.
        yield* bot.text(USER, 'call choir.plan.set {"when":"in 2 seconds","text":"call Bob"}')
        yield* said("Reminder 4: call Bob")

        // A stopped agent keeps nobody from being reminded.
        yield* choir.api.agents.stop({ params: choir.params })
        yield* choir.api.plans.add({
          params: choir.params,
          payload: { when: "in 2 seconds", text: "water the plants", dm: PHONE }
        })
        yield* said("Reminder 5: water the plants")

        // Due while nobody is there to send it.
        const { plan } = yield* choir.api.plans.add({
          params: choir.params,
          payload: { when: "in 3 seconds", text: "close the window", dm: PHONE }
        })
        yield* choird.signal("SIGKILL")
        yield* choird.exited
        yield* choir.start
        yield* said("Reminder 6: close the window")
        assert.deepInclude(yield* choir.api.plans.show({ params: { ...choir.params, plan: plan.plan_id } }), {
          state: "ended"
        })
        const reminders = (yield* bot.sent.all).flatMap(({ text = "" }) => /^◆ Reminder (\d):/u.exec(text)?.[1] ?? [])
        assert.deepStrictEqual(reminders, ["1", "4", "5", "6"])
      }).pipe(Effect.scoped),
    LAYER_MS_MAX
  )
})
