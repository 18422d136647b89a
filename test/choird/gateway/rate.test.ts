/** Fifty messages a second from twenty people at one bot, over the real stores (R45). */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Config } from "#schema/Config.ts"
import { ResourceName, SessionId } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { INBOX_PENDING_MAX } from "#src/choird/queues/Inbox.ts"
import { agentView } from "../../support/agentView.ts"
import { database } from "../../support/choird.ts"
import { BINDINGS, CONFIG, newAgent, stores } from "../../support/stores.ts"
import { BOT, gateways } from "../../support/telegramBot.ts"
import { LAYER_MS_MAX, SIZE } from "../../support/size.ts"

const PEOPLE = Array.from({ length: 20 }, (_, index) => ({ dm: ResourceName.make(`person-${index}`), id: 100 + index }))
const PER_SECOND = 50

const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  dms: {
    ...CONFIG.dms,
    ...Object.fromEntries(PEOPLE.map(({ dm, id }) => [dm, { gateway: "bot", user_id: String(id) }]))
  }
})

/** An agent at all of these people's DMs, with a session. */
const setUp = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const agent_id = newAgent()
  const session_id = SessionId.make(`0000000000${agent_id.padStart(12, "0").replaceAll("-", "0")}`.slice(-16))
  yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
    VALUES (${session_id}, ${agent_id}, 'active', '{}')`
  const [first, ...others] = PEOPLE.map(({ dm }) => dm)
  const bindings = { ...BINDINGS, dm: first ?? BINDINGS.dm, dms: [first ?? BINDINGS.dm, ...others] }
  const view = agentView(agent_id, { session_id, bindings })
  const services = gateways.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.mock(ConfigStore, { home: "/", current: Effect.succeed({ version: 1, config }) }),
        Layer.mock(Lifecycle, { list: Effect.succeed([view]), view: () => Effect.succeed(view), recover: Effect.void }),
        Layer.mock(Models, {}),
        ChatSettings.layer
      )
    )
  )
  const { receive } = Context.get(yield* Layer.build(services), Gateways)
  let sent = 0
  /** The messages of one second. */
  const second = Effect.suspend(() =>
    receive(
      BOT,
      Array.from({ length: PER_SECOND }, () => {
        sent += 1
        const { id } = PEOPLE[sent % PEOPLE.length] ?? { id: 0 }
        return { id: `${agent_id}:${sent}`, user_id: String(id), text: String(sent), message_id: sent }
      })
    )
  )
  const rows = sql<{ readonly dm: string; readonly text: string }>`SELECT dm, text FROM choir_control.inbox
    WHERE agent_id = ${agent_id} ORDER BY inbox_id`
  /** The agent takes what waits. */
  const take = sql`UPDATE choir_control.inbox SET acked_rev = 1 WHERE agent_id = ${agent_id} AND acked_rev IS NULL`
  const refusals = sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox
    WHERE agent_id = ${agent_id} AND kind = 'refusal' ORDER BY outbox_id`
  return { second, rows, take, refusals }
})

describe("a bot of twenty people", () => {
  layer(stores.pipe(Layer.provideMerge(database)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect(
      `takes ${PER_SECOND} messages a second for ${SIZE.rateSeconds} seconds, each once and in the order of its chat`,
      () =>
        Effect.gen(function* () {
          const { refusals, rows, second, take } = yield* setUp
          for (let count = 0; count < SIZE.rateSeconds; count += 1) {
            yield* second
            yield* take
          }
          const stored = yield* rows
          assert.lengthOf(stored, PER_SECOND * SIZE.rateSeconds)
          for (const { dm } of PEOPLE) {
            const numbers = stored.filter((row) => row.dm === dm).map(({ text }) => Number(text))
            assert.deepStrictEqual(
              numbers,
              numbers.toSorted((a, b) => a - b)
            )
          }
          assert.strictEqual(new Set(stored.map(({ text }) => text)).size, stored.length)
          assert.deepStrictEqual(yield* refusals, [])
        }),
      // At size full thirty thousand commits, of which a busy machine does thirty a second.
      LAYER_MS_MAX * 12
    )

    it.effect("refuses politely what comes while the agent takes none, and keeps what it took", () =>
      Effect.gen(function* () {
        const { refusals, rows, second } = yield* setUp
        for (let count = 0; count < INBOX_PENDING_MAX / PER_SECOND + 1; count += 1) yield* second
        assert.deepStrictEqual(
          (yield* rows).map(({ text }) => Number(text)),
          Array.from({ length: INBOX_PENDING_MAX }, (_, index) => index + 1)
        )
        const told = yield* refusals
        assert.lengthOf(told, PER_SECOND)
        assert.match(told[0]?.text ?? "", /^My queue is full \(500 messages\)/u)
      })
    )
  })
})
