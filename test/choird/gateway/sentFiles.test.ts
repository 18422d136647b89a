import { existsSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { SENT_COPIES, SENT_FILE_BYTES_MAX } from "#schema/SentFile.ts"
import { OutgoingFiles } from "#src/choird/gateway/OutgoingFiles.ts"
import { FILE_KINDS } from "../../support/fileKinds.ts"
import { arrivedFiles, cutOff, leave, setUpOutgoing, withFiles } from "../../support/outgoingWorld.ts"
import type { TelegramBot } from "../../support/testing/Telegram.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"
import { AGENT } from "../../support/telegramBot.ts"

const start = Effect.forkChild({ startImmediately: true })

type World = Effect.Success<typeof setUpOutgoing>

/**
 * Lets the clock run until something holds. Its steps are small, since reading, writing and sending files takes turns of its own: a call
 * is not to run out of its time meanwhile.
 */
const eventually = (holds: Effect.Effect<boolean>) =>
  Effect.gen(function* () {
    while (!(yield* holds)) {
      yield* TestClock.adjust("80 millis")
      for (let turn = 0; turn < 4; turn += 1)
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
  })

const endedRows = ({ outcomes }: Pick<World, "outcomes">) =>
  Effect.map(outcomes.all, (all) => all.filter((outcome) => !outcome.startsWith("failed")))

/** Waits until so many rows are delivered or given up, and what is left of them is removed. */
const until = (world: World, count: number) =>
  Effect.gen(function* () {
    yield* eventually(Effect.map(endedRows(world), (ended) => ended.length >= count))
    const settle = Effect.flatMap(endedRows(world), (ended) =>
      Effect.sync(() => world.copies().length === 0 || ended.length > count)
    )
    yield* eventually(settle)
    return yield* endedRows(world)
  })

const kindsOf = (bot: TelegramBot) =>
  Effect.map(arrivedFiles(bot), (files) => files.map(({ kind, message }) => [kind, message.caption]))

const png = (text: string) => Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.from(text)])
const opus = Buffer.from(`OggS${"\0".repeat(24)}OpusHead and sound`, "latin1")
const mp4 = Buffer.from("\0\0\0 ftypisom\0", "latin1")

