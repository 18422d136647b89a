/** Messages to an agent that does not run: kept, said so in one line, and taken once it runs again. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, type ResourceName } from "#schema/Ids.ts"
import type { AgentStatus } from "#schema/AgentSummary.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { workspaceOf } from "#src/choird/gateway/attachFiles.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { agentView } from "../../support/agentView.ts"
import { database } from "../../support/choird.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { BINDINGS, CONFIG, PHONE, storesWith } from "../../support/stores.ts"
import { BOT, quiet } from "../../support/telegramBot.ts"

const agent = (dm: string) => ({ repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small", dm } })
const world = (status: AgentStatus, id: AgentId) => {
  const isOff = status === "stopped" || status === "crashed"
  const view = agentView(id, { status, bindings: isOff ? null : { ...BINDINGS, dm: PHONE } })
  const lifecycle = Layer.mock(Lifecycle, {
    list: Effect.succeed([view]),
    view: () => Effect.succeed(view),
    changes: Stream.empty
  })
  return Layer.merge(Gateways.layer, Layer.mock(CardTaps, {})).pipe(
    Layer.provideMerge(GatewayCommands.layer),
    Layer.provideMerge(quiet),
    Layer.provideMerge(
      Layer.mergeAll(storesWith({ ...CONFIG, agents: { [id]: agent("phone") } }), lifecycle, Layer.mock(Models, {}))
    )
  )
}

let updates = 0
/** Receives texts of the person at the phone in one batch; answers the ids, to repeat it. */
const receive = Effect.fnUntraced(function* (texts: ReadonlyArray<string>, first = (updates += 10)) {
  const gateways = yield* Gateways
  yield* gateways.receive(
    BOT,
    texts.map((text, index) => ({ id: `1:${first + index}`, user_id: "1", text }))
  )
  return first
})
const answers = (agent_id: AgentId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly text: string; readonly dm: ResourceName }>`SELECT text, dm FROM choir_control.outbox
        WHERE agent_id = ${agent_id} ORDER BY outbox_id`,
      (rows) => rows.map(({ dm, text }) => `${dm}: ${text}`)
    )
  )
const signals = Effect.fnUntraced(function* (session_id: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly text: string }>`SELECT i.text FROM choir_control.signals AS s
    JOIN choir_control.inbox AS i ON i.inbox_id = (s.payload ->> 'inbox_id')::bigint
    WHERE s.session_id = ${session_id} ORDER BY s.signal_id`
  return rows.map(({ text }) => text)
})

layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })("a message to an agent", (it) => {
  for (const status of ["stopped", "crashed", "stopping"] as const)
    it.effect(`that is ${status} is kept, said to be, and given to its next session once`, () =>
      Effect.gen(function* () {
        const agent_id = AgentId.make(`kept-${status}`)
        yield* Effect.gen(function* () {
          const first = yield* receive(["one", "two"])
          // Telegram repeats a batch whose confirmation it did not get.
          yield* receive(["one", "two"], first)
          assert.deepStrictEqual(yield* answers(agent_id), [
            `phone: ${agent_id} is not running at the moment. Your message is kept, and it is answered when ${agent_id} runs again. An admin can start it: /start ${agent_id}`
          ])
          const sessions = yield* SessionStore
          const begun = yield* sessions.create(agent_id, { ...BINDINGS, dm: PHONE }, "abc1234")
          assert.deepStrictEqual(yield* signals(begun.session_id), ["one", "two"])
          yield* receive(["one", "two"], first)
          assert.deepStrictEqual(yield* signals(begun.session_id), ["one", "two"])
        }).pipe(Effect.provide(Layer.fresh(world(status, agent_id))))
      })
    )

  it.effect("that is paused is kept and said to be, and one that runs says nothing of the kind", () =>
    Effect.gen(function* () {
      const paused = AgentId.make("kept-paused")
      const running = AgentId.make("kept-running")
      for (const [status, agent_id] of [
        ["paused", paused],
        ["running", running]
      ] as const)
        yield* Effect.provide(receive(["hello"]), Layer.fresh(world(status, agent_id)))
      assert.deepStrictEqual(yield* answers(paused), [
        "phone: kept-paused is paused. Your message is kept, and it is answered when kept-paused continues."
      ])
      assert.deepStrictEqual(yield* answers(running), [])
    })
  )
})

describe("a file for an agent that does not run", () => {
  it.effect("goes into the workspace of its next start", () =>
    Effect.gen(function* () {
      const { config } = yield* (yield* ConfigStore).current
      const id = AgentId.make("idle")
      const view = agentView(id, { status: "stopped" })
      assert.strictEqual(workspaceOf(config, view), "/srv/main")
      assert.isUndefined(workspaceOf(config, { ...view, agent_id: AgentId.make("unknown") }))
    }).pipe(Effect.provide(Layer.provideMerge(storesWith({ ...CONFIG, agents: { idle: agent("phone") } }), database)))
  )
})
