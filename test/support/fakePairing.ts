/** What the fake choird answers to an operator about bots and people. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

const BOT = {
  name: ResourceName.make("telegram"),
  type: "telegram",
  bot: "double_bot",
  ok: false,
  detail: "not reached for 90 s"
}
const CONSOLE = { name: ResourceName.make("terminal"), type: "console", bot: null, ok: true, detail: "here", dms: [] }
const PHONE_DM = {
  name: ResourceName.make("phone"),
  gateway: BOT.name,
  user_id: "7",
  admin: true,
  agent_id: AgentId.make("ada")
}
const FAMILY = ResourceName.make("family")

export const fakePairing = (calls: Array<{ readonly name: string; readonly input?: unknown }>) =>
  HttpApiBuilder.group(OperatorApi, "dms", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: () =>
          Effect.succeed([PHONE_DM, { ...PHONE_DM, name: FAMILY, user_id: "-100", admin: false, agent_id: null }]),
        gateways: () => Effect.succeed([{ ...BOT, dms: [PHONE_DM.name, FAMILY] }, CONSOLE]),
        pair: ({ payload }) =>
          Effect.sync(() => {
            calls.push({ name: "pair", input: payload })
            const { agent_id, gateway, name } = payload
            const code = { code: "ABCD-EFGH", expires_at: "2026-01-02T03:14:05.678Z" }
            // At a bot of several agents the person of a code talks to the one that is named.
            const only = name === "guest" ? null : AgentId.make("ada")
            return { name, gateway, ...code, agent_id: agent_id ?? only, bot: "double_bot" }
          })
      })
    )
  )
