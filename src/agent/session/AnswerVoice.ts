/** Answers as voice notes, for people who want to hear them: their words in the agent's voice, left where all files for the user are. */
import { Context, Effect, Layer, Result } from "effect"
import { SEND_FOLDER, type SentFile } from "#schema/SentFile.ts"
import { makeSpeak, SPEECH_CHARS_MAX } from "#src/agent/outside/Speech.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { takeForSending } from "#src/agent/tools/sendFolder.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { lastSentenceEnd } from "#src/shared/text/sentences.ts"

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
>()("choir/agent/AnswerVoice") {
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
          orElse: () => Effect.fail({ message: `speech synthesis timed out after ${ANSWER_VOICE_MS_MAX / 1000} s` })
        }),
        Effect.catch(({ message }) => Effect.as(Effect.logWarning("sending text only", { reason: message }), undefined))
      )
  })
})

interface Spoken {
  readonly words: string
  /** False where the text has something that is only read: code, a table, a link, or what is too long to be said. */
  readonly isWhole: boolean
}

const FENCE = /^ {0,3}(?<mark>`{3,}(?!`)|~{3,}(?!~))[^\n]*\n[^]*?(?:^ {0,3}\k<mark>[`~]*[ \t]*$|(?![^]))/gmu
const TABLE_LINE = /^[ \t]*\|.*\|[ \t]*$/gmu
// Longer texts between two marks are left as they are, or a hostile answer would be searched again and again for their ends.
const LINK = /!?\[([^\]\n]{0,300})\]\([^)\n]{0,2000}\)/gu
const ADDRESS = /<?https?:\/\/[^\s<>)\]]+>?/giu
const CODE = /`{1,3}([^`\n]{1,300})`{1,3}/gu
/** Marks at the beginning of a line: headings, quotes and lists. */
const LINE_MARK = /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d{1,9}[.)][ \t]+)+/gmu
const EMPHASIS = /(\*{1,3}|~~|\|\|)(?=\S)(.{1,300}?)(?<=\S)\1/gu
const UNDERLINED = /(?<![\p{L}\p{N}_])(_{1,3})(?=[^\s_])(.{1,300}?)(?<=[^\s_])\1(?![\p{L}\p{N}_])/gu

/** A text cut at the end of a sentence, or of a word. */
const cut = (text: string): string => {
  if (text.length <= SPEECH_CHARS_MAX) return text
  const head = firstPart(text, SPEECH_CHARS_MAX)
  const end = lastSentenceEnd(head) ?? head.lastIndexOf(" ")
  return end > SPEECH_CHARS_MAX / 2 ? head.slice(0, end) : head
}

/** The words of a Markdown answer as they are said aloud, and whether they are all of it. Pure. */
export const spokenText = (markdown: string): Spoken => {
  const said = markdown
    .replaceAll(FENCE, "\n")
    .replaceAll(TABLE_LINE, "")
    .replaceAll(LINK, "$1")
    .replaceAll(ADDRESS, "")
  const isRead = said !== markdown || CODE.test(said)
  CODE.lastIndex = 0
  const plain = said
    .replaceAll(CODE, "$1")
    .replaceAll(LINE_MARK, "")
    .replaceAll(EMPHASIS, "$2")
    .replaceAll(UNDERLINED, "$2")
    .replaceAll(/[^\S\n]+/gu, " ")
    .replaceAll(/\n{3,}/gu, "\n\n")
    .trim()
  const words = cut(plain)
  return { words, isWhole: !isRead && words === plain }
}
