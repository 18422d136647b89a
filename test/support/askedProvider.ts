/** Requests to a provider's double in each dialect, and what comes back. */
import { assert } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { type DialectName, DIALECTS } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { MODEL_NAMES } from "./modelNames.ts"
import type { Answer } from "./providers/Answer.ts"
import type * as double from "./testing/Provider.ts"

const PARAMETERS = { type: "object", properties: {}, required: [], additionalProperties: false }
const SYSTEM = "You are an agent."

/** The shortest request of a dialect with a tool. */
export const ask = (dialect: DialectName, text = "Look.", more: Keys = {}): Keys => {
  const model = MODEL_NAMES[dialect]
  const tool = { name: "look", description: "Looks" }
  switch (DIALECTS[dialect].api) {
    case "messages":
      return {
        model,
        max_tokens: 4000,
        system: SYSTEM,
        thinking: { type: "enabled", budget_tokens: 2000 },
        tools: [{ ...tool, input_schema: PARAMETERS }],
        messages: [{ role: "user", content: text }],
        ...more
      }
    case "responses":
      return {
        model,
        store: false,
        include: ["reasoning.encrypted_content"],
        instructions: SYSTEM,
        tools: [{ type: "function", ...tool, parameters: PARAMETERS }],
        input: [{ role: "user", content: text }],
        ...more
      }
    case "chat":
      return {
        model,
        tools: [{ type: "function", function: { ...tool, parameters: PARAMETERS } }],
        messages: [
          { role: "system", content: SYSTEM },
          { role: "user", content: text }
        ],
        ...more
      }
  }
}

export const post = Effect.fnUntraced(function* (provider: double.Provider, dialect: DialectName, body: Keys) {
  const client = yield* HttpClient.HttpClient
  return yield* client.execute(
    HttpClientRequest.post(`${provider.endpoint}${DIALECTS[dialect].path}`).pipe(
      HttpClientRequest.setHeaders({ "anthropic-version": "2023-06-01" }),
      HttpClientRequest.bodyJsonUnsafe(body)
    )
  )
})

export const wholeOf = Effect.fnUntraced(function* (
  provider: double.Provider,
  dialect: DialectName,
  body = ask(dialect)
) {
  return (yield* (yield* post(provider, dialect, body)).json) as Keys
})

export const textOf = Effect.fnUntraced(function* (
  provider: double.Provider,
  dialect: DialectName,
  body = ask(dialect)
) {
  const response = yield* post(provider, dialect, { ...body, stream: true })
  assert.include(response.headers["content-type"], "text/event-stream")
  return yield* response.stream.pipe(Stream.decodeText(), Stream.mkString)
})

/** The JSON of each event of a stream. */
export const eventsIn = (text: string): ReadonlyArray<Keys> =>
  [...text.matchAll(/^data: (\{.*\})$/gmu)].map(([, json = ""]) => parseJson(json) as Keys)

/** A value inside JSON, by its keys. */
export const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Readonly<Record<string | number, unknown>> | undefined)?.[key], value)

export const joined = (events: ReadonlyArray<Keys>, ...path: ReadonlyArray<string | number>): string =>
  events
    .map((event) => at(event, ...path))
    .filter((piece) => typeof piece === "string")
    .join("")

export const ANSWER: Answer = {
  reasoning: "I should look at both of them first.",
  text: "I look around here.",
  calls: [
    { name: "look", input: { at: "a place with a long name" } },
    { name: "look", input: {} }
  ],
  usage: { input: 2000, cached: 1536, written: 100, output: 60, reasoning: 20 }
}
