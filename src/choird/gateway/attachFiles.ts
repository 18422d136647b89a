/** The files of a message, fetched and put into the workspace of its agent; the message says what did not arrive. */
import { Clock, Effect, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { Attachment } from "#schema/Event.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { fileKind } from "./fileKind.ts"
import { storeReceived } from "./receivedFiles.ts"
import type { ChannelFailed } from "./ChannelFailed.ts"
import type { IncomingFile } from "./IncomingFile.ts"
import type { Recording, Transcriber } from "./Transcriber.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Characters of a sender's name for a file. */
const NAME_CHARS_MAX = 120

/** A sender's name for a file on one line, and without the marks of paths. */
const shownName = (name: string): string =>
  firstPart(name.replaceAll(/[\p{C}\p{Zl}\p{Zp}/\\]/gu, "_"), NAME_CHARS_MAX) || "file"

/** The digits of an update's id, which are choird's name for its file. */
const digits = (id: string): string => id.replaceAll(/\D+/gu, "-")

export type Download = (file: IncomingFile) => Effect.Effect<Uint8Array, ChannelFailed>

/** The words of a recording, where they can be had. */
export type Transcribe = Transcriber["Service"]["transcribe"]

export interface Attached {
  readonly attachments: ReadonlyArray<typeof Attachment.Type>
  /** The words of a voice message. */
  readonly words?: string
  /** Why the file or its words are not there, in words. */
  readonly problem?: string
}

/** The folder that an agent works in, as its run began with it, or as its next start finds it. */
export const workspaceOf = (running: Config, { agent_id, bindings, started_with }: AgentView): string | undefined => {
  const { workspaces } = started_with ?? running
  const usual = Object.hasOwn(running.agents, agent_id) ? running.agents[agent_id]?.defaults.workspace : undefined
  const name = bindings?.workspace ?? usual
  return name !== undefined && Object.hasOwn(workspaces, name) ? workspaces[name]?.path : undefined
}

const missing = (file: IncomingFile, why: string): Attached => ({
  attachments: [],
  problem: `The ${file.kind} ${JSON.stringify(shownName(file.name))} did not reach the agent: ${why}.`
})

const withoutWords = ({ kind }: IncomingFile) =>
  `The ${kind === "voice" ? "voice" : "video"} message has reached the agent as a file, without its words`
const noServer = (file: IncomingFile) =>
  `${withoutWords(file)}: choird has no speech-to-text server. To add one, the operator adds an entry to "stt" in config.json.`

/** The words of a recording, or why there are none. Those of a video are not missed where no server is configured. */
const wordsOf = Effect.fnUntraced(function* (
  file: IncomingFile,
  sound: Pick<Recording, "bytes" | "mime">,
  transcribe: Transcribe | undefined
) {
  if ((file.kind !== "voice" && file.spoken !== true) || transcribe === undefined) return {}
  const heard = yield* Effect.result(transcribe({ ...sound, seconds: file.seconds }))
  if (Result.isFailure(heard)) return { problem: `${withoutWords(file)}: ${heard.failure.problem}.` }
  if (heard.success !== undefined) return { heard: heard.success }
  return file.kind === "voice" ? { problem: noServer(file) } : {}
})

/**
 * Fails only if another attempt may help. The same message again has the same file under the same name.
 *
 * @param label is done before the file is in the workspace.
 */
export const attachFile = Effect.fnUntraced(function* <E>(
  { file, id }: { readonly file: IncomingFile; readonly id: string },
  workspace: string | undefined,
  download: Download,
  label: (workspace: string) => Effect.Effect<void, E>,
  transcribe?: Transcribe
): Effect.fn.Return<Attached, ChannelFailed | E> {
  if (workspace === undefined) return missing(file, "the agent's workspace is not in config.json")
  const got = yield* Effect.result(download(file))
  if (Result.isFailure(got)) return got.failure.is_final ? missing(file, got.failure.description) : yield* got.failure
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
  const { heard, problem } = yield* wordsOf(file, { bytes, mime }, transcribe)
  const attachment = { path: stored.success, name: shownName(file.name), mime, bytes: bytes.length }
  if (heard === undefined) return { attachments: [attachment], ...(problem === undefined ? {} : { problem }) }
  const { text: words, ...transcribed } = heard
  return { attachments: [{ ...attachment, transcribed }], words }
})
