/** The shares of a prompt's kinds of parts, in the order of the prompt. */
import type { ContextPart, PromptContext } from "#schema/PromptContext.ts"

export interface ContextShare {
  readonly name: string
  readonly parts: number
  readonly tokens: number
}

const NAMES: Readonly<Record<ContextPart["kind"], string>> = {
  tools: "tools",
  instructions: "instructions",
  user: "the user's messages",
  note: "notes of Choir",
  assistant: "the model's words and calls",
  result: "results of tools"
}

export const contextShares = ({ parts }: PromptContext): ReadonlyArray<ContextShare> =>
  Object.entries(NAMES).flatMap(([kind, name]) => {
    const own = parts.filter((part) => part.kind === kind)
    return own.length === 0
      ? []
      : [{ name, parts: own.length, tokens: own.reduce((sum, { tokens }) => sum + tokens, 0) }]
  })

/** One line: the lane, its model, and how full the model's context is. */
export const contextLine = ({ context_window, lane, model, rev, tokens }: PromptContext): string => {
  const share = context_window === 0 ? "" : ` of ${context_window} (${Math.round((100 * tokens) / context_window)} %)`
  return `${lane}, ${model}: ${tokens}${share} tokens at revision ${rev}`
}
