/** Every gateway of config.json, each on its own: a bot with a wrong token delays nothing and nobody (D45). */
import { Effect, Layer, Result } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { GatewayCommands } from "./GatewayCommands.ts"
import { GatewayHealth } from "./GatewayHealth.ts"
import { Gateways } from "./Gateways.ts"
import { runTelegram } from "./Telegram.ts"
import { TelegramApi } from "./TelegramApi.ts"

export const layerGateways = Layer.effectDiscard(
  Effect.gen(function* () {
    const config = yield* ConfigStore
    const health = yield* GatewayHealth
    const { config: running } = yield* config.current
    for (const [key, gateway] of Object.entries(running.gateways)) {
      const name = ResourceName.make(key)
      // The console has nothing to run: its clients read the outbox themselves (wire.md, Console).
      if (gateway.type === "console") {
        yield* health.report(name, { ok: true, detail: "choirctl chat" })
        continue
      }
      const token = yield* Effect.result(config.secret(gateway.secret))
      if (Result.isFailure(token)) {
        const { hint, message } = token.failure
        yield* health.report(name, { ok: false, detail: `${message}: ${hint}` })
        yield* Effect.logWarning(`the gateway does not run: ${message}`, { gateway: name })
        continue
      }
      const dms = Object.entries(running.dms).flatMap(([dm, place]) =>
        place.gateway === name ? [{ name: ResourceName.make(dm), user_id: place.user_id }] : []
      )
      yield* health.report(name, { ok: false, detail: "connecting" })
      yield* runTelegram(name, dms).pipe(
        Effect.provide(TelegramApi.layer(token.success, gateway.api_root)),
        Effect.tapCause((cause) => Effect.logError("a gateway broke", { gateway: name }, cause)),
        Effect.forkScoped
      )
    }
  })
).pipe(Layer.provide(Gateways.layer), Layer.provide(GatewayCommands.layer))
