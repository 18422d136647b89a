/** An agent that never answers choird's questions, behind a bot that others use as well. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Layer, SubscriptionRef } from "effect"
import { Plans } from "#src/choird/plans/Plans.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { InboxId } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { CONFIG } from "../support/stores.ts"
import { BOT, lifecycle, noApprovals, quiet, USER } from "../support/telegramBot.ts"

const config = { ...CONFIG, dms: { phone: { gateway: "bot", user_id: String(USER) } } }

const arrival = (id: string, text: string) => ({ id, user_id: String(USER), text })

describe("an agent that does not say what it has in mind", () => {
  it.effect("keeps nobody's messages waiting, however often it is asked", () =>
    Effect.gen(function* () {
      const said = yield* Deferred.make<void>()
      const asked: Array<string> = []
      const told: Array<string> = []
      const stored: Array<string> = []
      const services = Layer.mergeAll(
        lifecycle,
        noApprovals,
        quiet,
        Layer.mock(Audit, { record: () => Effect.void }),
        Layer.mock(ConfigStore, {
          current: Effect.flatMap(SubscriptionRef.make({ version: 1, config }), SubscriptionRef.get)
        } as never),
        Layer.mock(EventStore, {}),
        Layer.mock(Plans, { about: () => Effect.undefined }),
        Layer.mock(Inbox, {
          release: () => Effect.undefined,
          receiveAll: (messages) =>
            Effect.sync(() =>
              messages.map(({ text }, position) => {
                stored.push(text)
                return { type: "queued", inbox_id: InboxId.make("1"), position } as const
              })
            )
        }),
        Layer.mock(Outbox, {
          told: () => Effect.succeed(false),
          tell: ({ text }: { readonly text: string }) => Effect.sync(() => void told.push(text))
        } as never),
        Layer.mock(GatewayCommands, {
          run: (command, { request_id }) =>
            Effect.gen(function* () {
              asked.push(request_id)
              if (command.type === "context") yield* Deferred.await(said)
              return { kind: "notice", text: command.type } as const
            })
        })
      )
      yield* Effect.gen(function* () {
        const gateways = yield* Gateways
        yield* gateways.receive(BOT, [arrival("1", "/context"), arrival("2", "/context"), arrival("3", "/stop")])
        yield* gateways.receive(BOT, [arrival("4", "hello")])
        assert.deepStrictEqual(told, ["stop"])
        assert.deepStrictEqual(stored, ["hello"])
        yield* Deferred.succeed(said, undefined)
        yield* Effect.yieldNow
        yield* Effect.yieldNow
        assert.deepStrictEqual(told, ["stop", "context"])
        assert.deepStrictEqual(asked.toSorted(), ["1", "3"])
      }).pipe(Effect.provide(Gateways.layer.pipe(Layer.provide(services))))
    })
  )
})
