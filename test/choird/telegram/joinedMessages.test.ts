import { assert, describe, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Redacted, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Config } from "#schema/Config.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { runTelegram } from "#src/choird/telegram/Telegram.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { agentView } from "../../support/agentView.ts"
import { database } from "../../support/choird.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { BINDINGS, CONFIG, PHONE, stores } from "../../support/stores.ts"
import { settableClock } from "../../support/settableClock.ts"
import { AGENT, BOT, DMS, gateways, nthPoll, USER } from "../../support/telegramBot.ts"
import { makeTelegram, type TelegramBot } from "../../support/testing/Telegram.ts"
import { origins } from "../../support/testing/telegramContent.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"
import { LAYER_MS_MAX } from "../../support/size.ts"

const start = Effect.forkChild({ startImmediately: true })

let bots = 0

/** A bot of its own, whose agent has a workspace, over the tables that the suite shares. */
const setUp = Effect.gen(function* () {
  const telegram = yield* makeTelegram
  bots += 1
  const id = 5000 + bots
  const bot = telegram.bot(`${id}:secret`)
  const workspace = yield* temporaryFolder
  mkdirSync(workspace, { recursive: true })
  const started_with = Schema.decodeUnknownSync(Config)({ ...CONFIG, workspaces: { main: { path: workspace } } })
  const view = agentView(AGENT, { bindings: { ...BINDINGS, dm: PHONE }, started_with })
  const api = TelegramApi.layer(Redacted.make(bot.token), telegram.url)
  const services = gateways.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        api,
        Layer.mock(Lifecycle, { list: Effect.succeed([view]), view: () => Effect.succeed(view), recover: Effect.void }),
        Layer.mock(Models, {}),
        ChatSettings.layer,
        GatewayHealth.layer
      )
    )
  )
  const sql = yield* SqlClient.SqlClient
  const rows = sql<{ readonly text: string; readonly held: boolean; readonly files: ReadonlyArray<{ path: string }> }>`
    SELECT text, held_until IS NOT NULL AS held, attachments AS files FROM choir_control.inbox
    WHERE client_id LIKE ${`${id}:%`} AND joined_to IS NULL ORDER BY inbox_id`
  const received = join(workspace, ".choirtmp/recv")
  return {
    bot,
    rows,
    run: Effect.provide(runTelegram(BOT, DMS), services),
    workspace,
    recv: () => (existsSync(received) ? readdirSync(received) : [])
  }
})

type World = Effect.Success<typeof setUp>

/** Lets the time go by until Telegram has nothing left, and nothing is held. */
const settled = ({ bot, rows }: World) =>
  Effect.repeat(Effect.andThen(TestClock.adjust("100 millis"), Effect.all([bot.pending, rows])), {
    until: ([pending, found]) => pending === 0 && found.length > 0 && found.every(({ held }) => !held)
  }).pipe(Effect.map(([, found]) => found))

/** Waits for rows, while no time goes by. */
const until = (world: World, isThere: (rows: Effect.Success<World["rows"]>) => boolean) =>
  Effect.repeat(world.rows, { until: isThere })

const LONG = Array.from({ length: 1500 }, (_, index) => `word${index}`).join(" ")

/** A cut loses a blank, which the join makes good by a line break. */
const isSame = (text: string | undefined, pasted: string) => text?.replaceAll("\n", " ") === pasted

const PICTURES = ["one", "two", "three"].map((name) => ({
  name: `${name}.jpg`,
  mime: "image/jpeg",
  bytes: Buffer.from(`\xff\xd8\xff\xe0${name}`, "latin1")
}))

/** The lives of a bot that is killed when it asks for updates for the n-th time, and then lives on. */
const killedAt = (world: World, poll: number, act: (bot: TelegramBot) => Effect.Effect<unknown>) =>
  Effect.gen(function* () {
    const { bot, run } = world
    const first = yield* start(run)
    yield* nthPoll(bot, 1)
    yield* act(bot)
    yield* nthPoll(bot, poll)
    yield* Fiber.interrupt(first)
    const second = yield* start(run)
    const rows = yield* settled(world)
    yield* Fiber.interrupt(second)
    return rows
  })

