/** The operator's endpoints about bots and people. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { DmSummary, GatewaySummary } from "#schema/DmsApi.ts"
import { ResourceName } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { conflict, notFound } from "#src/choird/api/refusals.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Pairings, type PairingRefused } from "#src/choird/gateway/Pairings.ts"

const fromPairingRefused = ({ hint, kind, reason }: PairingRefused) =>
  kind === "UNKNOWN_AGENT" || kind === "UNKNOWN_GATEWAY" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

const names = (section: Readonly<Record<string, unknown>>) =>
  Object.keys(section)
    .sort()
    .map((name) => ResourceName.make(name))

/** The bots and the people of the running configuration. */
const makeLists = Effect.gen(function* () {
  const config = yield* ConfigStore
  const health = yield* GatewayHealth
  const lifecycle = yield* Lifecycle

  const dms = Effect.gen(function* () {
    const running = (yield* config.current).config
    const views = yield* lifecycle.list
    return names(running.dms).flatMap((name): ReadonlyArray<DmSummary> => {
      const dm = running.dms[name]
      if (dm === undefined) return []
      const agent = views.find(({ bindings }) => bindings !== null && boundDms(bindings).includes(name))
      const { admin, gateway, user_id } = dm
      return [{ name, gateway, user_id, admin, agent_id: agent?.agent_id ?? null }]
    })
  })

  const gateways = Effect.gen(function* () {
    const running = (yield* config.current).config
    const reported = yield* health.all
    return yield* Effect.forEach(names(running.gateways), (name) =>
      Effect.map(health.nameOf(name), (bot): GatewaySummary => ({
        name,
        type: running.gateways[name]?.type ?? "",
        bot: bot ?? null,
        ...(reported.get(name) ?? { ok: false, detail: "not started" }),
        dms: names(running.dms).filter((dm) => running.dms[dm]?.gateway === name)
      }))
    )
  })
  return { dms, gateways }
})

export const layerOperatorDms = HttpApiBuilder.group(
  OperatorApi,
  "dms",
  Effect.fnUntraced(function* (handlers) {
    const health = yield* GatewayHealth
    const pairings = yield* Pairings
    const { dms, gateways } = yield* makeLists
    return handlers.handleAll({
      list: () => dms,
      gateways: () => gateways,
      pair: Effect.fn("OperatorApi.pair")(function* ({ payload }) {
        const { agent_id, code, shares, until_ms, warning } = yield* Effect.mapError(
          pairings.offer(payload),
          fromPairingRefused
        )
        const bot = (yield* health.nameOf(payload.gateway)) ?? null
        const { gateway, group, name } = payload
        const expires_at = new Date(until_ms).toISOString()
        return {
          name,
          gateway,
          code,
          bot,
          agent_id: agent_id ?? null,
          expires_at,
          ...(group === undefined ? {} : { group }),
          ...(shares.length === 0 ? {} : { shares }),
          ...(warning === undefined ? {} : { warning })
        }
      })
    })
  })
)
