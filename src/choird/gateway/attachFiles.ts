/** The files of a message, fetched and put into the workspace of its agent; the message says what did not arrive. */
import { Clock, Effect, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { Attachment } from "#schema/Event.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { fileKind } from "./fileKind.ts"
import { storeReceived } from "./receivedFiles.ts"
import type { TelegramFailed } from "./TelegramFailed.ts"
import type { Transcriber } from "./Transcriber.ts"
import { isFinal, type SentFile } from "./telegramFiles.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of a sender's name for a file. */
const NAME_CHARS_MAX = 120

/** A sender's name for a file on one line, and without the marks of paths. */
const shownName = (name: string): string =>
  firstPart(name.replaceAll(/[\p{C}\p{Zl}\p{Zp}/\\]/gu, "_"), NAME_CHARS_MAX) || "file"

/** The digits of an update's id, which are choird's name for its file. */
const digits = (id: string): string => id.replaceAll(/\D+/gu, "-")

export type Download = (file: SentFile) => Effect.Effect<Uint8Array, TelegramFailed>

/** The words of a recording, where they can be had. */
export type Transcribe = Transcriber["Service"]["transcribe"]

export interface Attached {
  readonly attachments: ReadonlyArray<typeof Attachment.Type>
  /** The words of a voice message. */
  readonly words?: string
  /** Why the file or its words are not there, in words. */
  readonly problem?: string
}

/** The folder that an agent works in, as its run began with it. */
export const workspaceOf = (running: Config, { bindings, started_with }: AgentView): string | undefined => {
  const { workspaces } = started_with ?? running
  const name = bindings?.workspace
  return name !== undefined && Object.hasOwn(workspaces, name) ? workspaces[name]?.path : undefined
}

const missing = (file: SentFile, why: string): Attached => ({
  attachments: [],
  problem: `The ${file.kind} ${JSON.stringify(shownName(file.name))} did not reach the agent: ${why}.`
})

const NO_WORDS = "The voice message has reached the agent as a file, without its words"
const NO_STT = `${NO_WORDS}: choird has no speech-to-text server. To add one, the operator adds an entry to "stt" in config.json.`

/** The words of a voice message, or why there are none. */
const wordsOf = Effect.fnUntraced(function* (file: SentFile, bytes: Uint8Array, transcribe: Transcribe | undefined) {
  if (file.kind !== "voice" || transcribe === undefined) return {}
  const heard = yield* Effect.result(transcribe({ bytes, seconds: file.seconds }))
  if (Result.isFailure(heard)) return { problem: `${NO_WORDS}: ${heard.failure.problem}.` }
  return heard.success === undefined ? { problem: NO_STT } : { heard: heard.success }
})

/**
 * Fails only if another attempt may help. The same message again has the same file under the same name.
 *
 * @param label is done before the file is in the workspace.
 */
export const attachFile = Effect.fnUntraced(function* <E>(
  { file, id }: { readonly file: SentFile; readonly id: string },
  workspace: string | undefined,
  download: Download,
  label: (workspace: string) => Effect.Effect<void, E>,
  transcribe?: Transcribe
): Effect.fn.Return<Attached, TelegramFailed | E> {
  if (workspace === undefined) return missing(file, "the agent's workspace is not in config.json")
  const got = yield* Effect.result(download(file))
  if (Result.isFailure(got)) return isFinal(got.failure) ? missing(file, got.failure.description) : yield* got.failure
  const bytes = got.success
  const { ending, mime } = fileKind(bytes, file.name)
  const now_ms = yield* Clock.currentTimeMillis
  yield* label(workspace)
  const name = `${file.kind}-${digits(id)}.${ending}`
  const stored = yield* Effect.result(Effect.tryPromise(() => storeReceived(workspace, name, bytes, now_ms)))
  if (Result.isFailure(stored)) {
    yield* Effect.logWarning("a file could not be stored in a workspace", { workspace }, stored.failure)
    return missing(file, "it could not be saved in the agent's workspace")
  }
  const { heard, problem } = yield* wordsOf(file, bytes, transcribe)
  const attachment = { path: stored.success, name: shownName(file.name), mime, bytes: bytes.length }
  if (heard === undefined) return { attachments: [attachment], ...(problem === undefined ? {} : { problem }) }
  const { text: words, ...transcribed } = heard
  return { attachments: [{ ...attachment, transcribed }], words }
})
