/** What the phones of people show of their chats with a bot, as lines of text, from what happened at the Telegram double. */
import type { ChatChange } from "../support/testing/Telegram.ts"
import type { JsonObject } from "../support/testing/telegramMethods.ts"

/** A message as an app shows it. */
export interface Bubble {
  readonly message_id: number
  readonly chat_id: number
  /** The first name of a person; the bot has none. */
  readonly from: string | undefined
  readonly lines: ReadonlyArray<string>
}

/** Units of a message that a quote above an answer shows. */
const QUOTE_CHARS_MAX = 40
const FILES = ["document", "photo", "voice", "audio", "video"] as const

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)
const textOf = (value: unknown, name: string): string => {
  const found = field(value, name)
  return typeof found === "string" ? found : ""
}

const clipped = (text: string) => {
  const [first = ""] = text.split("\n")
  return first.length > QUOTE_CHARS_MAX || first !== text ? `${first.slice(0, QUOTE_CHARS_MAX).trimEnd()}…` : first
}

/** The name of a file as the chat shows it; a photo is shown itself. */
const fileLine = (message: JsonObject): ReadonlyArray<string> =>
  FILES.flatMap((kind) => {
    const one = message[kind]
    if (one === undefined) return []
    if (kind === "photo") return ["[photo]"]
    return [`[${kind === "document" ? textOf(one, "file_name") || "file" : kind}]`]
  })

const buttonsOf = (message: JsonObject): ReadonlyArray<string> => {
  const rows = field(message["reply_markup"], "inline_keyboard")
  return Array.isArray(rows)
    ? rows.map((row: ReadonlyArray<unknown>) => row.map((one) => `( ${textOf(one, "text")} )`).join(" "))
    : []
}

/** The messages of all chats as they stand, with the notes that pop up after a tap as bubbles of their own. */
export class Phone {
  readonly #messages = new Map<number, JsonObject>()
  readonly #order: Array<number> = []
  readonly #reactions = new Map<number, string>()
  readonly #pops = new Map<number, { readonly chat_id: number; readonly text: string }>()
  readonly #typing = new Set<number>()
  #tapped: number | undefined
  #read = 0

  /** Takes in what happened since the last time. */
  readAll(changes: ReadonlyArray<ChatChange>): void {
    for (const change of changes.slice(this.#read)) this.#take(change)
    this.#read = changes.length
  }

  /** Whether the app shows that the bot writes: from its action or draft to its next message. */
  isTyping(chat_id: number): boolean {
    return this.#typing.has(chat_id)
  }

  #chatOf(message: JsonObject | undefined): number {
    return Number(field(message?.["chat"], "id"))
  }

  #put(message: JsonObject): void {
    const id = Number(message["message_id"])
    if (!this.#messages.has(id)) this.#order.push(id)
    this.#messages.set(id, message)
  }

  #take(change: ChatChange): void {
    if (change.by === "person") return this.#put(change.message)
    if (change.by === "tap") {
      this.#tapped = change.user
      return
    }
    const { method, parameters, result } = change
    const chat = Number(parameters["chat_id"])
    const id = Number(parameters["message_id"])
    if (method === "sendChatAction" || method === "sendMessageDraft") this.#typing.add(chat)
    else if (method === "deleteMessage") this.#messages.delete(id)
    else if (method === "setMessageReaction") this.#react(id, parameters["reaction"])
    else if (method === "answerCallbackQuery") this.#pop(textOf(parameters, "text"))
    else if (method.startsWith("send") || method.startsWith("editMessage")) {
      if (method.startsWith("send")) this.#typing.delete(chat)
      for (const message of Array.isArray(result) ? result : [result]) if (isObject(message)) this.#put(message)
    }
  }

  #react(id: number, reaction: unknown): void {
    const list: unknown = typeof reaction === "string" ? JSON.parse(reaction) : reaction
    const [first] = Array.isArray(list) ? list : []
    if (first === undefined) this.#reactions.delete(id)
    else this.#reactions.set(id, textOf(first, "emoji"))
  }

  #pop(text: string): void {
    if (text === "" || this.#tapped === undefined) return
    const id = -1 - this.#pops.size
    this.#pops.set(id, { chat_id: this.#tapped, text })
    this.#order.push(id)
  }

  #linesOf(message: JsonObject): ReadonlyArray<string> {
    const answered = this.#messages.get(Number(message["reply_to_message_id"])) ?? message["reply_to_message"]
    const quoted = isObject(answered)
      ? textOf(answered, "text") || textOf(answered, "caption") || fileLine(answered).join(" ")
      : ""
    const reaction = this.#reactions.get(Number(message["message_id"]))
    const rich = textOf(message["rich_shown"], "text")
    const text = textOf(message, "text") || textOf(message, "caption") || rich
    return [
      ...(message["forward_origin"] === undefined ? [] : ["forwarded:"]),
      ...(quoted === "" ? [] : [`↩ ${clipped(quoted)}`]),
      ...fileLine(message),
      ...(text === "" ? [] : text.split("\n")),
      ...buttonsOf(message),
      ...(reaction === undefined ? [] : [reaction])
    ]
  }

  /** Everything that is shown now, in order. */
  get bubbles(): ReadonlyArray<Bubble> {
    return this.#order.flatMap((message_id): ReadonlyArray<Bubble> => {
      const pop = this.#pops.get(message_id)
      if (pop !== undefined)
        return [{ message_id, chat_id: pop.chat_id, from: undefined, lines: [`(a note pops up: ${pop.text})`] }]
      const message = this.#messages.get(message_id)
      if (message === undefined) return []
      const { from } = message
      const name = field(from, "is_bot") === true ? undefined : textOf(from, "first_name")
      return [{ message_id, chat_id: this.#chatOf(message), from: name, lines: this.#linesOf(message) }]
    })
  }
}
