/** Notices about a bot that cannot be reached: to admins elsewhere while it lasts, and to its own chats when it is over. */
import { Context, Effect, Layer } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { OUTBOX_PAGE_MAX } from "#src/choird/queues/outboxRows.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { NOBODY } from "./route.ts"

/** The shortest outage about which the chats of a bot get a notice. */
const OUTAGE_TOLD_MS = 120_000

export interface Outage {
  readonly gateway: ResourceName
  /** When the bot was last reached; the name of the outage, about which each chat gets one notice. */
  readonly since_ms: number
}

/** Messages that waited, by DM. */
export type Waiting = ReadonlyMap<ResourceName, number>

export class GatewayAlerts extends Context.Service<
  GatewayAlerts,
  {
    /** Tells the admins at other gateways, and everybody at a console, that a bot cannot be reached. */
    away(outage: Outage, problem: string): Effect.Effect<void, DatabaseAway>
    /** The messages to each chat of a bot that wait now, at most OUTBOX_PAGE_MAX of a chat. */
    waiting(gateway: ResourceName): Effect.Effect<Waiting, DatabaseAway>
    /**
     * Tells the chats of a bot that is reached again what waited, if the outage was long and anything did.
     * @param from the chat of each message that came with the first poll
     */
    back(outage: Outage, outage_ms: number, to: Waiting, from: ReadonlyArray<string>): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/GatewayAlerts") {
  static readonly layer = Layer.effect(
    GatewayAlerts,
    Effect.gen(function* () {
      const config = yield* ConfigStore
      const outbox = yield* Outbox
      const places = Effect.map(config.current, ({ config: current }) =>
        Object.entries(current.dms).map(([dm, { admin, gateway, user_id }]) => ({
          dm: ResourceName.make(dm),
          gateway,
          chat_id: user_id,
          hears: admin || traitsOf(current, gateway).is_local
        }))
      )
      const tell = (
        place: { readonly dm: ResourceName; readonly gateway: ResourceName },
        source: string,
        text: string
      ) =>
        outbox.tell({
          gateway: place.gateway,
          dm: place.dm,
          agent_id: NOBODY,
          source_id: `${source}/${place.dm}`,
          kind: "notice",
          text,
          in_reply_to: null
        })

      return GatewayAlerts.of({
        away: Effect.fn("GatewayAlerts.away")(function* ({ gateway, since_ms }, problem) {
          for (const place of yield* places)
            if (place.hears && place.gateway !== gateway)
              yield* tell(place, `away/${gateway}/${since_ms}`, `The bot ${gateway} cannot be reached: ${problem}`)
        }),
        waiting: Effect.fn("GatewayAlerts.waiting")(function* (gateway) {
          const counts = new Map<ResourceName, number>()
          for (const { dm, gateway: own } of yield* places)
            if (own === gateway) counts.set(dm, (yield* outbox.waiting(dm, OUTBOX_PAGE_MAX)).length)
          return counts
        }),
        back: Effect.fn("GatewayAlerts.back")(function* ({ gateway, since_ms }, outage_ms, to, from) {
          if (outage_ms <= OUTAGE_TOLD_MS) return
          for (const place of (yield* places).filter((one) => one.gateway === gateway)) {
            const written = from.filter((chat_id) => chat_id === place.chat_id).length
            const text = outageText(outage_ms, to.get(place.dm) ?? 0, written)
            if (text !== undefined) yield* tell(place, `back/${gateway}/${since_ms}`, text)
          }
        })
      })
    })
  )
}

const counted = (count: number) => (count >= OUTBOX_PAGE_MAX ? `at least ${count}` : String(count))
const messages = (count: number) => `${counted(count)} ${count === 1 ? "message" : "messages"}`

/** The notice in a chat when its bot is reached again; undefined where nothing waited. */
const outageText = (outage_ms: number, to: number, from: number): string | undefined => {
  const waited = [
    ...(to === 0 ? [] : [`${messages(to)} for you`]),
    ...(from === 0 ? [] : [`${to === 0 ? messages(from) : counted(from)} from you`])
  ]
  if (waited.length === 0) return undefined
  return `Telegram could not be reached for ${Math.round(outage_ms / 60_000)} minutes. Delayed until now: ${waited.join(" and ")}.`
}
