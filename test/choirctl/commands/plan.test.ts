import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { PLAN } from "../../support/fakePlans.ts"

describe("choirctl plan", () => {
  it.effect("lists and shows reminders with their next time and how the newest went", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const people = yield* choirctl(home, ["plan", "list"])
      assert.match(people.out, /^PLAN +AGENT +NEXT +TIMES +CHAT +LAST +TEXT\n/u)
      assert.match(
        people.out,
        /^3 +ada +2026-01-05 08:00 \(Europe\/Berlin\) +weekdays at 08:00 +phone +delivered 2026-01-02 08:00 \(Europe\/Berlin\) +stand-up$/mu
      )
      assert.deepStrictEqual(document(yield* choirctl(home, ["plan", "list", "ada", "--all", "--json"])), [PLAN])
      const one = yield* choirctl(home, ["plan", "show", "ada", "3"])
      assert.include(one.out, "plan 3 of ada: stand-up\ntimes: weekdays at 08:00, in Europe/Berlin\n")
      assert.include(one.out, "by gateway:bot/phone")
    })
  )

  it.effect("sets one by exactly one kind of time, and changes it", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const made = yield* choirctl(home, ["plan", "add", "ada", "--every", "weekday at 8:00", "--say", "stand-up"])
      assert.strictEqual(made.out, "plan 3: 2026-01-05 08:00 (Europe/Berlin), at phone\n")
      const once = ["plan", "add", "ada", "--once", "tomorrow 9:00", "--say", "dentist"]
      yield* choirctl(home, [...once, "--dm", "phone", "--zone", "Asia/Tokyo"])
      for (const verb of ["pause", "resume", "skip", "remove"]) yield* choirctl(home, ["plan", verb, "ada", "3"])
      assert.deepStrictEqual(
        calls.map(({ input, name }) => [name, input]),
        [
          ["plan add", { id: "ada", when: "every weekday at 8:00", text: "stand-up" }],
          ["plan add", { id: "ada", when: "tomorrow 9:00", text: "dentist", dm: "phone", zone: "Asia/Tokyo" }],
          ...["pause", "resume", "skip", "remove"].map((verb) => [`plan ${verb}`, { id: "ada", plan: 3 }])
        ]
      )
      for (const wrong of [
        ["plan", "add", "ada", "--say", "x"],
        ["plan", "add", "ada", "--say", "x", "--once", "20m", "--cron", "0 8 * * *"],
        ["plan", "add", "ada", "--say", "x", "--once", "20m", "--zone", "Berlin"],
        ["plan", "show", "ada", "three"],
        ["plan", "add", "ada", "--say", "x", "--once", "20m", "--dm", "no chat"]
      ])
        assert.strictEqual((yield* choirctl(home, wrong)).code, 2, wrong.join(" "))
    })
  )
})
