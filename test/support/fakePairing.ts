/** What the fake choird answers to an operator who lets a person in. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AgentId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

export const fakePairing = (calls: Array<{ readonly name: string; readonly input?: unknown }>) =>
  HttpApiBuilder.group(OperatorApi, "dms", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        pair: ({ payload }) =>
          Effect.sync(() => {
            calls.push({ name: "pair", input: payload })
            const { gateway, name } = payload
            const code = { code: "ABCD-EFGH", expires_at: "2026-01-02T03:14:05.678Z" }
            return { name, gateway, ...code, agent_id: AgentId.make("ada"), bot: "double_bot" }
          })
      })
    )
  )
