/** The way of a message over a messenger that is not Telegram, with real stores. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { AgentId, InboxId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChannelFailed } from "#src/choird/gateway/ChannelFailed.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { agentView } from "../../support/agentView.ts"
import { database } from "../../support/choird.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"
import { BINDINGS, CONFIG, storesWith } from "../../support/stores.ts"
import { quiet } from "../../support/telegramBot.ts"
import { makePigeonPost } from "../../support/testing/PigeonPost.ts"

const LOFT = ResourceName.make("loft")
const NEST = { name: ResourceName.make("nest"), user_id: "ada of the hill", admin: true }
const BARN = { name: ResourceName.make("barn"), user_id: "bob of the dale", admin: false }

const start = Effect.forkChild({ startImmediately: true })

let worlds = 0
/** A loft with two people and an agent of their own that runs. */
const open = Effect.gen(function* () {
  worlds += 1
  const agent_id = AgentId.make(`keeper-${worlds}`)
  const workspace = yield* temporaryFolder
  const dms = Object.fromEntries(
    [NEST, BARN].map(({ admin, name, user_id }) => [name, { gateway: LOFT, user_id, admin }])
  )
  const config = {
    ...CONFIG,
    gateways: { ...CONFIG.gateways, loft: { type: "console" } },
    dms: { ...CONFIG.dms, ...dms },
    workspaces: { main: { path: workspace } },
    agents: {
      [agent_id]: { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small", dm: ["nest", "barn"] } }
    }
  }
  const view = agentView(agent_id, { bindings: { ...BINDINGS, dm: NEST.name, dms: [NEST.name, BARN.name] } })
  const lifecycle = Layer.mock(Lifecycle, {
    list: Effect.succeed([view]),
    view: () => Effect.succeed(view),
    changes: Stream.empty
  })
  const services = yield* Layer.build(
    Layer.merge(Gateways.layer, Layer.mock(CardTaps, {})).pipe(
      Layer.provideMerge(GatewayCommands.layer),
      Layer.provideMerge(quiet),
      Layer.provideMerge(Layer.mergeAll(storesWith(config), lifecycle, Layer.mock(Models, {})))
    )
  )
  const post = yield* makePigeonPost
  const run = Effect.provideContext(post.run(LOFT, [NEST, BARN]), services)
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideContext(effect, services)
  const tell = (text: string, dm = NEST.name, in_reply_to: InboxId | null = null) =>
    within(
      Effect.flatMap(Outbox, (outbox) =>
        outbox.tell({
          gateway: LOFT,
          dm,
          agent_id,
          source_id: `${agent_id}/${text}`,
          kind: "notice",
          text,
          in_reply_to
        })
      )
    )
  const taken = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = sql<{ readonly text: string; readonly dm: string }>`SELECT dm, text FROM choir_control.inbox
      WHERE agent_id = ${agent_id} ORDER BY inbox_id`
    return yield* rows
  })
  const lost = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`SELECT 1 FROM choir_control.outbox WHERE agent_id = ${agent_id} AND failed_at IS NOT NULL`
  )
  /** Waits for the messages that the agent has to answer. */
  const takenOf = (count: number) => Effect.repeat(taken, { until: (rows) => rows.length >= count })
  const texts = Effect.map(post.letters.all, (letters) => letters.map(({ dm, text }) => `${dm}: ${text}`))
  return { lost, post, run, tell, takenOf, texts, within }
})

describe("a second messenger", () => {
  layer(database, { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("brings texts and files to the agent, answers commands, and tells strangers nothing", () =>
      Effect.gen(function* () {
        const { post, run, takenOf, texts } = yield* open
        yield* start(run)
        const { admin: _, name: __, ...ada } = NEST
        const file = (file_id: string) => ({ file_id, kind: "document" as const, name: "map.txt", bytes: undefined })
        post.files.set("late", new ChannelFailed({ description: "turned back", is_final: false, retry_after_ms: null }))
        yield* post.arrive({ id: "one", ...ada, text: "good morning" })
        yield* post.arrive({ id: "two", user_id: "a stranger", text: "let me in" })
        yield* post.arrive({ id: "three", user_id: BARN.user_id, text: "and I", file: file("late") })
        yield* post.arrive({ id: "four", ...ada, text: "with a map", file: file("lost") })
        yield* post.arrive({ id: "five", ...ada, text: "/approvals" })
        const rows = yield* takenOf(3)
        assert.deepStrictEqual(
          rows.map(({ dm, text }) => [dm, text.split("\n")[0]]),
          [
            ["nest", "good morning"],
            ["barn", "and I"],
            ["nest", "with a map"]
          ]
        )
        assert.include(rows[2]?.text, 'The document "map.txt" did not reach the agent: the letter was empty.')
        yield* post.letters.first(({ text }) => text.includes("Nothing is waiting for your approval"))
        assert.isFalse((yield* texts).some((text) => text.includes("let me in") || text.includes("stranger")))
      })
    )

    it.effect("delivers in order and whole, waits out what passes, and tells of what it refuses", () =>
      Effect.gen(function* () {
        const { lost, post, run, tell, texts, within } = yield* open
        const long = "a word ".repeat(2000).trim()
        post.weather.push("storm", "storm")
        yield* tell("first")
        yield* tell(long)
        yield* start(run)
        yield* post.letters.first(({ text }) => text === long)
        assert.deepStrictEqual(yield* texts, ["nest: first", `nest: ${long}`])
        post.weather.push("hawk")
        yield* tell("taken by a hawk")
        const told = yield* post.letters.first(({ text }) => text.includes("could not be delivered"))
        assert.deepInclude(told, { dm: NEST.name })
        assert.include(told.text, "a hawk took it")
        post.weather.push("loft closed")
        yield* tell("to a closed loft")
        // News of a closed chat goes to another one.
        yield* post.letters.first(({ dm, text }) => dm === BARN.name && text.includes("the loft is closed"))
        // And of news that is refused no further news comes.
        post.weather.push("loft closed", "hawk")
        yield* tell("to the closed loft again")
        yield* within(Effect.repeat(lost, { until: (rows) => rows.length === 4 }))
        yield* tell("after all")
        yield* post.letters.first(({ text }) => text === "after all")
        assert.lengthOf(
          (yield* texts).filter((text) => text.includes("could not be delivered")),
          2
        )
      })
    )

    it.effect("sends again what a death did not record, and nothing that a stop waited for", () =>
      Effect.gen(function* () {
        const { post, run, tell, texts, within } = yield* open
        post.weather.push("held")
        yield* tell("held up")
        const first = yield* start(run)
        yield* post.letters.first(({ text }) => text === "held up")
        const stop = yield* start(Fiber.interrupt(first))
        yield* post.release
        yield* Fiber.join(stop)
        assert.deepStrictEqual(
          yield* within(Effect.flatMap(Outbox, (outbox) => outbox.undelivered(NEST.name, undefined))),
          []
        )
        yield* tell("after the stop")
        yield* start(run)
        yield* post.letters.first(({ text }) => text === "after the stop")
        assert.deepStrictEqual(yield* texts, ["nest: held up", "nest: after the stop"])
      })
    )
  })
})
