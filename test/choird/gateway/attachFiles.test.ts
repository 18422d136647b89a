import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { attachFile } from "#src/choird/gateway/attachFiles.ts"
import { fileKind } from "#src/choird/gateway/fileKind.ts"
import { RECEIVED_FILES_MAX, RECEIVED_LOOKED_MAX, storeReceived } from "#src/choird/gateway/receivedFiles.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import type { IncomingFile } from "#src/choird/gateway/IncomingFile.ts"
import { fileOf, makeDownload, TELEGRAM_FILE_BYTES_MAX } from "#src/choird/telegram/telegramFiles.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { whyNotRoot } from "../../support/packages.ts"
import { FILE_KINDS } from "../../support/fileKinds.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"
import * as fault from "../../support/testing/TelegramFaults.ts"

const sent = (name: string, more: Partial<IncomingFile> = {}): IncomingFile => ({
  file_id: "f",
  kind: "document",
  name,
  bytes: undefined,
  ...more
})

const notRoot = whyNotRoot("who owns received files")

const unlabelled = () => Effect.void

const attach = (workspace: string | undefined, id: string, name: string, bytes: Uint8Array) =>
  attachFile({ file: sent(name), id }, workspace, () => Effect.succeed(bytes), unlabelled)

describe("files that people send", () => {
  it.effect(
    "are not asked for in clear text, which would show the bot's token, whatever was true when the bot was set up",
    () =>
      Effect.gen(function* () {
        const token = Redacted.make("1:a-token-of-tests")
        const download = makeDownload(token, "http://192.0.2.9:1", () =>
          Effect.succeed({ file_path: "documents/a.txt" })
        )
        const failed = yield* Effect.flip(download(sent("a")))
        assert.match(failed.description, /192\.0\.2\.9:1 is not of this host; write https:/u)
      })
  )

  it.effect("are in no workspace before it is labelled, and are not put there without a label", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      const order: Array<string> = []
      const see = (label: string) =>
        Effect.sync(() => void order.push(label, existsSync(join(workspace, ".choirtmp/recv")) ? "there" : "not there"))
      const bytes = () => Effect.succeed(Buffer.from("x"))
      yield* attachFile({ file: sent("a"), id: "1:1" }, workspace, bytes, () => see("labelled"))
      yield* see("stored")
      assert.deepStrictEqual(order, ["labelled", "not there", "stored", "there"])
      const other = yield* temporaryFolder
      const failed = yield* Effect.flip(
        attachFile({ file: sent("a"), id: "1:2" }, other, bytes, () => Effect.fail("no label" as const))
      )
      assert.strictEqual(failed, "no label")
      assert.deepStrictEqual(readdirSync(other), [])
    })
  )

  it.effect(`of ${FILE_KINDS.length} kinds and names arrive byte for byte, under names that choird made`, () =>
    Effect.gen(function* () {
      assert.strictEqual(FILE_KINDS.length, 40)
      const workspace = yield* temporaryFolder
      for (const [index, [name, bytes, mime, ending]] of FILE_KINDS.entries()) {
        const { attachments } = yield* attach(workspace, `1000:${index}`, name, bytes)
        const [found] = attachments
        assert.strictEqual(found?.path, `.choirtmp/recv/document-1000-${index}.${ending}`, name)
        assert.deepStrictEqual([found?.mime, found?.bytes], [mime, bytes.length], name)
        assert.match(found?.name ?? "", /^[^/\\\p{C}]{1,120}$/u, name)
        assert.isTrue(readFileSync(join(workspace, found?.path ?? "")).equals(bytes), name)
      }
      assert.deepStrictEqual(readdirSync(workspace), [".choirtmp"])
      assert.lengthOf(readdirSync(join(workspace, ".choirtmp/recv")), 40)
      assert.deepStrictEqual(fileKind(Buffer.from("ü").subarray(0, 1), "x"), {
        mime: "application/octet-stream",
        ending: "bin"
      })
    })
  )

  it.effect("are the same file when their message comes again", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      const first = yield* attach(workspace, "1:2", "a.txt", Buffer.from("one"))
      // A death in the middle left a part.
      writeFileSync(join(workspace, ".choirtmp/recv/document-1-2.txt.part"), "on")
      assert.deepStrictEqual(yield* attach(workspace, "1:2", "a.txt", Buffer.from("one")), first)
      assert.deepStrictEqual(readdirSync(join(workspace, ".choirtmp/recv")), ["document-1-2.txt"])
    })
  )

  it.effect("never follow a link that the agent made, and replace one under their own name", () =>
    Effect.gen(function* () {
      const outside = yield* temporaryFolder
      const [one, two, three] = [yield* temporaryFolder, yield* temporaryFolder, yield* temporaryFolder]
      symlinkSync(outside, join(one, ".choirtmp"))
      mkdirSync(join(two, ".choirtmp"))
      symlinkSync(outside, join(two, ".choirtmp/recv"))
      for (const workspace of [one, two]) {
        const { attachments, problem } = yield* attach(workspace, "1:1", "a.txt", Buffer.from("x"))
        assert.deepStrictEqual(attachments, [])
        assert.strictEqual(
          problem,
          `The document "a.txt" did not reach the agent: it could not be saved in the agent's workspace.`
        )
      }
      mkdirSync(join(three, ".choirtmp/recv"), { recursive: true })
      const target = join(outside, "victim")
      writeFileSync(target, "untouched")
      for (const name of ["document-1-1.txt", "document-1-1.txt.part"])
        symlinkSync(target, join(three, ".choirtmp/recv", name))
      const { attachments } = yield* attach(three, "1:1", "a.txt", Buffer.from("new"))
      const path = join(three, attachments[0]?.path ?? "")
      assert.isTrue(lstatSync(path).isFile())
      assert.strictEqual(readFileSync(path, "utf8"), "new")
      assert.strictEqual(readFileSync(target, "utf8"), "untouched")
      assert.deepStrictEqual(readdirSync(outside), ["victim"])
    })
  )

  it.live("are written beside other work of choird, whatever the disk does", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      let turns = 0
      const timer = setInterval(() => (turns += 1))
      yield* Effect.promise(async () => {
        await storeReceived(workspace, "large.bin", Buffer.alloc(TELEGRAM_FILE_BYTES_MAX), Date.now())
      })
      clearInterval(timer)
      assert.isAbove(turns, 0)
    })
  )

  it.effect("go again after a week, and the oldest when there are too many", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      const now_ms = Date.now()
      yield* Effect.promise(() => storeReceived(workspace, "first.txt", Buffer.from("x"), now_ms))
      yield* Effect.promise(() =>
        storeReceived(workspace, "second.txt", Buffer.from("x"), now_ms + 8 * 24 * 60 * 60 * 1000)
      )
      assert.isFalse(existsSync(join(workspace, ".choirtmp/recv/first.txt")))
      for (let index = 0; index <= RECEIVED_FILES_MAX; index += 1)
        writeFileSync(join(workspace, `.choirtmp/recv/n${index}`), "")
      yield* Effect.promise(() => storeReceived(workspace, "last.txt", Buffer.from("x"), now_ms))
      assert.lengthOf(readdirSync(join(workspace, ".choirtmp/recv")), RECEIVED_FILES_MAX + 1)
    })
  )

  it.effect("cost no more looks than a few thousand in a folder that its agent filled", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      yield* Effect.promise(() => storeReceived(workspace, "first.txt", Buffer.from("x"), Date.now()))
      const folder = join(workspace, ".choirtmp/recv")
      const made = RECEIVED_LOOKED_MAX + 500
      for (let index = 1; index < made; index += 1) writeFileSync(join(folder, `n${index}`), "")
      yield* Effect.promise(() => storeReceived(workspace, "last.txt", Buffer.from("x"), Date.now()))
      assert.lengthOf(readdirSync(folder), made - (RECEIVED_LOOKED_MAX - RECEIVED_FILES_MAX) + 1)
      assert.isTrue(existsSync(join(folder, "last.txt")))
    })
  )

  it.effect.skipIf(notRoot !== undefined)("are in folders that are all the agent's, which keeps more there", () =>
    Effect.gen(function* () {
      const workspace = yield* temporaryFolder
      chownSync(workspace, 1234, 1234)
      yield* Effect.promise(() => storeReceived(workspace, "a.txt", Buffer.from("x"), Date.now()))
      for (const path of [".choirtmp", ".choirtmp/recv", ".choirtmp/recv/a.txt"])
        assert.strictEqual(statSync(join(workspace, path)).uid, 1234, path)
    })
  )

  it.effect("that cannot be had are told in words; what may still come is asked for again", () =>
    Effect.gen(function* () {
      const telegram = yield* makeTelegram
      const bot = telegram.bot("77:secret")
      const workspace = yield* temporaryFolder
      const api = yield* Effect.provide(TelegramApi, TelegramApi.layer(Redacted.make(bot.token), telegram.url))
      const bytes = Buffer.from("\x89PNG\r\n\x1a\n🙂", "latin1")
      yield* bot.file(1, "document", { name: "a b.png", mime: "text/x-lie", bytes })
      const batch = yield* api.updates(undefined)
      const [arrival] = batch?.arrivals ?? []
      const file = arrival?.file ?? assert.fail("no file")
      const good = yield* attachFile({ file, id: "1:1" }, workspace, api.download, unlabelled)
      assert.strictEqual(good.attachments[0]?.mime, "image/png")
      assert.isTrue(readFileSync(join(workspace, good.attachments[0]?.path ?? "")).equals(bytes))
      const large = sent("film.mkv", { bytes: TELEGRAM_FILE_BYTES_MAX + 1 })
      const refused = yield* attachFile({ file: large, id: "1:2" }, workspace, api.download, unlabelled)
      assert.match(
        refused.problem ?? "",
        /^The document "film\.mkv" did not reach the agent: it is larger than the 20 MiB/u
      )
      const gone = yield* attachFile(
        { file: sent("gone", { file_id: "nothing" }), id: "1:3" },
        workspace,
        api.download,
        unlabelled
      )
      assert.match(gone.problem ?? "", /wrong file_id/u)
      yield* bot.fail("getFile", fault.badGateway, 3)
      const tries = yield* Effect.forEach([1, 2, 3], () =>
        Effect.result(attachFile({ file, id: "1:4" }, workspace, api.download, unlabelled))
      )
      assert.deepStrictEqual(tries.map(Result.isFailure), [true, true, false])
      const nowhere = yield* attachFile({ file, id: "1:5" }, undefined, api.download, unlabelled)
      assert.match(nowhere.problem ?? "", /the agent's workspace is not in config\.json/u)
    })
  )

  it("are read from each kind of message, and from nothing else", () => {
    const media = { file_id: "x", file_size: 3 }
    const read = (message: unknown) => fileOf(message)?.kind
    assert.strictEqual(fileOf({ photo: [{ file_id: "small" }, { file_id: "large" }] })?.file_id, "large")
    assert.strictEqual(read({ document: media, animation: media }), "video")
    for (const kind of ["document", "voice", "audio", "video"] as const)
      assert.deepStrictEqual(fileOf({ [kind]: { ...media, file_name: "n" } }), {
        file_id: "x",
        kind,
        name: "n",
        bytes: 3
      })
    assert.strictEqual(read({ video_note: media }), "video")
    for (const message of [{}, { text: "x" }, null, { document: "x" }, { photo: [] }, { document: { file_id: 5 } }])
      assert.isUndefined(fileOf(message))
  })
})
