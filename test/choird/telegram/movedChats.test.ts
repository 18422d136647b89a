import { assert, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { asConfigured } from "#src/choird/telegram/movedChats.ts"

const pace = { message: Effect.void, sign: Effect.void, hold: () => Effect.void }
const left = Deferred.makeUnsafe<void>()
const chats = [
  { dm: ResourceName.make("family"), user_id: "-5", chat_id: "-1005", pace, left },
  { dm: ResourceName.make("phone"), user_id: "1", chat_id: "1", pace, left }
]
const group = { chat_id: "-1005", writer: "Ada", addressed: true }

it("reads what is written in a group that moved as written in the group of config.json", () => {
  const arrival = { id: "9:1", user_id: "1", text: "hi" }
  assert.deepStrictEqual(asConfigured(chats, { ...arrival, group }), { ...arrival, group: { ...group, chat_id: "-5" } })
  assert.deepStrictEqual(asConfigured(chats, arrival), arrival)
  const other = { ...arrival, group: { ...group, chat_id: "-7" } }
  assert.deepStrictEqual(asConfigured(chats, other), other)
})
