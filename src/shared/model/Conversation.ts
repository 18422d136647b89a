/**
 * The conversation that a prompt is made of, independent of any API: prompts and memory build it, and one codec for each API writes it.
 * The order is the one that all providers take: one system message, first; each tool's result right behind its call.
 */
import type { Continuation } from "#schema/Continuation.ts"
import type { Picture } from "#schema/Picture.ts"

/** A tool call as the model made it; `arguments` is the text of a JSON object. */
export interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

export interface AssistantMessage {
  readonly role: "assistant"
  /** `null` where the model made calls without a word. */
  readonly content: string | null
  readonly calls?: ReadonlyArray<Call>
  /** The reasoning behind the message, which goes back to the model that wrote it and to no other. */
  readonly continuation?: Continuation
}

/** A message of a person, or a note of Choir. Its text names each of its pictures. */
export interface UserMessage {
  readonly role: "user"
  readonly content: string
  readonly pictures?: ReadonlyArray<Picture>
}

/** A call's result. */
export interface ToolMessage {
  readonly role: "tool"
  readonly call_id: string
  readonly content: string
  readonly pictures?: ReadonlyArray<Picture>
}

export type Message =
  | { readonly role: "system"; readonly content: string }
  | UserMessage
  | AssistantMessage
  | ToolMessage

/** A tool as a model is offered it; `parameters` is a JSON Schema of an object. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly parameters: unknown
}
