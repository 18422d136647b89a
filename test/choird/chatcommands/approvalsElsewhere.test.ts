import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { alive, asked, BOT, SUMMARY, TABLET } from "../../support/chatDecisions.ts"
import { describeStores } from "../../support/engines.ts"
import { PHONE } from "../../support/stores.ts"

describeStores("requests that were asked in another chat", (it) => {
  it.effect("show in the private chat of a second person no words of what was asked of the first", () =>
    Effect.gen(function* () {
      const first = yield* asked(PHONE, "call-his")
      const list = (dm: ResourceName, admin: boolean) =>
        Effect.flatMap(GatewayCommands, (commands) =>
          commands.run(
            { type: "approvals" },
            { agent_id: first.agent_id, gateway: BOT, dm, writer: dm, request_id: "list", admin }
          )
        )
      const [number = ""] = first.numbers
      assert.strictEqual(
        (yield* list(TABLET, false)).text,
        `Waiting for your approval:\n${number}: asked in another chat`
      )
      assert.include((yield* list(PHONE, true)).text, `${number}: ${SUMMARY}`)
      const own = yield* asked(TABLET, "call-hers")
      const asAgent = Effect.flatMap(GatewayCommands, (commands) =>
        commands.run(
          { type: "approvals" },
          { agent_id: own.agent_id, gateway: BOT, dm: TABLET, writer: TABLET, request_id: "own", admin: false }
        )
      )
      assert.include((yield* asAgent).text, SUMMARY)
    }).pipe(alive)
  )
})
