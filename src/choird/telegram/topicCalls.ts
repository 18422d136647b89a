/** The methods of the Bot API for topics. */
import { Effect, Option, Schema } from "effect"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { type Call, foreign } from "./telegramCalls.ts"
import { TelegramFailed } from "./TelegramFailed.ts"

const TOPIC_CALL_MS_MAX = 30_000
/** Characters of a topic's name. */
const TOPIC_NAME_CHARS_MAX = 128

const isPrivate = (chat_id: string) => !chat_id.startsWith("-")

const decodeTopics = Schema.decodeUnknownOption(
  Schema.Struct({
    has_topics_enabled: Schema.optionalKey(Schema.Boolean),
    is_forum: Schema.optionalKey(Schema.Boolean)
  })
)
const decodeTopic = Schema.decodeUnknownOption(Schema.Struct({ message_thread_id: Schema.Natural }))

/** The methods of grammY's client for topics. */
interface TopicClient {
  getMe(signal: never): Promise<unknown>
  getChat(chat_id: string, signal: never): Promise<unknown>
  createForumTopic(chat_id: string, name: string, other: object, signal: never): Promise<unknown>
  editForumTopic(chat_id: string, thread_id: number, other: object, signal: never): Promise<unknown>
  closeForumTopic(chat_id: string, thread_id: number, signal: never): Promise<unknown>
}

export const topicsOf = (api: TopicClient, call: Call) => ({
  hasTopics: (chat_id: string) =>
    Effect.map(
      isPrivate(chat_id)
        ? call("getMe", TOPIC_CALL_MS_MAX, (signal): Promise<unknown> => api.getMe(foreign(signal)))
        : call("getChat", TOPIC_CALL_MS_MAX, (signal): Promise<unknown> => api.getChat(chat_id, foreign(signal))),
      (found) => {
        const decoded = Option.getOrUndefined(decodeTopics(found))
        return decoded?.has_topics_enabled === true || decoded?.is_forum === true
      }
    ),
  createTopic: (chat_id: string, name: string) =>
    Effect.flatMap(
      call("createForumTopic", TOPIC_CALL_MS_MAX, (signal): Promise<unknown> =>
        api.createForumTopic(chat_id, firstPart(name, TOPIC_NAME_CHARS_MAX), {}, foreign(signal))
      ),
      (made) =>
        Option.match(decodeTopic(made), {
          onNone: () =>
            Effect.fail(
              new TelegramFailed({
                method: "createForumTopic",
                code: 0,
                description: "the answer is not from the Bot API",
                retry_after_ms: null
              })
            ),
          onSome: ({ message_thread_id }) => Effect.succeed(message_thread_id)
        })
    ),
  closeTopic: (chat_id: string, thread_id: number, name: string) =>
    Effect.asVoid(
      isPrivate(chat_id)
        ? call("editForumTopic", TOPIC_CALL_MS_MAX, (signal) =>
            api.editForumTopic(
              chat_id,
              thread_id,
              { name: firstPart(`✓ ${name}`, TOPIC_NAME_CHARS_MAX) },
              foreign(signal)
            )
          )
        : call("closeForumTopic", TOPIC_CALL_MS_MAX, (signal) =>
            api.closeForumTopic(chat_id, thread_id, foreign(signal))
          )
    )
})
