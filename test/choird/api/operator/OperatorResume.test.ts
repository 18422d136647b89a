import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ResourceName, SessionId } from "#schema/Ids.ts"
import { OTHER_SESSION, SESSION } from "../../../support/control.ts"
import { openOperator } from "../../../support/operatorSocket.ts"

describe("resuming a session (D19)", () => {
  it.effect("starts its agent on the resources that the session had, every DM included", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const [phone, terminal] = [ResourceName.make("phone"), ResourceName.make("terminal")]
      const resource_bindings = { ...world.row.resource_bindings, dm: phone, dms: [phone, terminal] }
      world.row = { ...world.row, status: "stopped", resource_bindings }
      const resumed = yield* api.resume.resume({ params: { id: SESSION } })
      assert.deepStrictEqual<unknown>(resumed, { session_id: SESSION, agent_id: "ada", epoch: 1 })
      assert.deepStrictEqual(world.effects, ["start"])
      assert.deepStrictEqual<unknown>(world.asked, resource_bindings)
    })
  )

  it.effect("is refused for one that there is not, an older one, and one at its budget, and starts nothing", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const refused = (id: SessionId) =>
        Effect.map(Effect.flip(api.resume.resume({ params: { id } })), (error) =>
          "error" in error ? [error.error.type, "hint" in error.error ? error.error.hint : undefined] : [error._tag]
        )
      assert.deepStrictEqual(yield* refused(SessionId.make("zzzzzzzzzzzzzzzz")), [
        "UNKNOWN_SESSION",
        "choirctl session list"
      ])
      world.row = { ...world.row, status: "closed" }
      assert.deepStrictEqual(yield* refused(SESSION), ["CLOSED", "choirctl agent start ada"])
      world.row = { ...world.row, status: "stopped" }
      world.latest = { ...world.row, session_id: OTHER_SESSION }
      assert.deepStrictEqual(yield* refused(SESSION), ["NOT_LATEST", `choirctl session resume ${OTHER_SESSION}`])
      assert.deepStrictEqual(world.effects, [])
    })
  )
})
