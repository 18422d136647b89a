/**
 * Signs of life on Telegram while the agent works on a message: that it types, the answer as it grows, and a tool that runs for long. Nothing of
 * it is stored or sent again; the answer itself comes by the outbox.
 */
import { Effect, Result, Stream } from "effect"
import type { Chat } from "./Chat.ts"
import { chatText, openingOf } from "#src/choird/queues/chatText.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { makeOpenTopic } from "./jobTopics.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import type { Runs } from "#src/choird/gateway/runningCalls.ts"
import { TelegramApi } from "./TelegramApi.ts"
import { lastPart } from "#src/shared/text/placeToCut.ts"

/** Telegram shows the action for five seconds. */
const TYPING_INTERVAL_MS = 4000
/** The interval between two states of a draft in one chat. */
const DRAFT_INTERVAL_MS = 1000
/** Characters of a draft that Telegram takes; of a longer one the end is shown. */
const DRAFT_CHARS_MAX = 4096
/** The pause after a refusal that names none. */
const DRAFT_PAUSE_MS = 10_000

/** The interval between two notes on how long a tool has been running, and the seconds before the first one. */
const RUNS_INTERVAL_MS = 4000
const RUNS_LONG_S = 5

/** The report on a job of a message is another draft than the answer to the message. */
const REPORT_STRIDE = 1_000_003n

/** A number for Telegram, which wants one that is not 0, for each answer's and each report's draft. */
const draftId = ({ inbox_id, report_rev = 0 }: ShownDraft): number =>
  Number((BigInt(inbox_id) + REPORT_STRIDE * BigInt(report_rev)) % 2_147_483_647n) + 1

/** As the answer will be shown: an agent's words never have choird's mark. The end of a long one is a text of its own, which a cut may begin anywhere. */
const shownText = (draft: ShownDraft, chars_max = DRAFT_CHARS_MAX): string => {
  const shown = (text: string) => chatText({ ...draft, source: "event", text })
  const text = shown(draft.text)
  const room = chars_max - `${openingOf(draft)} …`.length
  return text.length <= chars_max ? text : shown(`…${lastPart(text, room)}`)
}

/** The tool that runs, in choird's words, below those that the agent wrote in the same turn. */
const runsText = ({ agent_id, seconds, tool }: Runs, words: ShownDraft | undefined): string => {
  const lasting = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`
  const text = chatText({ agent_id, source: "choird", text: `Running ${tool}, ${lasting}` })
  return words === undefined ? text : `${shownText(words, DRAFT_CHARS_MAX - text.length - 2)}\n\n${text}`
}

/** Shows that the agent types for as long as it works on a message of the DM, or on a report on a job of one. */
export const showTyping = Effect.fnUntraced(function* (chat: Chat) {
  const { dm, pace } = chat
  const api = yield* TelegramApi
  const presence = yield* Presence
  const untilAnswered = Effect.gen(function* () {
    while (yield* presence.isAtWork(dm)) {
      yield* pace.sign
      const shown = yield* Effect.result(api.typing(chat.chat_id))
      const pause_ms = Result.isFailure(shown) ? (shown.failure.retry_after_ms ?? 0) : 0
      yield* Effect.sleep(Math.max(TYPING_INTERVAL_MS, pause_ms))
    }
  })
  yield* Stream.runForEach(presence.wakes(dm), () => untilAnswered)
})

/** Shows a draft, and answers whether the bot's server knows drafts. That of a job's question is shown in its topic, if it has one. */
const makeShowDraft = Effect.fnUntraced(function* (chat: Chat) {
  const { dm, pace } = chat
  const api = yield* TelegramApi
  const presence = yield* Presence
  const openTopic = yield* makeOpenTopic
  return Effect.fnUntraced(function* (draft: ShownDraft, text: string) {
    // The answer may have come meanwhile; a draft behind it would look like a second one.
    if (!(yield* presence.isDue(draft))) return true
    const job = yield* presence.questionOf(draft)
    const thread_id = job === undefined ? undefined : yield* openTopic(chat, job)
    yield* pace.sign
    const shown = yield* Effect.result(api.draft(chat.chat_id, draftId(draft), text, thread_id))
    if (Result.isSuccess(shown)) {
      yield* Effect.sleep(DRAFT_INTERVAL_MS)
      return true
    }
    const { code, message, retry_after_ms } = shown.failure
    if (code === 404) yield* Effect.logInfo("the server of this bot does not support drafts", { dm, reason: message })
    else yield* Effect.sleep(retry_after_ms ?? DRAFT_PAUSE_MS)
    return code !== 404
  })
})

/**
 * Shows the drafts of a DM, of several that come at once the newest, and below the newest words the tool that has been running for a while. A bot
 * whose server knows no drafts shows none.
 */
export const showDrafts = Effect.fnUntraced(function* (chat: Chat) {
  const { dm } = chat
  const drafts = yield* Drafts
  const presence = yield* Presence
  const show = yield* makeShowDraft(chat)
  let newest: ShownDraft | undefined
  const showRuns = Effect.gen(function* () {
    while (yield* presence.isAtWork(dm)) {
      yield* Effect.sleep(RUNS_INTERVAL_MS)
      const runs = yield* presence.runs(dm)
      if (runs === undefined || runs.seconds < RUNS_LONG_S) continue
      const isSame = newest?.inbox_id === runs.inbox_id && newest.report_rev === undefined
      const words = isSame ? newest : undefined
      if (!(yield* show(words ?? { ...runs, dm, text: "" }, runsText(runs, words)))) return false
    }
    return true
  })
  const ofTools = presence.wakes(dm).pipe(
    Stream.mapEffect(() => showRuns),
    Stream.takeWhile((goesOn) => goesOn),
    Stream.runDrain
  )
  const ofWords = drafts.changes.pipe(
    Stream.filter((draft) => draft.dm === dm && draft.text.trim() !== ""),
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.mapEffect((draft) => {
      newest = draft
      return show(draft, shownText(draft))
    }),
    Stream.takeWhile((goesOn) => goesOn),
    Stream.runDrain
  )
  // A server that does not know drafts refuses those of both.
  yield* Effect.raceFirst(ofWords, ofTools)
})
