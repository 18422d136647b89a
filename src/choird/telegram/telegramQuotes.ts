/** The writers whose words a message of the Bot API brings: of a forwarded one, and of the one that it replies to. Pure. */
import type { Origin, Quoted } from "#src/choird/gateway/Arrival.ts"
import { linkedText } from "./linkedText.ts"
import { type Fields, fieldsOf, listOf, textOf, timeOf } from "./telegramFields.ts"
import { fileOf } from "./telegramFiles.ts"
import { itemOf } from "./telegramItems.ts"

/** The bot and the person who writes, by their ids. */
interface Ids {
  readonly bot: string
  readonly writer: number
}

const nameOf = ({ first_name, last_name, title }: Fields): string | undefined =>
  textOf(title) ?? textOf([first_name, last_name].flatMap((name) => textOf(name) ?? []).join(" "))

const handleOf = ({ username }: Fields) => {
  const handle = textOf(username)
  return handle !== undefined && /^\w{1,64}$/u.test(handle) ? { handle } : {}
}

const named = (who: Fields): Pick<Origin, "handle" | "name"> => {
  const name = nameOf(who)
  return { ...(name === undefined ? {} : { name }), ...handleOf(who) }
}

const personOf = (user: Fields, { bot, writer }: Ids): Origin => {
  if (String(user["id"]) === bot) return { kind: "own" }
  if (user["id"] === writer) return { kind: "self" }
  return { kind: user["is_bot"] === true ? "bot" : "person", ...named(user) }
}

const chatOf = (chat: Fields, signature: unknown): Origin => {
  const author = textOf(signature)
  const kind = chat["type"] === "channel" ? "channel" : chat["type"] === "private" ? "person" : "group"
  return { kind, ...named(chat), ...(author === undefined ? {} : { signature: author }) }
}

const whoIn = (origin: Fields, ids: Ids): Origin => {
  const { author_signature, chat, sender_chat, sender_user, sender_user_name } = origin
  const user = fieldsOf(sender_user)
  if (user !== undefined) return personOf(user, ids)
  const place = fieldsOf(sender_chat) ?? fieldsOf(chat)
  if (place !== undefined) return chatOf(place, author_signature)
  const name = textOf(sender_user_name)
  return { kind: "hidden", ...(name === undefined ? {} : { name }) }
}

/** The writer that a `MessageOrigin` names, and when they wrote. */
export const originOf = (value: unknown, ids: Ids): Origin | undefined => {
  const origin = fieldsOf(value)
  if (origin === undefined) return undefined
  const written_ms = timeOf(origin["date"])
  return { ...whoIn(origin, ids), ...(written_ms === undefined ? {} : { written_ms }) }
}

/** Another bot through which a message was made. */
export const viaOf = (value: unknown): Origin | undefined => {
  const bot = fieldsOf(value)
  return bot && { kind: "through", ...named(bot) }
}

/** How deep the texts of a rich message are read; Telegram's own have few layers. */
const RICH_DEPTH_MAX = 24

/** The texts of a rich message, without its layout: those of a line as one, and each block on lines of its own. */
const richText = (value: unknown, glue = "", depth = 0): string => {
  if (typeof value === "string") return value
  if (depth > RICH_DEPTH_MAX) return ""
  if (Array.isArray(value))
    return value
      .map((one: unknown) => richText(one, glue, depth + 1))
      .filter((text) => text !== "")
      .join(glue)
  const { blocks, cells, items, text } = fieldsOf(value) ?? {}
  return text === undefined ? richText(blocks ?? items ?? cells ?? "", "\n", depth + 1) : richText(text, "", depth + 1)
}

/** The words of a message with the addresses of its links; the empty text where it has none. */
export const wordsOf = ({ caption, caption_entities, entities, rich_message, text }: Fields): string => {
  if (typeof text === "string") return linkedText(text, entities)
  if (typeof caption === "string") return linkedText(caption, caption_entities)
  return richText(rich_message)
}

/** The content of a message, as far as a reply to it may mean it. */
const contentOf = (message: Fields, quote: unknown): Pick<Quoted, "file" | "is_part" | "item" | "text"> | undefined => {
  const part = fieldsOf(quote)
  const chosen = textOf(part?.["text"])
  const text = chosen === undefined ? textOf(wordsOf(message)) : linkedText(chosen, part?.["entities"])
  const file = fileOf(message)
  const item = chosen === undefined ? itemOf(message) : undefined
  if (text === undefined && file === undefined && item === undefined) return undefined
  return {
    ...(text === undefined ? {} : { text }),
    ...(chosen === undefined ? {} : { is_part: true }),
    ...(file === undefined ? {} : { file: { kind: file.kind, name: file.name } }),
    ...(item === undefined ? {} : { item })
  }
}

const authorOf = (message: Fields, ids: Ids): Origin => {
  const { author_signature, date, forward_origin, from, sender_chat, via_bot } = message
  const written_ms = timeOf(date)
  const place = fieldsOf(sender_chat)
  const who =
    originOf(forward_origin, ids) ??
    viaOf(via_bot) ??
    (place === undefined ? personOf(fieldsOf(from) ?? {}, ids) : chatOf(place, author_signature))
  return written_ms === undefined || who.written_ms !== undefined ? who : { ...who, written_ms }
}

/** The message that another one replies to: in the same chat, or elsewhere. All messages of a topic seem to reply to the one that began it. */
export const quotedOf = (message: Fields, ids: Ids): Quoted | undefined => {
  const { external_reply, quote, reply_to_checklist_task_id, reply_to_message } = message
  const near = fieldsOf(reply_to_message)
  if (near !== undefined) {
    const content = contentOf(near, quote)
    const tasks = listOf(fieldsOf(near["checklist"])?.["tasks"])
    const task = textOf(tasks.find(({ id }) => id !== undefined && id === reply_to_checklist_task_id)?.["text"])
    if (content === undefined) return undefined
    const { item: _whole, ...rest } = content
    const by = authorOf(near, ids)
    return task === undefined ? { by, ...content } : { by, ...rest, text: task, is_part: true }
  }
  const far = fieldsOf(external_reply)
  if (far === undefined) return undefined
  const chat = fieldsOf(far["chat"])
  const elsewhere = chat === undefined ? undefined : (nameOf(chat) ?? "")
  const by = originOf(far["origin"], ids) ?? { kind: "hidden" }
  return { by, ...contentOf(far, quote), ...(elsewhere === undefined ? {} : { elsewhere }) }
}
