import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Config } from "#schema/Config.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { SessionId } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { applyProjections } from "#src/choird/sessions/projections.ts"
import { agentView } from "../../support/agentView.ts"
import { database } from "../../support/choird.ts"
import { BINDINGS, CONFIG, newAgent, PHONE, stores } from "../../support/stores.ts"
import { BOT, DMS, gateways, nthPoll, texts, USER } from "../../support/telegramBot.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const start = Effect.forkChild({ startImmediately: true })

const config = Schema.decodeUnknownSync(Config)(CONFIG)

let bots = 0

/** A bot and an agent of their own, with a session, over the tables that the suite shares. */
const setUp = Effect.gen(function* () {
  const telegram = yield* makeTelegram
  const sql = yield* SqlClient.SqlClient
  bots += 1
  const bot = telegram.bot(`${7000 + bots}:secret`)
  const agent_id = newAgent()
  const session_id = SessionId.make(`00000000000000e${bots}`)
  yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
    VALUES (${session_id}, ${agent_id}, 'active', '{}')`
  const view = agentView(agent_id, { session_id, bindings: { ...BINDINGS, dm: PHONE } })
  const services = gateways.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        TelegramApi.layer(Redacted.make(bot.token), telegram.url),
        Layer.mock(Lifecycle, { list: Effect.succeed([view]), view: () => Effect.succeed(view), recover: Effect.void }),
        Layer.mock(Models, {}),
        ChatSettings.layer,
        GatewayHealth.layer
      )
    )
  )
  const rows = sql<{ readonly inbox_id: string; readonly text: string }>`SELECT inbox_id::text, text
    FROM choir_control.inbox WHERE agent_id = ${agent_id} AND joined_to IS NULL ORDER BY inbox.inbox_id`
  let rev = 0
  return {
    bot,
    rows,
    texts: Effect.map(rows, (found) => found.map(({ text }) => text)),
    run: Effect.provide(runTelegram(BOT, DMS), services),
    signals: sql<{ readonly inbox_id: string }>`SELECT payload ->> 'inbox_id' AS inbox_id FROM choir_control.signals
      WHERE session_id = ${session_id} AND kind = 'UserMessage' ORDER BY signal_id`,
    /** The agent commits that it took a message with this text. */
    take: (inbox_id: string, text: string) =>
      Effect.suspend(() => {
        rev += 1
        const payload = { inbox_id, dm: PHONE, text, attachments: [] }
        const event = { v: 2, rev, event_type: "UserMsg", lane: "edge", payload, created_at: "" }
        return sql.withTransaction(
          applyProjections(
            config,
            { session_id, agent_id, dms: [PHONE], workspace: "main", labelled: false },
            [event as unknown as ChoirEvent],
            { taken: [], beyond: [] }
          )
        )
      })
  }
})

type World = Effect.Success<typeof setUp>

/** Lets the time go by until the inbox has these texts. */
const until = ({ bot, texts: now }: World, wanted: ReadonlyArray<string | RegExp>) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("100 millis"), Effect.all([now, bot.pending])), {
    until: ([found, pending]) =>
      pending === 0 &&
      found.length === wanted.length &&
      wanted.every((one, at) => (typeof one === "string" ? found[at] === one : one.test(found[at] ?? "")))
  })

const [MILK, BREAD, ROLLS, TEA] = ["Buy milk", "Buy bread", "Buy rolls", "Buy tea"] as const
const corrected = (text: string, was: string) =>
  `[The user edited an earlier message, which was: "${was}". It is now:]\n${text}`

/** A person writes or edits the one message, or the agent takes a row with a text; then the inbox `has` these texts. */
type Step = (
  | { readonly says: string }
  | { readonly edits: string }
  | { readonly takes: readonly [row: number, text: string] }
) & { readonly has?: ReadonlyArray<string> }

/** Plays the steps; what is there at the end is there a minute later. */
const played = Effect.fnUntraced(function* (world: World, steps: ReadonlyArray<Step>) {
  const running = yield* start(world.run)
  let texts: ReadonlyArray<string> = []
  let message = 0
  for (const step of steps) {
    if ("says" in step) message = yield* world.bot.text(USER, step.says)
    else if ("edits" in step) yield* world.bot.edit(message, step.edits)
    else yield* world.take((yield* world.rows)[step.takes[0]]?.inbox_id ?? "", step.takes[1])
    texts = step.has ?? ("says" in step ? [step.says] : texts)
    yield* until(world, texts)
  }
  yield* TestClock.adjust("1 minute")
  yield* until(world, texts)
  yield* Fiber.interrupt(running)
})

const CORRECTIONS: Readonly<Record<string, ReadonlyArray<Step>>> = {
  "when it was taken; a further edit changes that": [
    { says: MILK },
    { takes: [0, MILK] },
    { edits: BREAD, has: [BREAD, corrected(BREAD, MILK)] },
    { edits: ROLLS, has: [ROLLS, corrected(ROLLS, MILK)] },
    { takes: [1, corrected(ROLLS, MILK)] },
    { edits: TEA, has: [TEA, corrected(ROLLS, MILK), corrected(TEA, ROLLS)] }
  ],
  "also when the agent took the old one while the edit was on its way": [
    { says: MILK },
    { edits: BREAD, has: [BREAD] },
    { takes: [0, MILK], has: [BREAD, corrected(BREAD, MILK)] }
  ]
}

const onTestClock = Effect.provide(TestClock.layer())

describe("An edited message", () => {
  layer(stores.pipe(Layer.provideMerge(database)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("has its new text, and is signalled again, when no lane has taken it", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        yield* played(world, [{ says: MILK }, { edits: BREAD, has: [BREAD] }])
        const [row] = yield* world.rows
        assert.deepStrictEqual(
          (yield* world.signals).map(({ inbox_id }) => inbox_id),
          [row?.inbox_id, row?.inbox_id]
        )
        yield* played(world, [{ takes: [0, BREAD], has: [BREAD] }])
      }).pipe(onTestClock)
    )

    for (const [what, steps] of Object.entries(CORRECTIONS))
      it.effect(`is a correction that quotes the text ${what}`, () =>
        Effect.flatMap(setUp, (world) => played(world, steps)).pipe(onTestClock)
      )

    it.effect("counts once after a kill before its confirmation, also when it was taken meanwhile", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        const first = yield* start(world.run)
        const id = yield* bot.text(USER, "Buy milk")
        yield* until(world, ["Buy milk"])
        yield* bot.fail("getUpdates", { kind: "silence", accepted: false })
        yield* bot.edit(id, "Buy bread")
        yield* Effect.repeat(world.texts, { until: ([text]) => text === "Buy bread" })
        yield* Fiber.interrupt(first)
        yield* world.take((yield* world.rows)[0]?.inbox_id ?? "", "Buy bread")
        yield* start(world.run)
        yield* until(world, ["Buy bread"])
      }).pipe(onTestClock)
    )

    it.effect("is a correction when it was joined from several, and quotes their beginning", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        yield* start(world.run)
        yield* nthPoll(bot, 1)
        const id = yield* bot.text(USER, `begin ${"x".repeat(3000)}`)
        yield* nthPoll(bot, 2)
        yield* bot.text(USER, "end")
        yield* nthPoll(bot, 3)
        yield* until(world, [/^begin x+\nend$/u])
        yield* bot.edit(id, "begin again")
        yield* until(world, [/^begin x+\nend$/u, /which was: "begin x{194}…"\. It is now:\]\nbegin again$/u])
      }).pipe(onTestClock)
    )

    it.effect("is answered when it is a command, or of a message that nobody has", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        yield* start(world.run)
        const id = yield* bot.text(USER, "/help")
        yield* bot.sent.at(0)
        yield* bot.edit(id, "/status")
        const told = (text: string) =>
          Effect.repeat(TestClock.adjust("100 millis"), {
            until: () => Effect.map(texts(bot), (all) => all.includes(`◆ ${text}`))
          })
        yield* told("I do not take commands from edited messages. Send the command as a new message.")
        yield* bot.edit(id, "no command")
        yield* told("I do not have the message that you edited. Send it again, as a new one.")
        assert.deepStrictEqual(yield* world.texts, [])
      }).pipe(onTestClock)
    )
  })
})
