/** The request for a summary when a session ends, and the part of the model's answer that counts. */
import { Effect, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { type Summary, SUMMARY_LIMITS } from "#schema/Summary.ts"
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import type { ReferenceSummary } from "#src/shared/session/State.ts"
import { answerTool } from "#src/agent/model/llmView.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { type Folding, foldingLine } from "./compaction.ts"
import { SUMMARY_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"

const Answer = Schema.Struct({
  title: Schema.NonEmptyString.annotate({ description: "A few words" }),
  summary: Schema.NonEmptyString.annotate({ description: "What was asked, done and how it ended" }),
  decisions: Schema.Array(Schema.String).annotate({ description: "What was decided, and why" }),
  open_points: Schema.Array(Schema.String).annotate({ description: "What was asked for or promised and is not done" }),
  facts: Schema.Array(Schema.String).annotate({ description: "What is worth knowing later" })
})
const ANSWER = answerTool("choir.session.summary", "Give the summary of the session.", Answer)

/** The one tool of a summary. */
export const summaryTool = ANSWER.tool

/** Edge's reference summary and, of its window, the newest events that fit the tokens that the model has room for. */
export const summaryPrompt = Effect.fnUntraced(function* (
  reference: ReferenceSummary,
  window: ReadonlyArray<Folding>,
  room: number
) {
  const tokens = yield* TokenCount
  const messages = (lines: ReadonlyArray<string>): ReadonlyArray<Message> => [
    { role: "system", content: SUMMARY_INSTRUCTIONS },
    {
      role: "user",
      content: `Reference summary of what came before:\n${JSON.stringify(reference)}\n\nEvents, oldest first:\n${lines.join("\n")}`
    }
  ]
  const lines = window.map(foldingLine)
  const whole = messages(lines)
  if (tokens.certainlyBelow(whole, room)) return whole
  let left = room - (yield* tokens.count(messages([])))
  const sizes = yield* Effect.forEach(lines, (line) => tokens.count([line, "\n"]))
  const from = sizes.findLastIndex((size) => {
    left -= size
    return left < 0
  })
  return messages(lines.slice(from + 1))
})

const cut = (text: string, chars: number): string => text.slice(0, chars).toWellFormed()
const cutList = (entries: ReadonlyArray<string>): ReadonlyArray<string> =>
  entries.slice(0, SUMMARY_LIMITS.entries).map((entry) => cut(entry, SUMMARY_LIMITS.entry_chars))

/** The summary that an event holds, cut to its limits; nothing when it is not a summary, or not one that can be read. */
export const summaryOf = (event: ChoirEvent | undefined): Summary | undefined => {
  if (event?.event_type !== "ModelOutput" || event.payload.purpose !== "summary") return undefined
  const [answer] = ANSWER.answers(event.payload.tool_calls)
  if (answer === undefined) return undefined
  const { decisions, facts, open_points, summary, title } = answer
  return storableJson({
    title: cut(title, SUMMARY_LIMITS.title_chars),
    summary: cut(summary, SUMMARY_LIMITS.text_chars),
    decisions: cutList(decisions),
    open_points: cutList(open_points),
    facts: cutList(facts)
  })
}
