/** Answers as voice notes, for people who want to hear them: their words in the agent's voice, left where all files for the user are. */
import { Context, Effect, Layer, Result } from "effect"
import { SEND_FOLDER, type SentFile } from "#schema/SentFile.ts"
import { makeSpeak } from "#src/agent/outside/Speech.ts"
import { spokenText } from "#src/agent/outside/spokenText.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { takeForSending } from "#src/agent/tools/sendFolder.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"

/** The longest wait for the sound of an answer; then the answer goes as a text. */
const ANSWER_VOICE_MS_MAX = 45_000

export interface Voiced {
  readonly files: readonly [SentFile]
  readonly cost_usd?: number
}

export class AnswerVoice extends Context.Service<
  AnswerVoice,
  {
    /** The sound of an answer to the message of this revision; `undefined` where there is no voice, nothing to say, or it fails. */
    of(text: string, rev: number): Effect.Effect<Voiced | undefined>
  }
>()("choir/agent/session/AnswerVoice") {
  static readonly layer = Layer.effect(
    AnswerVoice,
    Effect.suspend(() => make)
  )

  /** Of an agent that never speaks. */
  static readonly layerNone = Layer.succeed(AnswerVoice, { of: () => Effect.undefined })
}

const make = Effect.gen(function* () {
  const settings = yield* AgentSettings
  const speak = yield* makeSpeak
  const workspace = yield* Workspace

  const voiced = Effect.fnUntraced(function* (text: string, rev: number) {
    const { isWhole, words } = spokenText(text)
    if (settings.current().config.voice === undefined || words === "") return undefined
    const { bytes, cost_usd, ending } = yield* speak(words)
    const path = `${SEND_FOLDER}/answer-${settings.current().session_id}-${rev}.${ending}`
    yield* workspace.update(path, () => Result.succeed(bytes))
    const file = yield* takeForSending(workspace, path)
    return {
      files: [{ ...file, speaks: isWhole ? "all" : "part" }],
      ...(cost_usd === undefined ? {} : { cost_usd })
    } satisfies Voiced
  })

  return AnswerVoice.of({
    of: (text, rev) =>
      voiced(text, rev).pipe(
        Effect.timeoutOrElse({
          duration: ANSWER_VOICE_MS_MAX,
          orElse: () => Effect.fail({ message: `no sound came within ${ANSWER_VOICE_MS_MAX / 1000} s` })
        }),
        Effect.catch(({ message }) => Effect.as(Effect.logWarning("sending text only", { reason: message }), undefined))
      )
  })
})
