import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema, Stream, SubscriptionRef } from "effect"
import { Config } from "#schema/Config.ts"
import { SecretName } from "#schema/Ids.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore, SecretMissing } from "#src/choird/config/ConfigStore.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { layerGateways } from "#src/choird/channels.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { CONFIG } from "../../support/stores.ts"
import { lifecycle, noAgentCommands, noApprovals, nthPoll, polls } from "../../support/telegramBot.ts"
import { quietMemory } from "../../support/quietMemory.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const decode = Schema.decodeUnknownSync(Config)

/** The token of a second bot. */
const OTHER = "2000:other"

/** The gateways over a configuration that a test replaces. */
const setUp = Effect.gen(function* () {
  const telegram = yield* makeTelegram
  const configWith = (more: object = {}) =>
    decode({
      ...CONFIG,
      gateways: {
        terminal: { type: "console" },
        bot: { type: "telegram", secret: "bot-token", api_root: telegram.url }
      },
      ...more
    })
  const current = yield* SubscriptionRef.make({ version: 1, config: configWith() })
  const world: { token: string | undefined } = { token: "1000:first" }
  const store = Layer.mock(ConfigStore, {
    home: "/h",
    current: SubscriptionRef.get(current),
    changes: SubscriptionRef.changes(current),
    secret: (name) =>
      Effect.suspend(() =>
        name === "other-token"
          ? Effect.succeed(Redacted.make(OTHER))
          : world.token === undefined
            ? Effect.fail(new SecretMissing({ secret: SecretName.make("bot-token") }))
            : Effect.succeed(Redacted.make(world.token))
      )
  })
  const services = Layer.mergeAll(
    store,
    GatewayHealth.layer,
    Layer.mock(Audit, { record: () => Effect.void }),
    Layer.mock(Contexts, {}),
    Layer.mock(Drafts, { changes: Stream.never }),
    Layer.mock(EventStore, { appended: Stream.never }),
    Layer.mock(Inbox, { receiveAll: () => Effect.succeed([]), release: () => Effect.undefined }),
    Layer.mock(Models, {}),
    Layer.mock(Plans, { about: () => Effect.undefined }),
    Layer.mock(Schedules, {}),
    Layer.mock(Outbox, {
      abandon: () => Effect.succeed(0),
      tell: () => Effect.void,
      withFiles: Effect.succeed([]),
      next: () => Effect.undefined,
      filed: () => Effect.succeed([]),
      waiting: () => Effect.succeed([]),
      wakes: () => Stream.never
    }),
    Layer.mock(Reactions, { leftover: () => Effect.succeed([]) }),
    Layer.mock(Steering, {}),
    lifecycle,
    noAgentCommands,
    noApprovals,
    Layer.mock(ChatSettings, { moved: () => Effect.undefined }),
    Layer.mock(Pairings, { redeem: () => Effect.succeed(false) }),
    quietMemory
  )
  /** Replaces what runs, as an apply or new secrets do. */
  const change = (more: object = {}) =>
    SubscriptionRef.update(current, ({ version }) => ({ version: version + 1, config: configWith(more) }))
  return { change, telegram, world, context: yield* Layer.build(layerGateways.pipe(Layer.provideMerge(services))) }
})

describe("gateways whose configuration changes", () => {
  it.live("connect again with a new token, and poll no more with the old one (R35)", () =>
    Effect.gen(function* () {
      const { change, telegram, world } = yield* setUp
      const [old, fresh] = [telegram.bot("1000:first"), telegram.bot("1000:second")]
      yield* nthPoll(old, 1)
      world.token = "1000:second"
      yield* change()
      yield* nthPoll(fresh, 1)
      const before = (yield* polls(old)).length
      yield* fresh.text(1, "hello")
      yield* nthPoll(fresh, 2)
      assert.strictEqual((yield* polls(old)).length, before)
    })
  )

  it.live("stay as they are when something else changes, and end with their gateway or token", () =>
    Effect.gen(function* () {
      const { change, context, telegram, world } = yield* setUp
      const bot = telegram.bot("1000:first")
      yield* nthPoll(bot, 1)
      yield* change({ heartbeat_interval_ms: 900 })
      yield* bot.text(1, "hello")
      yield* nthPoll(bot, 2)
      const count = (yield* polls(bot)).length
      world.token = undefined
      yield* change()
      const health = yield* Effect.provideContext(Effect.service(GatewayHealth), context)
      const missing = Effect.map(health.all, (all) => [...all].find(([name]) => name === "bot")?.[1].detail ?? "")
      const said = yield* Effect.repeat(missing, {
        until: (detail) => detail.includes("choirctl secret set bot-token")
      })
      assert.include(said, "has no value")
      yield* change({ dms: {}, gateways: { terminal: { type: "console" } } })
      assert.strictEqual((yield* polls(bot)).length, count)
    })
  )

  it.live("poll with one bot while another is refused, doubled or away (R44)", () =>
    Effect.gen(function* () {
      const { change, telegram } = yield* setUp
      const [refused, fine] = [telegram.bot("1000:first"), telegram.bot(OTHER)]
      yield* refused.fail("getUpdates", fault.unauthorized, 1000)
      const bot = { type: "telegram", api_root: telegram.url }
      const terminal = { type: "console" }
      yield* change({
        gateways: { terminal, bot: { ...bot, secret: "bot-token" }, other: { ...bot, secret: "other-token" } }
      })
      yield* nthPoll(refused, 1)
      yield* nthPoll(fine, 1)
      for (const [index, what] of [fault.unauthorized, fault.conflict, fault.serverError, fault.silence].entries()) {
        yield* refused.heal
        yield* refused.fail("getUpdates", what, 1000)
        yield* fine.text(1, "hello")
        yield* nthPoll(fine, index + 2)
      }
    })
  )
})
