/** Requests and answers of codecs, without a socket. */
import { Result, Schema } from "effect"
import { Config, type Model } from "#schema/Config.ts"
import type { ModelApi } from "#schema/Continuation.ts"
import type { ModelError } from "#schema/Event.ts"
import type { Answer } from "#src/shared/model/Answer.ts"
import { CODECS, readStream, readWhole } from "#src/shared/model/codecs.ts"
import { continuationOf } from "#src/shared/model/continuation.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"

const decodeConfig = Schema.decodeUnknownSync(Config)

/** A model as config.json has it, at an endpoint that no table knows. */
export const modelOf = (entry: Readonly<Record<string, unknown>> = {}): Model => {
  const m = { provider: "p", model: "m", endpoint: "http://127.0.0.1:1/v1", ...entry }
  const { m: model } = decodeConfig({ global_repo: { url: "/g" }, models: { m } }).models as { readonly m: Model }
  return model
}

export const TOOL: Tool = {
  name: "choir-exec",
  description: "Run a command",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] }
}

/** The body of a request. */
export const bodyOf = (
  model: Model,
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<Tool> = [],
  cache_key = "session/edge"
): Readonly<Record<string, unknown>> =>
  JSON.parse(CODECS[model.api].body({ model, messages, tools, cache_key })) as Readonly<Record<string, unknown>>

const same = (text: string): string => text

export const wholeOf = (api: ModelApi, body: unknown): Result.Result<Answer, ModelError> =>
  readWhole(CODECS[api], JSON.stringify(body), same)

/** Events as they are sent, those of APIs that name them with their names. */
export const sse = (events: ReadonlyArray<unknown>): string =>
  events
    .map((event) => {
      const { type } = Object(event) as { readonly type?: unknown }
      const name = typeof type === "string" ? `event: ${type}\n` : ""
      return `${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
    })
    .join("")

/** A stream that is read in pieces of so many characters; its answer, and what was heard of it. */
export const streamOf = (api: ModelApi, text: string, pieces = 7) => {
  const reading = readStream(CODECS[api], same)
  const heard: Array<unknown> = []
  for (let at = 0; at < text.length && !reading.isDone(); at += pieces) {
    const taken = reading.feed(text.slice(at, at + pieces))
    if (Result.isFailure(taken)) return { answer: Result.fail(taken.failure), heard }
    heard.push(...taken.success)
  }
  return { answer: reading.answer(), heard }
}

/** A step of a lane as its next request shows it: the answer, and a result for each of its calls. */
export const stepOf = (
  model: Model,
  answer: Answer,
  ids: ReadonlyArray<string> = ["c-1-0", "c-1-1"]
): ReadonlyArray<Message> => {
  const continuation = continuationOf(model, answer.reasoning)
  const calls = answer.tool_calls.map(({ input, name }, index) => ({
    id: ids[index] ?? `c-${index}`,
    name,
    // As prompts replay them: what is no object is shown in the result instead.
    arguments: typeof input === "object" && input !== null && !Array.isArray(input) ? JSON.stringify(input) : "{}"
  }))
  return [
    {
      role: "assistant",
      content: answer.content === "" ? null : answer.content,
      calls,
      ...(continuation === undefined ? {} : { continuation })
    },
    ...calls.map(({ id }): Message => ({ role: "tool", call_id: id, content: `result of ${id}` }))
  ]
}
