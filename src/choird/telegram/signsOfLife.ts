/**
 * Signs of life on Telegram while the agent works on a message: that it types, and the answer as it grows. Nothing of it is stored or sent
 * again; the answer itself comes by the outbox.
 */
import { Effect, Result, Stream } from "effect"
import type { Chat } from "./Chat.ts"
import { chatText, openingOf } from "#src/choird/queues/chatText.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { makeOpenTopic } from "./jobTopics.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
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

/** The report on a job of a message is another draft than the answer to the message. */
const REPORT_STRIDE = 1_000_003n

/** A number for Telegram, which wants one that is not 0, for each answer's and each report's draft. */
const draftId = ({ inbox_id, report_rev = 0 }: ShownDraft): number =>
  Number((BigInt(inbox_id) + REPORT_STRIDE * BigInt(report_rev)) % 2_147_483_647n) + 1

/** As the answer will be shown: an agent's words never have choird's mark. The end of a long one is a text of its own, which a cut may begin anywhere. */
const shownText = (draft: ShownDraft): string => {
  const shown = (text: string) => chatText({ ...draft, source: "event", text })
  const text = shown(draft.text)
  const room = DRAFT_CHARS_MAX - `${openingOf(draft)} …`.length
  return text.length <= DRAFT_CHARS_MAX ? text : shown(`…${lastPart(text, room)}`)
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

/** Shows the drafts of a DM, of several that come at once the newest; that of a job's question in its topic, if it has one. A bot whose server knows no drafts shows none. */
export const showDrafts = Effect.fnUntraced(function* (chat: Chat) {
  const { dm, pace } = chat
  const api = yield* TelegramApi
  const drafts = yield* Drafts
  const presence = yield* Presence
  const openTopic = yield* makeOpenTopic
  const show = Effect.fnUntraced(function* (draft: ShownDraft) {
    // The answer may have come meanwhile; a draft behind it would look like a second one.
    if (!(yield* presence.isDue(draft))) return true
    const job = yield* presence.questionOf(draft)
    const thread_id = job === undefined ? undefined : yield* openTopic(chat, job)
    yield* pace.sign
    const shown = yield* Effect.result(api.draft(chat.chat_id, draftId(draft), shownText(draft), thread_id))
    if (Result.isSuccess(shown)) {
      yield* Effect.sleep(DRAFT_INTERVAL_MS)
      return true
    }
    const { code, message, retry_after_ms } = shown.failure
    if (code === 404) yield* Effect.logInfo("the server of this bot does not support drafts", { dm, reason: message })
    else yield* Effect.sleep(retry_after_ms ?? DRAFT_PAUSE_MS)
    return code !== 404
  })
  yield* drafts.changes.pipe(
    Stream.filter((draft) => draft.dm === dm && draft.text.trim() !== ""),
    Stream.buffer({ capacity: 1, strategy: "sliding" }),
    Stream.mapEffect(show),
    Stream.takeWhile((goesOn) => goesOn),
    Stream.runDrain
  )
})
