/**
 * The conversation that a prompt is made of, independent of any API: prompts and memory build it, and one codec for each API writes it.
 * The order is the one that all providers take: one system message, first; each tool's result right behind its call.
 */
import type { Continuation } from "#schema/Continuation.ts"

/** A tool call as the model made it; `arguments` is the text of a JSON object. */
export interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export type Message =
  | { readonly role: "system" | "user"; readonly content: string }
  | {
      readonly role: "assistant"
      /** `null` where the model made calls without a word. */
      readonly content: string | null
      readonly calls?: ReadonlyArray<Call>
      /** The reasoning behind the message, which goes back to the model that wrote it and to no other. */
      readonly continuation?: Continuation
    }
  | { readonly role: "tool"; readonly call_id: string; readonly content: string }

/** A tool as a model is offered it; `parameters` is a JSON Schema of an object. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly parameters: unknown
}

/** The texts of messages that take tokens, in pieces that stay the same from prompt to prompt. */
export const textsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap((message) => [
    message.content ?? "",
    ...(message.role === "assistant" ? (message.calls ?? []).map((call) => call.arguments) : [])
  ])

const written = new WeakMap<Message | Tool, string>()

/** A message or a tool as JSON, for its size. Most are measured many times, so that each is written once. */
export const jsonOf = (part: Message | Tool): string => {
  const before = written.get(part)
  if (before !== undefined) return before
  const json = JSON.stringify(part)
  written.set(part, json)
  return json
}
