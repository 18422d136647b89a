import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Result } from "effect"
import { readLocalFile } from "#src/choird/telegram/localBotFiles.ts"
import { TelegramApi } from "#src/choird/telegram/TelegramApi.ts"
import { fileOf, TELEGRAM_FILE_BYTES_MAX } from "#src/choird/telegram/telegramFiles.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { makeTelegram } from "../../support/testing/Telegram.ts"

const BYTES = Buffer.from("a bill\0of 12 euros")

/** A file that a person sends to a bot of a server with `--local`, whose folder is configured as `local_files`, or is not. */
const sent = Effect.fnUntraced(function* (local_files: string | undefined, folder: string, bytes: Uint8Array = BYTES) {
  const telegram = yield* makeTelegram
  const bot = telegram.bot("1000:a-secret-of-tests")
  yield* bot.serveLocally(folder)
  yield* bot.file(1, "document", { name: "bill 1.pdf", mime: "application/pdf", bytes })
  return yield* Effect.provide(
    Effect.gen(function* () {
      const api = yield* TelegramApi
      const batch = yield* api.updates(undefined)
      const file = batch?.arrivals[0]?.file
      assert.isDefined(file)
      return yield* Effect.result(api.download(file))
    }),
    TelegramApi.layer(Redacted.make(bot.token), telegram.url, local_files)
  )
})

const reasonOf = (got: Result.Result<Uint8Array, { readonly description: string }>) =>
  Result.isFailure(got) ? got.failure.description : "read"

describe("files of a Bot API server with --local", () => {
  it.effect("are read below the folder that the configuration names", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      for (const named of [folder, `${folder}/`]) {
        const got = yield* sent(named, folder)
        assert.deepStrictEqual(Result.isSuccess(got) ? Buffer.from(got.success) : reasonOf(got), BYTES)
      }
    })
  )

  it.effect("are missing with the sentence that fixes it, without the bot's token", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const other = yield* temporaryFolder
      const elsewhere = join(other, "not-mounted")
      const reasons = [
        reasonOf(yield* sent(undefined, folder)),
        reasonOf(yield* sent(other, folder)),
        reasonOf(yield* sent(folder, folder, Buffer.alloc(TELEGRAM_FILE_BYTES_MAX + 1)))
      ]
      const gone = yield* Effect.flip(readLocalFile(elsewhere, join(elsewhere, "1000:t/documents/f"), 100))
      const [unset, outside, large] = reasons
      assert.match(
        unset ?? "",
        /^the bot's own Bot API server runs with --local, .* Set "local_files" of this gateway /u
      )
      assert.include(outside, `it outside of ${other}, the folder in "local_files" of this gateway.`)
      assert.match(large ?? "", /^it is larger than the 20 MiB that a bot can fetch$/u)
      assert.match(
        gone.reason,
        /^it is not below .*not-mounted on choird's host\. .* start that server without --local$/u
      )
      assert.notInclude([...reasons, gone.reason].join(), "1000:")
    })
  )

  it.effect("are not files that the server only claims to have: links, pipes, folders and paths that lead out", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const secret = join(yield* temporaryFolder, "secrets.json")
      writeFileSync(secret, "{}")
      mkdirSync(join(folder, "documents"))
      symlinkSync(secret, join(folder, "documents/link"))
      symlinkSync(join(secret, ".."), join(folder, "linked"))
      execFileSync("mkfifo", [join(folder, "documents/pipe")])
      const paths = [
        [secret, /outside of/u],
        [`${folder}/documents/../../${secret}`, /outside of/u],
        [`${folder}-beside/x`, /outside of/u],
        [join(folder, "documents/link"), /symbolic link/u],
        [join(folder, "linked/secrets.json"), /symbolic link/u],
        [join(folder, "documents/nothing"), /is not below/u],
        [join(folder, "documents/pipe"), /not a plain file/u],
        [join(folder, "documents"), /not a plain file/u],
        ["/", /outside of/u],
        [`${folder}/\0x`, /outside of/u]
      ] as const
      for (const [path, reason] of paths)
        assert.match((yield* Effect.flip(readLocalFile(folder, path, 100))).reason, reason)
    })
  )

  it.effect("that choird's user may not read say so", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const closed = join(folder, "closed")
      mkdirSync(closed)
      chmodSync(closed, 0)
      const failed = yield* Effect.result(readLocalFile(folder, join(closed, "f"), 100))
      rmSync(closed, { recursive: true })
      // Root may read everything.
      const expected = process.getuid?.() === 0 ? /is not below/u : /choird's user may not read it below/u
      assert.match(Result.isFailure(failed) ? failed.failure.reason : "", expected)
    })
  )

  it("keep what a message says of them where one field of it is odd", () => {
    const document = { file_id: "f", file_name: null, file_size: "12", duration: -1 }
    assert.deepStrictEqual(fileOf({ document }), { file_id: "f", kind: "document", name: "document", bytes: undefined })
    assert.isUndefined(fileOf({ document: { file_name: "a" } }))
    assert.isUndefined(fileOf({ photo: {}, document: null }))
  })
})
