/** A prompt as people read it: its parts with the tokens of each, the longest cut (docs/protocol.md, REPORT_STATUS). */
import { Effect } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import {
  CONTEXT_CHARS_MAX,
  CONTEXT_PART_CHARS_MAX,
  CONTEXT_PARTS_MAX,
  type ContextPart,
  type PromptContext
} from "#schema/PromptContext.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { pictureTokensOfEach } from "#src/shared/model/pictures.ts"
import { jsonOf } from "./partSizes.ts"
import { isNote } from "./choirNote.ts"
import { type Part, TokenCount } from "./TokenCount.ts"

/** A prompt that was sent. */
export interface SentPrompt {
  readonly rev: number
  readonly model: string
  readonly context_window: number
  readonly tools: ReadonlyArray<Tool>
  readonly messages: ReadonlyArray<Message>
}

/** `pictures` are the tokens of those that a request shows of it, estimated as budgets have it. */
type Shown = Pick<ContextPart, "kind" | "text"> & { readonly counted: ReadonlyArray<Part>; readonly pictures: number }

const kindOf = (message: Message): ContextPart["kind"] => {
  switch (message.role) {
    case "system":
      return "instructions"
    case "assistant":
      return "assistant"
    case "tool":
      return "result"
    case "user":
      return isNote(message.content) ? "note" : "user"
  }
}

const textOf = (message: Message): string =>
  message.role === "assistant"
    ? [message.content ?? "", ...(message.calls ?? []).map((call) => `${call.name} ${call.arguments}`)]
        .filter((text) => text !== "")
        .join("\n")
    : message.content

const partsOf = ({ messages, tools }: SentPrompt): ReadonlyArray<Shown> => {
  const offered = tools.map((tool) => jsonOf(tool))
  const pictures = pictureTokensOfEach(messages)
  const told = messages.map((message, at) => ({
    kind: kindOf(message),
    text: textOf(message),
    counted: [message],
    pictures: pictures[at] ?? 0
  }))
  if (offered.length === 0) return told
  return [{ kind: "tools", text: offered.join("\n"), counted: tools, pictures: 0 }, ...told]
}

const cut = (text: string, chars: number): string => {
  if (text.length <= chars) return text
  return `${text.slice(0, chars).toWellFormed()}\n[${text.length - chars} more characters]`
}

/** The prompt's parts. Where their texts are too long together, those of the older ones are left out; every part keeps its tokens. */
export const describeContext = Effect.fnUntraced(function* (lane: LaneId, prompt: SentPrompt) {
  const tokens = yield* TokenCount
  const parts = partsOf(prompt).slice(-CONTEXT_PARTS_MAX)
  const counts = yield* Effect.forEach(parts, ({ counted, pictures }) =>
    Effect.map(tokens.count(counted), (texts) => texts + pictures)
  )
  let room = CONTEXT_CHARS_MAX
  const newestFirst = parts.toReversed().map(({ kind, text }) => {
    const shown = cut(text, Math.min(CONTEXT_PART_CHARS_MAX, Math.max(0, room)))
    room -= shown.length
    return { kind, text: shown }
  })
  const { context_window, model, rev } = prompt
  return {
    lane,
    rev,
    model,
    context_window,
    tokens: counts.reduce((sum, count) => sum + count, 0),
    parts: newestFirst.toReversed().map((part, index) => ({ ...part, tokens: counts[index] ?? 0 }))
  } satisfies PromptContext
})