describe("files of an agent", () => {
  it.effect(`of ${FILE_KINDS.length} kinds and names arrive byte for byte, under names that are safe`, () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      const files = FILE_KINDS.map(([name, bytes], index) => {
        const content = Buffer.concat([bytes, Buffer.from(`\0${index}`)])
        return { ...leave(world.workspace, `x/${name}`, content), as: "document" } as const
      })
      for (let index = 0; index < files.length; index += 8)
        yield* world.put("", withFiles(...files.slice(index, index + 8)))
      yield* start(world.run)
      yield* until(world, 5)
      const arrived = yield* arrivedFiles(world.bot)
      assert.lengthOf(arrived, 40)
      for (const [index, { bytes, name }] of arrived.entries()) {
        const expected = Buffer.concat([FILE_KINDS[index]?.[1] ?? Buffer.of(), Buffer.from(`\0${index}`)])
        assert.isTrue(bytes.equals(expected), name)
        assert.match(name, /^[^/\\\p{C};"]{1,120}$/u)
      }
      assert.strictEqual(arrived.at(-1)?.name, "ünïcödé.TXT")
      assert.deepStrictEqual(world.copies(), [])
    })
  )

  it.effect("come as photo, video, voice note or sound by their bytes, and as a document where nothing else fits", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      const file = (name: string, bytes: Buffer) => leave(world.workspace, `.choirtmp/send/${name}`, bytes)
      for (const [name, bytes] of [
        ["lie.txt", png("1")],
        ["a.mp4", mp4],
        ["voice.bin", opus],
        ["a.mp3", Buffer.from("ID3\x04 sound")],
        ["photo.png", Buffer.from("not a picture")]
      ] as const)
        yield* world.put(`**${name}**`, withFiles(file(name, bytes)))
      yield* start(world.run)
      yield* until(world, 5)
      assert.deepStrictEqual(yield* kindsOf(world.bot), [
        ["photo", "lie.txt"],
        ["video", "a.mp4"],
        ["voice", "voice.bin"],
        ["audio", "a.mp3"],
        ["document", "photo.png"]
      ])
      const [first] = yield* world.bot.sent.all
      assert.deepStrictEqual(first?.["caption_entities"], [{ type: "bold", offset: 0, length: 7 }])
    })
  )

  it.effect(
    "of one message come as albums with one caption, a longer text behind them, and singly where an album is refused",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpOutgoing
        const file = (name: string, bytes: Buffer) => leave(world.workspace, name, bytes)
        const text = `hi${"🙂".repeat(509)} ${"words ".repeat(300)}`.trim()
        yield* world.put(
          text,
          withFiles(file("1.png", png("1")), file("2.mp4", mp4), file("3.txt", Buffer.from("t")), file("4.ogg", opus))
        )
        yield* start(world.run)
        yield* until(world, 1)
        const sent = yield* world.bot.sent.all
        assert.deepStrictEqual(
          (yield* arrivedFiles(world.bot)).map(({ kind }) => kind),
          ["photo", "video", "document", "voice"]
        )
        const groups = sent.map(({ media_group_id }) => media_group_id)
        assert.deepStrictEqual([groups[0] === groups[1], groups[0] === undefined, groups[2]], [true, false, undefined])
        const words = sent.map(({ caption, text: part }) => caption ?? part ?? "")
        assert.isTrue(words.every((part) => part.length <= 1024))
        assert.strictEqual(
          words
            .filter((part) => part !== "")
            .join(" ")
            .replaceAll(/\s+/gu, " "),
          text
        )

        yield* world.bot.fail("sendMediaGroup", fault.refusedContent)
        yield* world.put("again", withFiles(file("5.png", png("5")), file("6.png", png("6"))))
        yield* until(world, 2)
        assert.deepStrictEqual((yield* kindsOf(world.bot)).slice(-2), [
          ["photo", "again"],
          ["photo", undefined]
        ])
      })
  )

  it.effect("are what they were when their tool named them, whatever happened to them since", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      yield* world.bot.fail("sendDocument", fault.serverError, 3)
      const file = leave(world.workspace, ".choirtmp/send/a.txt", Buffer.from("first"))
      yield* world.put("", withFiles(file))
      const running = yield* start(world.run)
      yield* world.bot.calls.first(({ method }) => method === "sendDocument")
      // The workspace is emptied while Telegram is away, and choird is started again.
      rmSync(join(world.workspace, ".choirtmp"), { recursive: true })
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(world.copies(), ["1-0"])
      yield* start(world.run)
      assert.deepStrictEqual(yield* until(world, 1), ["delivered 1"])
      assert.deepStrictEqual(
        (yield* arrivedFiles(world.bot)).map(({ bytes }) => bytes.toString()),
        ["first"]
      )
      assert.deepStrictEqual(world.copies(), [])
    })
  )

  it.effect(
    "stand as failed where there is no true copy: changed, a link, a second name, a pipe, a folder, a lie about its length",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpOutgoing
        const { workspace } = world
        const secret = join(world.home, "secret.txt")
        writeFileSync(secret, "secret")
        const folder = join(workspace, ".choirtmp/send")
        const honest = (name: string) => leave(workspace, `.choirtmp/send/${name}`, Buffer.from("secret"), false)
        const hostile = [honest("changed"), honest("link"), honest("second"), honest("pipe"), honest("folder")]
        writeFileSync(join(folder, "changed"), "sicret")
        for (const name of ["link", "second", "pipe", "folder"]) rmSync(join(folder, name))
        symlinkSync(secret, join(folder, "link"))
        linkSync(secret, join(folder, "second"))
        execFileSync("mkfifo", [join(folder, "pipe")])
        mkdirSync(join(folder, "folder"))
        const way = honest("way")
        symlinkSync(world.home, join(workspace, "out"))
        const lies = [
          { ...way, path: "out/secret.txt" },
          { ...way, path: `../${world.home.split("/").at(-1)}/secret.txt` },
          { ...way, path: secret },
          { ...way, bytes: 5 },
          { ...way, bytes: SENT_FILE_BYTES_MAX }
        ]
        rmSync(join(folder, "way"))
        for (const file of [...hostile, ...lies]) yield* world.put("", withFiles(file))
        yield* start(world.run)
        // Each is given up, and the chat is told of each.
        const ended = yield* until(world, 20)
        assert.lengthOf(
          ended.filter((outcome) => /^given up \d+: .*changed or removed/u.test(outcome)),
          10
        )
        assert.deepStrictEqual(yield* arrivedFiles(world.bot), [])
        assert.deepStrictEqual(world.copies(), [])
        const [told] = (yield* world.bot.sent.all).map(({ text }) => text)
        assert.match(told ?? "", new RegExp(`^◆ A message from ${AGENT} to the DM phone could not be delivered`, "u"))
      })
  )

  it.effect("of which one was refused stand as failed, also where choird dies before the last of them is sent", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      const [voice, text] = [leave(world.workspace, "a.ogg", opus), leave(world.workspace, "b.txt", Buffer.from("b"))]
      yield* world.bot.fail("sendVoice", fault.refusedContent)
      yield* world.bot.fail("sendDocument", fault.refusedContent)
      yield* world.bot.fail("sendDocument", fault.serverError, 3)
      yield* world.put("", withFiles(voice, text))
      const running = yield* start(world.run)
      const documents = Effect.map(world.bot.calls.all, (all) => all.filter(({ method }) => method === "sendDocument"))
      yield* eventually(Effect.map(documents, ({ length }) => length > 1))
      yield* Fiber.interrupt(running)
      yield* start(world.run)
      const ended = yield* until(world, 1)
      assert.match(ended[0] ?? "", /^given up 1: /u)
    })
  )

  it.effect("that Telegram refuses stand as failed, and the others of their message arrive", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      yield* world.bot.fail("sendVoice", fault.refusedContent)
      yield* world.bot.fail("sendDocument", fault.refusedContent)
      yield* world.put(
        "here",
        withFiles(leave(world.workspace, "a.ogg", opus), leave(world.workspace, "b.png", png("b")))
      )
      yield* start(world.run)
      const ended = yield* until(world, 2)
      assert.match(ended[0] ?? "", /^given up 1: Telegram sendDocument: 400/u)
      assert.deepStrictEqual(
        (yield* arrivedFiles(world.bot)).map(({ kind }) => kind),
        ["photo"]
      )
    })
  )

  it.effect("are taken from the workspace once they are delivered, unless they have changed", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      const { workspace } = world
      const both = ["gone.txt", "changed.txt"].map((name) => {
        const path = `.choirtmp/send/${name}`
        leave(workspace, path, Buffer.from(name), false)
        return leave(workspace, path, Buffer.from(name))
      })
      writeFileSync(join(workspace, ".choirtmp/send/changed.txt"), "newer")
      writeFileSync(join(workspace, "mine.txt"), "mine")
      yield* world.put("", withFiles(...both, leave(workspace, "mine.txt", Buffer.from("mine"))))
      yield* start(world.run)
      yield* until(world, 1)
      const there = (path: string) => existsSync(join(workspace, path))
      assert.deepStrictEqual([".choirtmp/send/gone.txt", ".choirtmp/send/changed.txt", "mine.txt"].map(there), [
        false,
        true,
        true
      ])
      for (const { sha256 } of both) assert.isFalse(there(`${SENT_COPIES}/${sha256}`))
    })
  )

  it.effect(
    "survive a death at each step: before the copy, before and after the sending, and before the copies are removed (R43)",
    () =>
      Effect.gen(function* () {
        const world = yield* setUpOutgoing
        const { bot, workspace } = world
        // Dies before the copy: it is made at the next start.
        yield* world.put("", withFiles(leave(workspace, "a.txt", Buffer.from("a"))))
        // Dies while Telegram takes the file: whether it did is not known, and one more comes.
        yield* world.put("", withFiles(leave(workspace, "b.txt", Buffer.from("b")), leave(workspace, "c.ogg", opus)))
        yield* bot.fail("sendVoice", fault.silenceAfterAccept)
        const first = yield* start(world.run)
        yield* eventually(Effect.map(bot.calls.all, (calls) => calls.some(({ method }) => method === "sendVoice")))
        yield* cutOff(first)
        const second = yield* start(world.run)
        yield* until(world, 2)
        const names = (yield* arrivedFiles(bot)).map(({ name }) => name)
        assert.deepStrictEqual(names, ["a.txt", "b.txt", "c.ogg", "c.ogg"])
        yield* Fiber.interrupt(second)
        // Dies between the delivery and the removal: what is left goes at the next start.
        mkdirSync(join(world.home, "outgoing"), { recursive: true })
        for (const name of ["1-0", "2-0.part", "9-0"]) writeFileSync(join(world.home, "outgoing", name), "x")
        yield* Effect.flatMap(OutgoingFiles, ({ keepOnly }) => keepOnly(["9"])).pipe(Effect.provide(world.files))
        assert.deepStrictEqual(world.copies(), ["9-0"])
      })
  )
})