const onTestClock = Effect.provide(TestClock.layer())

describe("Messages that belong together", () => {
  layer(stores.pipe(Layer.provideMerge(database)), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
    it.effect("are one when a long text was cut, though its pieces come one after the other", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        yield* start(world.run)
        yield* nthPoll(world.bot, 1)
        const pieces = world.bot.pieces(LONG)
        assert.isAbove(pieces.length, 2)
        for (const [index, piece] of pieces.entries()) {
          yield* world.bot.text(USER, piece)
          yield* until(world, ([row]) => row?.text.includes(piece) === true)
          assert.strictEqual((yield* world.rows).length, 1, `piece ${index}`)
        }
        const [row, ...more] = yield* settled(world)
        assert.deepStrictEqual(more, [])
        assert.isTrue(isSame(row?.text, LONG))
      }).pipe(onTestClock)
    )

    it.effect("are joined without a blank where a word was cut", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        yield* start(world.run)
        yield* world.bot.paste(USER, "🙂x".repeat(5000))
        const [row, ...more] = yield* settled(world)
        assert.deepStrictEqual(more, [])
        assert.isTrue(row?.text === "🙂x".repeat(5000))
      }).pipe(onTestClock)
    )

    it.effect("are let go by their last piece at once, and without one after 1.5 seconds", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        yield* start(world.run)
        yield* nthPoll(world.bot, 1)
        yield* world.bot.paste(USER, LONG)
        yield* until(world, ([row]) => row?.held === false)
        yield* world.bot.text(USER, "x".repeat(4096))
        yield* until(world, (rows) => rows.length === 2 && rows[1]?.held === true)
        yield* TestClock.adjust("1499 millis")
        assert.isTrue((yield* world.rows)[1]?.held)
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("100 millis"), world.rows), {
          until: (rows) => rows[1]?.held === false
        })
        yield* world.bot.text(USER, "later")
        yield* until(world, (rows) => rows.length === 3)
      }).pipe(onTestClock)
    )

    it.effect("are let go in time when the host's clock is set back by an hour meanwhile", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { clock, set } = yield* settableClock
        yield* start(Effect.provideService(world.run, Clock.Clock, clock))
        yield* nthPoll(world.bot, 1)
        yield* world.bot.text(USER, "x".repeat(4096))
        yield* until(world, ([row]) => row?.held === true)
        set(-3_600_000)
        const letGo = Effect.map(
          Effect.andThen(TestClock.adjust("1 second"), world.rows),
          ([row]) => row?.held === false
        )
        assert.isTrue(yield* Effect.repeat(letGo, { until: (is) => is, times: 120 }))
      }).pipe(onTestClock)
    )

    it.effect("are not joined with a short text before, a forwarded one, or a file", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        yield* bot.text(USER, "short")
        yield* bot.text(USER, "x".repeat(4096))
        yield* bot.forward(USER, "theirs")
        yield* bot.text(USER, "y".repeat(4096))
        yield* bot.file(USER, "document", { name: "a.txt", mime: "text/plain", bytes: Buffer.from("a") })
        yield* bot.text(USER, "end")
        yield* start(world.run)
        const texts = (yield* settled(world)).map(({ text }) => text.slice(-6))
        assert.deepStrictEqual(texts, ["short", "xxxxxx", "theirs", "yyyyyy", "", "end"])
      }).pipe(onTestClock)
    )

    it.effect("are one where several were forwarded at once, with the remark before them, and taint as a whole", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        const sql = yield* SqlClient.SqlClient
        yield* bot.text(USER, "before")
        yield* bot.text(USER, "summarize this")
        yield* bot.send(USER, { text: "one", forward_origin: origins.user({ id: 55, first_name: "Ada" }) })
        yield* bot.send(USER, { text: "two", forward_origin: origins.hidden("Bob") })
        yield* bot.text(USER, "after")
        yield* start(world.run)
        const texts = (yield* settled(world)).map(({ text }) => text)
        assert.deepStrictEqual([texts[0], texts[2], texts.length], ["before", "after", 3])
        assert.match(texts[1] ?? "", /^summarize this\n\[Forwarded .*"Ada".*:\]\none\n\[Forwarded .*"Bob".*:\]\ntwo$/u)
        const marks = yield* sql<{ readonly forwarded: boolean }>`SELECT forwarded FROM choir_control.inbox
          WHERE client_id LIKE ${`${bot.token.split(":")[0]}:%`} AND joined_to IS NULL ORDER BY inbox_id`
        assert.deepStrictEqual(
          marks.map(({ forwarded }) => forwarded),
          [false, true, false]
        )
      }).pipe(onTestClock)
    )

    it.effect("have the quote of a long reply once, whether its app names it with each piece or with the first", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        const quoted = {
          message_id: 1,
          date: 1,
          from: { id: USER, is_bot: false, first_name: "User" },
          text: "earlier"
        }
        const reply = { reply_to_message: { ...quoted, chat: { id: USER, type: "private" } } }
        for (const second of [reply, {}]) {
          yield* bot.send(USER, { text: "x".repeat(4096), ...reply })
          yield* bot.send(USER, { text: "yes", ...second })
          yield* bot.file(USER, "document", { name: "a.txt", mime: "text/plain", bytes: Buffer.from("a") })
        }
        // A reply is no further piece of what was written before it.
        yield* bot.send(USER, { text: "z".repeat(4096) })
        yield* bot.send(USER, { text: "end", ...reply })
        yield* start(world.run)
        const texts = (yield* settled(world)).map(({ text }) => text).filter((text) => text !== "")
        const label = "[A reply to the user's own message, written 1970-01-01 00:00 UTC:]\n> earlier\n"
        assert.deepStrictEqual(
          texts.map((text) => text.replaceAll(/x{4096}|z{4096}/gu, "…")),
          [`${label}…yes`, `${label}…yes`, "…", `${label}end`]
        )
      }).pipe(onTestClock)
    )

    it.effect("have each caption of an album, in its order", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const { bot } = world
        yield* bot.album(USER, PICTURES, "")
        const ids = PICTURES.map((_, index) => `file-${bot.token.split(":")[0]}-${index + 1}`)
        for (const [index, file_id] of ids.entries())
          yield* bot.send(USER, {
            photo: [{ file_id, file_unique_id: `u${index}`, width: 1, height: 1, file_size: 7 }],
            media_group_id: "with-captions",
            ...(index === 1 ? {} : { caption: `caption ${index}` })
          })
        yield* start(world.run)
        const rows = yield* settled(world)
        assert.deepStrictEqual(
          rows.map(({ files, text }) => [text, files.length]),
          [
            ["", 3],
            ["caption 0\ncaption 2", 3]
          ]
        )
      }).pipe(onTestClock)
    )

    it.effect("come before what was written after them", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const sql = yield* SqlClient.SqlClient
        const session = `joined-${bots}`
        yield* sql`UPDATE choir_control.sessions SET status = 'closed' WHERE agent_id = ${AGENT}`
        yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
          VALUES (${session}, ${AGENT}, 'active', '{}')`
        yield* start(world.run)
        yield* nthPoll(world.bot, 1)
        yield* world.bot.text(USER, "x".repeat(4096))
        yield* until(world, (rows) => rows.length === 1)
        yield* world.bot.file(USER, "document", { name: "a.txt", mime: "text/plain", bytes: Buffer.from("a") })
        yield* settled(world)
        const told = yield* sql<{ readonly text: string }>`SELECT left(i.text, 1) AS text
          FROM choir_control.signals AS s JOIN choir_control.inbox AS i ON i.inbox_id = (s.payload ->> 'inbox_id')::bigint
          WHERE s.session_id = ${session} AND i.client_id LIKE ${`${world.bot.token.split(":")[0]}:%`} ORDER BY signal_id`
        assert.deepStrictEqual(told, [{ text: "x" }, { text: "" }])
        yield* sql`UPDATE choir_control.sessions SET status = 'closed' WHERE session_id = ${session}`
      }).pipe(onTestClock)
    )

    it.effect("are one after a kill at each step of the join (R42)", () =>
      Effect.gen(function* () {
        for (const together of [true, false])
          for (const poll of together ? [1, 2] : [1, 2, 3, 4]) {
            const world = yield* setUp
            const rows = yield* killedAt(world, poll, (bot) =>
              together
                ? bot.paste(USER, LONG)
                : Effect.forEach(bot.pieces(LONG), (piece, index) =>
                    Effect.andThen(bot.text(USER, piece), index < poll - 1 ? nthPoll(bot, index + 2) : Effect.void)
                  )
            )
            assert.strictEqual(rows.length, 1, `killed at poll ${poll}`)
            assert.isTrue(isSame(rows[0]?.text, LONG), `killed at poll ${poll}`)
          }
      }).pipe(onTestClock)
    )

    it.effect("are let go 30 seconds after a kill when the rest never comes", () =>
      Effect.gen(function* () {
        const world = yield* setUp
        const first = yield* start(world.run)
        yield* nthPoll(world.bot, 1)
        yield* world.bot.text(USER, "x".repeat(4096))
        yield* nthPoll(world.bot, 2)
        yield* Fiber.interrupt(first)
        yield* start(world.run)
        yield* nthPoll(world.bot, 3)
        yield* TestClock.adjust("29 seconds")
        assert.isTrue((yield* world.rows)[0]?.held)
        yield* Effect.repeat(Effect.andThen(TestClock.adjust("1 second"), world.rows), {
          until: ([row]) => row?.held === false
        })
      }).pipe(onTestClock)
    )

    it.effect("are one for an album, whose files keep their order and bytes, after a kill at each step", () =>
      Effect.gen(function* () {
        for (const poll of [1, 2]) {
          const world = yield* setUp
          const [row, ...more] = yield* killedAt(world, poll, (bot) => bot.album(USER, PICTURES, "Look"))
          assert.deepStrictEqual(more, [])
          assert.strictEqual(row?.text, "Look")
          assert.deepStrictEqual(
            row?.files.map(({ path }) => readFileSync(join(world.workspace, path))),
            PICTURES.map(({ bytes }) => bytes)
          )
          assert.lengthOf(world.recv(), PICTURES.length)
        }
      }).pipe(onTestClock)
    )

    for (const step of ["getFile", "download"])
      it.effect(`are whole after a kill while a file is fetched (${step})`, () =>
        Effect.gen(function* () {
          for (const files of [0, 1, 2]) {
            const world = yield* setUp
            const { bot, run } = world
            const first = yield* start(run)
            yield* nthPoll(bot, 1)
            yield* bot.failAfter(step, fault.silence, files)
            yield* bot.album(USER, PICTURES, "Look")
            yield* bot.struck
            assert.deepStrictEqual(yield* world.rows, [])
            yield* Fiber.interrupt(first)
            yield* start(run)
            const [row, ...more] = yield* settled(world)
            assert.deepStrictEqual(more, [])
            assert.deepStrictEqual(
              row?.files.map(({ path }) => readFileSync(join(world.workspace, path))),
              PICTURES.map(({ bytes }) => bytes)
            )
            assert.lengthOf(world.recv(), PICTURES.length)
          }
        }).pipe(onTestClock)
      )
  })
})
