import { assert, describe, it } from "@effect/vitest"
import { ResourceName } from "#schema/Ids.ts"
import { hasSeveralPeople, peopleOf, unaskedDms, writersAt } from "#src/shared/config/people.ts"

const name = (text: string) => ResourceName.make(text)
const dm = (gateway: string, user_id: string, admin = false) => ({ gateway: name(gateway), user_id, admin })

const config = {
  gateways: {
    terminal: { type: "console" as const },
    bot: { type: "telegram" as const, secret: "a" as never },
    second: { type: "telegram" as const, secret: "b" as never }
  },
  dms: {
    desk: dm("terminal", "local", true),
    phone: dm("bot", "1", true),
    watch: dm("second", "1"),
    eva: dm("bot", "2"),
    family: dm("bot", "-100")
  }
} as unknown as Parameters<typeof peopleOf>[0]

const names = (...all: ReadonlyArray<string>) => all.map(name)

describe("the people at an agent's DMs", () => {
  it("are one where a person has several DMs, at two bots or at the console too", () => {
    assert.deepStrictEqual(
      [...peopleOf(config, names("desk", "phone", "watch"))],
      [["1", names("desk", "phone", "watch")]]
    )
    assert.isFalse(hasSeveralPeople(config, names("desk", "phone", "watch")))
    assert.isUndefined(writersAt(config, names("desk", "phone", "family")))
    assert.isUndefined(writersAt(config, []))
  })

  it("are named by their first phone where there are several, and a group is nobody", () => {
    const writers = writersAt(config, names("desk", "eva", "phone", "family"))
    assert.deepStrictEqual<object>(Object.fromEntries(writers ?? []), { desk: "phone", phone: "phone", eva: "eva" })
  })

  it("are two at a console and at the phone of somebody who is not an admin", () => {
    assert.isTrue(hasSeveralPeople(config, names("desk", "eva")))
  })
})

describe("the DMs for what belongs to nobody's message", () => {
  it("are phones before consoles, admins before others where there are several people, and groups last", () => {
    assert.deepStrictEqual(unaskedDms(config, names("desk", "phone")), names("phone"))
    assert.deepStrictEqual(unaskedDms(config, names("watch", "phone", "desk")), names("watch", "phone"))
    assert.deepStrictEqual(unaskedDms(config, names("eva", "family", "desk", "phone")), names("phone"))
    assert.deepStrictEqual(unaskedDms(config, names("eva", "desk")), names("desk"))
    assert.deepStrictEqual(unaskedDms(config, names("family")), names("family"))
    assert.deepStrictEqual(unaskedDms(config, names("gone", "eva")), names("eva"))
    assert.deepStrictEqual(unaskedDms(config, names("gone")), [])
  })
})
