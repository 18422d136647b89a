/** What the methods of the Bot API for topics, and those that tell of them, do to a bot of the Telegram double. */
import {
  type ApiCall,
  type ApiReply,
  badRequest,
  type BotState,
  type JsonObject,
  succeed,
  textParameter
} from "./telegramMethods.ts"

const TOPIC_NAME_CHARS_MAX = 128

export const isForum = ({ has_topics }: BotState, chat_id: unknown) =>
  Number(chat_id) > 0 ? has_topics : String(chat_id).endsWith("9")

const getChat = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const id = Number(parameters["chat_id"])
  const forum = isForum(bot, id)
  return succeed({ id, type: id > 0 ? "private" : "supergroup", ...(id < 0 && forum ? { is_forum: true } : {}) })
}

/** In a private chat nobody needs a right. */
const mayManage = ({ manages_topics }: BotState, { chat_id }: JsonObject) => Number(chat_id) > 0 || manages_topics

const topicName = (parameters: JsonObject) => {
  const name = textParameter(parameters, "name")
  return name === "" || name.length > TOPIC_NAME_CHARS_MAX ? undefined : name
}

const createForumTopic = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  if (!isForum(bot, parameters["chat_id"])) return badRequest("the chat is not a forum")
  if (!mayManage(bot, parameters)) return badRequest("not enough rights to create a topic")
  const name = topicName(parameters)
  if (name === undefined) return badRequest("TOPIC_TITLE_INVALID")
  const message_thread_id = bot.message_id_next++
  bot.topics.set(message_thread_id, { chat_id: Number(parameters["chat_id"]), name, closed: false })
  return succeed({ message_thread_id, name, icon_color: 7_322_096 })
}

/** A topic that the bot may change; a deleted one has an id that is not valid. */
const topicOf = (bot: BotState, { chat_id, message_thread_id }: JsonObject) => {
  const id = Number(message_thread_id)
  const topic = bot.deleted_topics.has(id) ? undefined : bot.topics.get(id)
  return topic?.chat_id === Number(chat_id) ? { id, topic } : undefined
}

const editForumTopic = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  const found = topicOf(bot, parameters)
  const name = topicName(parameters)
  if (found === undefined) return badRequest("TOPIC_ID_INVALID")
  if (name === undefined) return badRequest("TOPIC_TITLE_INVALID")
  bot.topics.set(found.id, { ...found.topic, name })
  return succeed(true)
}

const closeForumTopic = (bot: BotState, { parameters }: ApiCall): ApiReply => {
  if (Number(parameters["chat_id"]) > 0) return badRequest("method is available for supergroup chats only")
  const found = topicOf(bot, parameters)
  if (found === undefined) return badRequest("TOPIC_ID_INVALID")
  if (!mayManage(bot, parameters)) return badRequest("not enough rights to close a topic")
  if (found.topic.closed) return badRequest("TOPIC_NOT_MODIFIED")
  bot.topics.set(found.id, { ...found.topic, closed: true })
  return succeed(true)
}

const getMe = (bot: BotState): ApiReply =>
  succeed({
    id: bot.id,
    is_bot: true,
    first_name: "Bot",
    username: "double_bot",
    can_join_groups: true,
    can_read_all_group_messages: false,
    supports_inline_queries: false,
    has_topics_enabled: bot.has_topics
  })

export const TOPIC_METHODS: Readonly<Record<string, (bot: BotState, call: ApiCall) => ApiReply>> = {
  closeForumTopic,
  createForumTopic,
  editForumTopic,
  getChat,
  getMe
}
