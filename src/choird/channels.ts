/**
 * Every gateway of config.json, independently: a bot with a wrong token delays nobody (D45). A bot whose token, server or people
 * change is reconnected; the others do not notice.
 */
import { Effect, Equal, FiberMap, Layer, type Redacted, Result, Stream } from "effect"
import { GATEWAY_CONNECTING } from "#schema/DmsApi.ts"
import type { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import type { ChannelDm } from "#src/choird/gateway/Channel.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { layerChatCommands } from "#src/choird/chatcommands/layerChatCommands.ts"
import { GatewayAlerts } from "#src/choird/gateway/GatewayAlerts.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { OutgoingFiles } from "#src/choird/gateway/OutgoingFiles.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { Transcriber } from "#src/choird/gateway/Transcriber.ts"

/** Everything that a bot needs to run. */
interface Bot {
  readonly token: Redacted.Redacted
  readonly api_root: string
  readonly local_files: string | undefined
  readonly dms: ReadonlyArray<ChannelDm>
}

const isSame = (a: Bot, b: Bot) =>
  Equal.equals(a.token, b.token) &&
  a.api_root === b.api_root &&
  a.local_files === b.local_files &&
  JSON.stringify(a.dms) === JSON.stringify(b.dms)

/** The bot of a gateway as configured now; undefined for a console, or if the token has no value. */
const wanted = Effect.fnUntraced(function* ({ dms, gateways }: Config, name: ResourceName) {
  const config = yield* ConfigStore
  const health = yield* GatewayHealth
  const gateway = gateways[name]
  if (gateway === undefined) return undefined
  // The console has nothing to run: its clients read the outbox themselves (docs/protocol.md, Console).
  if (gateway.type === "console") {
    yield* health.report(name, { ok: true, detail: "choirctl chat" })
    return undefined
  }
  const token = yield* Effect.result(config.secret(gateway.secret))
  if (Result.isFailure(token)) {
    const { hint, message } = token.failure
    yield* health.report(name, { ok: false, detail: `${message}: ${hint}` })
    yield* Effect.logWarning(`the gateway is not running: ${message}`, { gateway: name })
    return undefined
  }
  const people = Object.entries(dms).flatMap(([dm, place]) =>
    place.gateway === name ? [{ name: ResourceName.make(dm), user_id: place.user_id, admin: place.admin }] : []
  )
  const { api_root, local_files } = gateway
  return { token: token.success, api_root, local_files, dms: people } satisfies Bot
})

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const health = yield* GatewayHealth
  const outbox = yield* Outbox
  const outgoing = yield* OutgoingFiles
  const context = yield* Effect.context<
    | Approvals
    | CardTaps
    | ConfigStore
    | Drafts
    | EventStore
    | GatewayAlerts
    | Gateways
    | GatewayHealth
    | Outbox
    | OutgoingFiles
    | Presence
    | Reactions
  >()
  const fibers = yield* FiberMap.make<ResourceName>()
  const running = new Map<ResourceName, Bot>()

  const start = (name: ResourceName, { api_root, dms, local_files, token }: Bot) =>
    runTelegram(name, dms).pipe(
      Effect.provide(TelegramApi.layer(token, api_root, local_files)),
      Effect.annotateLogs({ gateway: name }),
      Effect.provideContext(context)
    )

  /** Stops the old bot before the new one polls, since Telegram lets only one program poll at a time. */
  const follow = Effect.fnUntraced(function* (config: Config, name: ResourceName) {
    const before = running.get(name)
    const bot = yield* Effect.provideContext(wanted(config, name), context)
    if (before !== undefined && bot !== undefined && isSame(before, bot)) return
    yield* FiberMap.remove(fibers, name)
    running.delete(name)
    if (bot === undefined) return
    if (before !== undefined) yield* Effect.logInfo("the gateway reconnects", { gateway: name })
    yield* health.report(name, { ok: false, detail: GATEWAY_CONNECTING })
    yield* FiberMap.run(fibers, name, restarted(`the gateway ${name}`)(start(name, bot)), { onlyIfMissing: true })
    running.set(name, bot)
  })

  const followAll = Effect.fnUntraced(function* (config: Config) {
    const names = new Set([...running.keys(), ...Object.keys(config.gateways).map((key) => ResourceName.make(key))])
    // Nobody reads the outbox of a removed DM, so its rows would wait forever.
    const ended = yield* databaseDefect(outbox.abandon(Object.keys(config.dms)))
    if (ended > 0)
      yield* Effect.logWarning(`gave up on ${ended} messages, since their DMs are no longer in config.json`)
    yield* outgoing.keepOnly(yield* databaseDefect(outbox.withFiles))
    for (const name of names) yield* follow(config, name)
  })
  yield* followAll((yield* config.current).config)
  yield* config.changes.pipe(
    Stream.runForEach(({ config }) => followAll(config)),
    restarted("the choice of gateways"),
    Effect.forkScoped
  )
})

export const layerGateways = Layer.effectDiscard(make).pipe(
  Layer.provide(CardTaps.layer),
  Layer.provide(Gateways.layer),
  Layer.provide(Layer.merge(OutgoingFiles.layer, Transcriber.layer)),
  Layer.provide(layerChatCommands),
  Layer.provide([Presence.layer, GatewayAlerts.layer])
)
