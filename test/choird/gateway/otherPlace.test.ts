import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { alive, bind, FAMILY, listen, TABLET } from "../../support/chatDecisions.ts"
import { describeStores } from "../../support/engines.ts"
import { DESK, PHONE } from "../../support/stores.ts"

const GUEST = ResourceName.make("guest")

describeStores("the notice that a message cannot be delivered", (it) => {
  it.effect("goes to an admin's phone and not to another person's chat, a group or a console that may be closed", () =>
    Effect.gen(function* () {
      const { otherPlace } = yield* Gateways
      const agent_id = AgentId.make("agent-elsewhere")
      listen(agent_id)
      for (const [dms, dm, other] of [
        [[TABLET, GUEST, DESK, PHONE], GUEST, PHONE],
        [[TABLET, FAMILY, GUEST, DESK], GUEST, DESK],
        [[FAMILY, GUEST], GUEST, FAMILY],
        [[GUEST], GUEST, undefined]
      ] as const) {
        bind(agent_id, ...dms)
        assert.strictEqual((yield* otherPlace({ agent_id, dm }))?.dm, other, dms.join())
      }
    }).pipe(alive)
  )
})
