/** What messages of people have beside a plain text, with the fields that the Bot API sends (10.1). */
import type { JsonObject } from "./telegramMethods.ts"

interface Named {
  readonly id: number
  readonly first_name: string
  readonly last_name?: string
  readonly username?: string
}

export const user = (who: Named): JsonObject => ({ is_bot: false, ...who })

export const channel = (id: number, title: string, username?: string): JsonObject => ({
  id,
  type: "channel",
  title,
  ...(username === undefined ? {} : { username })
})

export const supergroup = (id: number, title: string): JsonObject => ({ id, type: "supergroup", title })

const DATE = 1_790_000_000

/** Where forwarded words, or words of another chat, come from. */
export const origins = {
  user: (who: Named, date = DATE): JsonObject => ({ type: "user", sender_user: user(who), date }),
  bot: (id: number, first_name: string, date = DATE): JsonObject => ({
    type: "user",
    sender_user: { id, is_bot: true, first_name, username: `${first_name.toLowerCase()}_bot` },
    date
  }),
  hidden: (sender_user_name: string, date = DATE): JsonObject => ({ type: "hidden_user", sender_user_name, date }),
  chat: (sender_chat: JsonObject, author_signature?: string): JsonObject => ({
    type: "chat",
    sender_chat,
    date: DATE,
    ...(author_signature === undefined ? {} : { author_signature })
  }),
  channel: (chat: JsonObject, author_signature?: string): JsonObject => ({
    type: "channel",
    chat,
    message_id: 77,
    date: DATE,
    ...(author_signature === undefined ? {} : { author_signature })
  })
}

/** A text with addresses behind some of its words. */
export const linked = (text: string, links: Readonly<Record<string, string>>): JsonObject => ({
  text,
  entities: Object.entries(links).map(([words, url]) => {
    const offset = text.indexOf(words)
    if (offset < 0) throw new Error(`the text has no words ${words}`)
    return { type: "text_link", offset, length: words.length, url }
  })
})

const checked = (latitude: number, longitude: number) => {
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) throw new Error("no such place")
  return { latitude, longitude }
}

export const location = (latitude: number, longitude: number, more: JsonObject = {}): JsonObject => ({
  location: { ...checked(latitude, longitude), ...more }
})

/** Telegram sends the place of a venue twice. */
export const venue = (title: string, address: string, latitude: number, longitude: number): JsonObject => ({
  ...location(latitude, longitude),
  venue: { location: checked(latitude, longitude), title, address, foursquare_id: "4b5988fef964a520e62a28e3" }
})

export const contact = (phone_number: string, first_name: string, more: JsonObject = {}): JsonObject => ({
  contact: { phone_number, first_name, ...more }
})

export const poll = (question: string, options: ReadonlyArray<string>, more: JsonObject = {}): JsonObject => ({
  poll: {
    id: "5123456789012345678",
    question,
    options: options.map((text, index) => ({ persistent_id: String(index), text, voter_count: 0 })),
    total_voter_count: 0,
    is_closed: false,
    is_anonymous: true,
    type: "regular",
    allows_multiple_answers: false,
    allows_revoting: true,
    members_only: false,
    ...more
  }
})

export const checklist = (title: string, tasks: Readonly<Record<string, boolean>>): JsonObject => ({
  checklist: {
    title,
    tasks: Object.entries(tasks).map(([text, done], index) => ({
      id: index + 1,
      text,
      ...(done ? { completed_by_user: user({ id: 1, first_name: "User 1" }), completion_date: DATE } : {})
    }))
  }
})

export const dice = (emoji: string, value: number): JsonObject => ({ dice: { emoji, value } })

export const sticker = (emoji: string | undefined): JsonObject => ({
  sticker: {
    file_id: "sticker-1",
    file_unique_id: "unique-sticker-1",
    type: "regular",
    width: 512,
    height: 512,
    is_animated: false,
    is_video: false,
    ...(emoji === undefined ? {} : { emoji, set_name: "Cats" }),
    file_size: 20_000
  }
})

/** A picture of a message that is replied to. */
export const photo: JsonObject = {
  photo: [{ file_id: "photo-1", file_unique_id: "unique-photo-1", width: 90, height: 90, file_size: 1000 }]
}

/** A reply to a message of another chat. */
export const externalReply = (
  origin: JsonObject,
  content: JsonObject & { readonly chat?: JsonObject },
  quote?: string
): JsonObject => ({
  external_reply: { origin, ...content },
  ...(quote === undefined ? {} : { quote: { text: quote, position: 0, is_manual: true } })
})

/** Messages that Telegram itself writes into a private chat, a group or a channel. */
export const SERVICE_MESSAGES: ReadonlyArray<JsonObject> = [
  { new_chat_members: [user({ id: 5, first_name: "New" })] },
  { left_chat_member: user({ id: 5, first_name: "Gone" }) },
  { new_chat_title: "Another title" },
  { new_chat_photo: photo["photo"] },
  { delete_chat_photo: true },
  { pinned_message: { message_id: 1, date: DATE, chat: { id: 1, type: "private" }, text: "pinned words" } },
  { message_auto_delete_timer_changed: { message_auto_delete_time: 86_400 } },
  { boost_added: { boost_count: 1 } },
  { chat_background_set: { type: { type: "fill", fill: { type: "solid", color: 0 }, dark_theme_dimming: 0 } } },
  { forum_topic_created: { name: "A topic", icon_color: 7_322_096 } },
  { forum_topic_edited: { name: "Another name" } },
  { forum_topic_closed: {} },
  { forum_topic_reopened: {} },
  { general_forum_topic_hidden: {} },
  { general_forum_topic_unhidden: {} },
  { video_chat_started: {} },
  { video_chat_ended: { duration: 5 } },
  { write_access_allowed: { from_request: true } },
  { users_shared: { request_id: 1, users: [{ user_id: 5 }] } },
  { checklist_tasks_done: { marked_as_done_task_ids: [1] } },
  { checklist_tasks_added: { tasks: [{ id: 2, text: "one more" }] } },
  {
    proximity_alert_triggered: {
      traveler: user({ id: 5, first_name: "A" }),
      watcher: user({ id: 1, first_name: "B" }),
      distance: 5
    }
  },
  { giveaway_created: {} },
  { gift: { gift: { id: "1", star_count: 5 } } },
  { successful_payment: { currency: "XTR", total_amount: 1, invoice_payload: "x" } },
  { connected_website: "example.org" }
]