describe("an answer with its sound", () => {
  const answer = (world: World, speaks: "all" | "part", text: string) =>
    world.put(text, withFiles({ ...leave(world.workspace, `a-${speaks}.ogg`, opus), speaks }))

  it.effect("comes as a voice note alone, and with its text where something has to be read", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      yield* answer(world, "all", "It is **done**.")
      yield* answer(world, "part", "Run `ls`.")
      yield* start(world.run)
      yield* until(world, 2)
      const sent = yield* world.bot.sent.all
      assert.deepStrictEqual(
        sent.map(({ caption, text, voice }) => [voice !== undefined, text, caption]),
        [
          [true, undefined, undefined],
          [true, undefined, undefined],
          [false, "Run ls.", undefined]
        ]
      )
    })
  )

  it.effect("comes as its text where Telegram takes no sound, or there is no copy of it", () =>
    Effect.gen(function* () {
      const world = yield* setUpOutgoing
      yield* world.bot.fail("sendVoice", fault.refusedContent)
      yield* world.bot.fail("sendDocument", fault.refusedContent)
      yield* answer(world, "all", "one")
      yield* world.put("two", withFiles({ path: "gone.ogg", sha256: "0".repeat(64), bytes: 5, speaks: "all" }))
      yield* start(world.run)
      assert.deepStrictEqual(yield* until(world, 2), ["delivered 1", "delivered 2"])
      assert.deepStrictEqual(
        (yield* world.bot.sent.all).map(({ text }) => text),
        ["one", "two"]
      )
    })
  )
})
