/** The operator's endpoint that lets a person in. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { conflict, notFound } from "#src/choird/api/refusals.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Pairings, type PairingRefused } from "#src/choird/gateway/Pairings.ts"

const fromPairingRefused = ({ hint, kind, reason }: PairingRefused) =>
  kind === "UNKNOWN_AGENT" || kind === "UNKNOWN_GATEWAY" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

export const layerOperatorDms = HttpApiBuilder.group(
  OperatorApi,
  "dms",
  Effect.fnUntraced(function* (handlers) {
    const health = yield* GatewayHealth
    const pairings = yield* Pairings
    return handlers.handleAll({
      pair: Effect.fn("OperatorApi.pair")(function* ({ payload }) {
        const { agent_id, code, until_ms } = yield* Effect.mapError(pairings.offer(payload), fromPairingRefused)
        const bot = (yield* health.nameOf(payload.gateway)) ?? null
        const { gateway, name } = payload
        return { name, gateway, code, bot, agent_id: agent_id ?? null, expires_at: new Date(until_ms).toISOString() }
      })
    })
  })
)
