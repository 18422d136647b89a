/** The shares of a prompt's kinds of parts, in the order of the prompt. */
import { localMinute } from "#src/shared/text/localTime.ts"
import type { ContextPart, PromptContext } from "#schema/PromptContext.ts"
import { originsOf, sourceWords } from "./sourceWords.ts"
import { counted } from "#src/shared/text/counts.ts"

export interface ContextShare {
  readonly name: string
  readonly parts: number
  readonly tokens: number
}

const NAMES: Readonly<Record<ContextPart["kind"], string>> = {
  tools: "tools",
  instructions: "instructions",
  user: "the user's messages",
  note: "notes from Choir",
  assistant: "the model's messages and calls",
  result: "tool results"
}

export const contextShares = ({ parts }: PromptContext): ReadonlyArray<ContextShare> =>
  Object.entries(NAMES).flatMap(([kind, name]) => {
    const own = parts.filter((part) => part.kind === kind)
    return own.length === 0
      ? []
      : [{ name, parts: own.length, tokens: own.reduce((sum, { tokens }) => sum + tokens, 0) }]
  })

/** How full the model's context is. */
export const contextSize = ({ context_window, tokens }: PromptContext): string =>
  context_window === 0
    ? `${counted(tokens)} tokens`
    : `${counted(tokens)} of ${counted(context_window)} tokens (${Math.round((100 * tokens) / context_window)} %)`

/** Where the text from outside in a prompt came from, and until when it stays; empty where there is none. */
export const contextLabel = ({ label }: PromptContext, zone?: string): ReadonlyArray<string> =>
  label === undefined
    ? []
    : [
        `Text from outside is in it, from ${originsOf(label.sources).map(sourceWords).join(", ") || "unknown places"}. It leaves at ${localMinute(label.until, zone)} if no more of it comes.`
      ]

/** One line: the lane, its model, and how full the model's context is. */
export const contextLine = (context: PromptContext): string =>
  `${context.lane}, ${context.model}: ${contextSize(context)} at revision ${context.rev}`
