/** A bot whose messages have files: a workspace and a home on the disk, over the stores in memory of the Telegram world. */
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Config } from "#schema/Config.ts"
import { SENT_COPIES, type SentFile } from "#schema/SentFile.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { OutgoingFiles } from "#src/choird/gateway/OutgoingFiles.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import { temporaryFolder } from "./engines.ts"
import { CONFIG } from "./stores.ts"
import { lifecycle } from "./telegramBot.ts"
import { setUpTelegramWith } from "./telegramWorld.ts"
import type { TelegramBot } from "./testing/Telegram.ts"
import type { SentMessage } from "./testing/telegramMethods.ts"

const sha256Of = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

/** Puts a file where a tool leaves it, and beside it the copy that the agent keeps. */
export const leave = (workspace: string, path: string, bytes: Uint8Array, kept = true): SentFile => {
  const sha256 = sha256Of(bytes)
  mkdirSync(join(workspace, SENT_COPIES), { recursive: true })
  if (kept) writeFileSync(join(workspace, SENT_COPIES, sha256), bytes)
  else writeFileSync(join(workspace, path), bytes)
  return { path, sha256, bytes: bytes.length }
}

/** The form of a message with these files. */
export const withFiles = (...items: ReadonlyArray<SentFile>): Pick<Outgoing, "form"> => ({
  form: { files: { workspace: "main", items } }
})

/** The kind, name and bytes of each file that came to the chat. */
export const arrivedFiles = (bot: TelegramBot) =>
  Effect.map(bot.sent.all, (sent) =>
    sent.flatMap((message: SentMessage) =>
      (["document", "photo", "video", "voice", "audio"] as const).flatMap((kind) => {
        const media = [message[kind]].flat().at(-1) as
          | { readonly file_id: string; readonly file_name: string }
          | undefined
        if (media === undefined) return []
        return [{ kind, name: media.file_name, bytes: Buffer.from(bot.bytesOf(media.file_id) ?? []), message }]
      })
    )
  )

export const setUpOutgoing = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const workspace = yield* temporaryFolder
  const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, workspaces: { main: { path: workspace } } })
  const store = Layer.mock(ConfigStore, { home, current: Effect.succeed({ version: 1, config }) })
  const files = Layer.provide(OutgoingFiles.layer, Layer.merge(store, lifecycle))
  const copies = (): ReadonlyArray<string> => {
    try {
      return readdirSync(join(home, "outgoing"))
    } catch {
      return []
    }
  }
  return { home, workspace, copies, files, ...(yield* setUpTelegramWith(files)) }
})

/** Ends a bot that a call gets no answer to: it waits for a while, as a stop does. */
export const cutOff = Effect.fnUntraced(function* (bot: Fiber.Fiber<unknown, unknown>) {
  yield* Effect.forkChild(Fiber.interrupt(bot), { startImmediately: true })
  while (bot.pollUnsafe() === undefined) {
    yield* TestClock.adjust("1 second")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
})
