/** Things that a message of the Bot API shares beside texts and files, and messages that nobody wrote. Pure. */
import type { SharedItem } from "#src/choird/gateway/SharedItem.ts"
import { type Fields, fieldsOf, listOf, naturalOf, numberOf, textOf } from "./telegramFields.ts"

/** Characters of a contact's card that are looked through, and addresses of it that are shown. */
const CARD_CHARS_MAX = 2048
const EMAILS_MAX = 5

const placeOf = (value: unknown) => {
  const place = fieldsOf(value)
  const [latitude, longitude] = [numberOf(place?.["latitude"]), numberOf(place?.["longitude"])]
  if (place === undefined || latitude === undefined || longitude === undefined) return undefined
  const accuracy_m = numberOf(place["horizontal_accuracy"])
  return { latitude, longitude, ...(accuracy_m === undefined ? {} : { accuracy_m }) }
}

const locationOf = (value: unknown): SharedItem | undefined => {
  const place = placeOf(value)
  const live_s = naturalOf(fieldsOf(value)?.["live_period"])
  return place && { type: "location", ...place, ...(live_s === undefined ? {} : { live_s }) }
}

const venueOf = (venue: Fields): SharedItem | undefined => {
  const place = placeOf(venue["location"])
  return (
    place && { type: "venue", ...place, title: textOf(venue["title"]) ?? "", address: textOf(venue["address"]) ?? "" }
  )
}

/** `EMAIL;TYPE=home:ada@example.org` of a card. */
const EMAIL_LINE = /^(?:[\w-]+\.)?EMAIL[^:\n]*:\s*(\S+)\s*$/gimu

const contactOf = (contact: Fields): SharedItem => {
  const names = [contact["first_name"], contact["last_name"]].flatMap((name) => textOf(name) ?? [])
  const card = (textOf(contact["vcard"]) ?? "").slice(0, CARD_CHARS_MAX)
  return {
    type: "contact",
    name: names.join(" "),
    phone: textOf(contact["phone_number"]) ?? "",
    emails: [...card.matchAll(EMAIL_LINE)].slice(0, EMAILS_MAX).flatMap(([, email]) => email ?? [])
  }
}

const pollOf = (poll: Fields): SharedItem => ({
  type: "poll",
  question: textOf(poll["question"]) ?? "",
  options: listOf(poll["options"]).map(({ text, voter_count }) => ({
    text: textOf(text) ?? "",
    votes: naturalOf(voter_count) ?? 0
  })),
  is_quiz: poll["type"] === "quiz",
  is_closed: poll["is_closed"] === true
})

const checklistOf = (checklist: Fields): SharedItem => ({
  type: "checklist",
  title: textOf(checklist["title"]) ?? "",
  tasks: listOf(checklist["tasks"]).map(({ completion_date, text }) => ({
    text: textOf(text) ?? "",
    done: (naturalOf(completion_date) ?? 0) > 0
  }))
})

const diceOf = (dice: Fields): SharedItem => ({
  type: "dice",
  emoji: textOf(dice["emoji"]) ?? "🎲",
  value: naturalOf(dice["value"]) ?? 0
})

/** The readers in the order in which they count: a venue is also there as a location. */
const READERS: ReadonlyArray<readonly [key: string, read: (value: Fields) => SharedItem | undefined]> = [
  ["venue", venueOf],
  ["location", locationOf],
  ["contact", contactOf],
  ["poll", pollOf],
  ["checklist", checklistOf],
  ["dice", diceOf],
  ["sticker", ({ emoji }) => ({ type: "sticker", emoji: textOf(emoji) ?? "without an emoji" })]
]

/** The thing that a message, or one that is replied to, shares. */
export const itemOf = (message: Fields): SharedItem | undefined => {
  for (const [key, read] of READERS) {
    const value = fieldsOf(message[key])
    const item = value && read(value)
    if (item !== undefined) return item
  }
  return undefined
}

/** The keys of messages that Telegram makes of what happens in a chat. Nobody wrote them, so nobody waits for an answer. */
const SERVICE = new Set(
  `boost_added channel_chat_created chat_background_set chat_owner_changed chat_owner_left chat_shared checklist_tasks_added
  checklist_tasks_done community_chat_added community_chat_joined community_chat_removed connected_website delete_chat_photo
  direct_message_price_changed forum_topic_closed forum_topic_created forum_topic_edited forum_topic_reopened general_forum_topic_hidden
  general_forum_topic_unhidden gift gift_upgrade_sent giveaway giveaway_completed giveaway_created giveaway_winners group_chat_created
  left_chat_member managed_bot_created message_auto_delete_timer_changed migrate_from_chat_id migrate_to_chat_id new_chat_members
  new_chat_member new_chat_participant new_chat_photo new_chat_title paid_message_price_changed passport_data pinned_message
  poll_option_added poll_option_deleted proximity_alert_triggered refunded_payment successful_payment suggested_post_approval_failed
  suggested_post_approved suggested_post_declined suggested_post_paid suggested_post_refunded supergroup_chat_created
  unique_gift users_shared video_chat_ended video_chat_participants_invited video_chat_scheduled video_chat_started web_app_data
  write_access_allowed`.split(/\s+/u)
)

export const isService = (message: Fields): boolean => Object.keys(message).some((key) => SERVICE.has(key))
