/**
 * A codec writes a conversation as one API's request, and reads an answer, which is hostile, whole or streamed. A stream is put
 * together to the whole answer that the same API would have given, so that both are read by the same rules.
 */
import { weakMemoize } from "#src/shared/weakMemoize.ts"
import type { Result, Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import type { Answer } from "./Answer.ts"
import type { Asked } from "./Asked.ts"
import type { Tool } from "./Conversation.ts"

/** A step of an answer that is being written. Thinking has no words here (invariant 6). */
export type Delta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking" }
  | { readonly type: "call"; readonly name: string }

/** Puts a stream together. It is made for one answer. */
export interface Assembler {
  /** Takes the data of one event. */
  take(data: unknown): Result.Result<ReadonlyArray<Delta>, ModelError>
  /** The whole answer; `undefined` as long as its end has not come. `isMarked`: the end mark came, which ends an answer that has words or calls. */
  whole(isMarked: boolean): unknown
  /** The characters that are kept so far, those of reasoning included. */
  chars(): number
}

export interface Codec {
  /** The part behind the endpoint's address. */
  readonly path: string
  headers(
    model: Pick<Model, "endpoint" | "model"> & Partial<Model>,
    key: string | undefined
  ): Readonly<Record<string, string>>
  /** The keys of a request beside its conversation and tools. */
  parameters(asked: Asked): ReadonlyArray<readonly [key: string, value: Schema.Json]>
  /** The request as JSON, in parts behind each other: most were written for earlier requests, and none is copied before it is sent. */
  parts(asked: Asked): ReadonlyArray<string>
  /** The same as one text. */
  body(asked: Asked): string
  read(reply: unknown): Result.Result<Answer, ModelError>
  assembler(): Assembler
}

/** JSON texts as the parts of a list. A conversation has hundreds, so that nothing is made for each. */
export const listed = (texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const parts = ["["]
  for (let index = 0; index < texts.length; index++) {
    if (index > 0) parts.push(",")
    parts.push(texts[index] ?? "")
  }
  parts.push("]")
  return parts
}

/** The parts of a request: its parameters, and the conversation, whose parts are already JSON. */
export const written = (
  parameters: ReadonlyArray<readonly [key: string, value: Schema.Json]>,
  conversation: ReadonlyArray<readonly [key: string, parts: ReadonlyArray<string>]>
): ReadonlyArray<string> => {
  const first = parameters.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")
  const all = [`{${first}`]
  for (const [index, [key, parts]] of conversation.entries()) {
    all.push(`${first === "" && index === 0 ? "" : ","}"${key}":`)
    for (let at = 0; at < parts.length; at++) all.push(parts[at] ?? "")
  }
  all.push("}")
  return all
}

/** The characters of a request. */
export const charsOf = (parts: ReadonlyArray<string>): number => parts.reduce((sum, part) => sum + part.length, 0)

/** A part of a request as it is sent. Most are sent many times, so that each is written once. */
export const jsonOnce = <A extends object>(write: (part: A) => unknown) =>
  weakMemoize((part: A): string => JSON.stringify(write(part)))

/** The tools of a request as they are sent. Most calls of a lane have the same list. */
export const toolsOnce = (write: (tool: Tool) => unknown) =>
  weakMemoize((tools: ReadonlyArray<Tool>): ReadonlyArray<string> => [JSON.stringify(tools.map(write))])
