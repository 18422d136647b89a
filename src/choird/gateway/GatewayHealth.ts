/** The health of each gateway, as it reports it, for `choirctl status`. */
import { Context, Effect, Layer } from "effect"
import type { ResourceName } from "#schema/Ids.ts"

export interface Health {
  readonly ok: boolean
  /** One sentence for an operator; no token and no text of a user. */
  readonly detail: string
}

export class GatewayHealth extends Context.Service<
  GatewayHealth,
  {
    /** Replaces the gateway's earlier report. Names are those of config.json, which bounds them. */
    report(gateway: ResourceName, health: Health): Effect.Effect<void>
    /** Notes the name that a bot has at its messenger. */
    named(gateway: ResourceName, bot: string): Effect.Effect<void>
    nameOf(gateway: ResourceName): Effect.Effect<string | undefined>
    readonly all: Effect.Effect<ReadonlyMap<ResourceName, Health>>
  }
>()("choir/choird/GatewayHealth") {
  static readonly layer = Layer.sync(GatewayHealth, () => {
    const names = new Map<ResourceName, string>()
    const healths = new Map<ResourceName, Health>()
    return GatewayHealth.of({
      report: (gateway, health) => Effect.sync(() => void healths.set(gateway, health)),
      named: (gateway, bot) => Effect.sync(() => void names.set(gateway, bot)),
      nameOf: (gateway) => Effect.sync(() => names.get(gateway)),
      all: Effect.sync(() => new Map(healths))
    })
  })
}
