/**
 * Providers as their clients meet them: where a dialect is spoken, how a client proves itself, what is refused, and how an error reads. The
 * offline model and the doubles of tests share them, so that a request that passes here passes at the real one.
 */
import * as chat from "./chatDialects.ts"
import { isObject, type Keys } from "./jsonKeys.ts"
import { messagesRules } from "./messagesRules.ts"
import { responsesRules } from "./responsesRules.ts"
import type { Asked, Problem, Refusal, Rule, Traits } from "./Rule.ts"

/** A family of requests and answers. */
export type Api = "chat" | "responses" | "messages"

/** A failure with its status, as errors are written from it. */
export interface Failure extends Problem {
  readonly status: number
}

export interface Dialect {
  readonly name: string
  readonly api: Api
  /** The path of a request below the endpoint. */
  readonly path: "/chat/completions" | "/responses" | "/messages"
  /** Bytes of the largest request. */
  readonly body_bytes_max: number
  readonly rules: ReadonlyArray<Rule>
  /** The key that a client sent. */
  keyOf(headers: Asked["headers"]): string | undefined
  /** The body that is sent with a failure. */
  errorBody(failure: Failure): unknown
}

const MIB = 1024 * 1024

const bearer = (headers: Asked["headers"]): string | undefined =>
  /^Bearer (.+)$/u.exec(headers["authorization"] ?? "")?.[1]

/** https://platform.openai.com/docs/guides/error-codes */
const OPENAI_TYPES: Readonly<Record<number, string>> = {
  402: "insufficient_quota",
  429: "rate_limit_error",
  500: "server_error",
  502: "server_error",
  503: "service_unavailable_error"
}
const openaiError = ({ code, message, more, param, status, type }: Failure) => ({
  error: {
    message,
    type: type ?? OPENAI_TYPES[status] ?? "invalid_request_error",
    param: param ?? null,
    code: code ?? null,
    ...more
  }
})

/** https://docs.claude.com/en/api/errors */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "api_error",
  529: "overloaded_error"
}
const anthropicError = ({ message, status, type }: Failure) => ({
  type: "error",
  error: { type: type ?? ANTHROPIC_TYPES[status] ?? "invalid_request_error", message },
  request_id: "req_011CSHoEeqs5C35K2UUqR7Fy"
})

/** https://openrouter.ai/docs/api/reference/errors-and-debugging */
const openrouterError = ({ message, more, status }: Failure) => ({ error: { code: status, message, ...more } })

/** https://cloud.google.com/apis/design/errors; the compatible endpoint wraps it in a list (securo-finance/securo#884). */
const GOOGLE_STATUSES: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE"
}
const googleError = ({ message, status }: Failure) => [
  { error: { code: status, message, status: GOOGLE_STATUSES[status] ?? "INVALID_ARGUMENT" } }
]

/** nearai/ironclaw#1241 */
const mistralError = ({ code, message, status, type }: Failure) => ({
  object: "error",
  message,
  type: type ?? (status === 429 ? "rate_limited" : "invalid_request_error"),
  param: null,
  code: code ?? null,
  raw_status_code: status
})

/** ggml-org/llama.cpp, the README of its server */
const llamaError = ({ message, more, status, type }: Failure) => ({
  error: { code: status, message, type: type ?? (status >= 500 ? "server_error" : "invalid_request_error"), ...more }
})

const OPENAI = {
  api: "chat",
  path: "/chat/completions",
  body_bytes_max: 64 * MIB,
  keyOf: bearer,
  errorBody: openaiError
} as const

const dialectsOf = <Name extends string>(all: Readonly<Record<Name, Omit<Dialect, "name">>>) =>
  Object.fromEntries(
    Object.entries<Omit<Dialect, "name">>(all).map(([name, one]) => [name, { name, ...one }])
  ) as Readonly<Record<Name, Dialect>>

export const DIALECTS = dialectsOf({
  openai: { ...OPENAI, rules: chat.openai },
  responses: { ...OPENAI, api: "responses", path: "/responses", rules: responsesRules },
  anthropic: {
    api: "messages",
    path: "/messages",
    body_bytes_max: 32 * MIB,
    rules: messagesRules,
    keyOf: (headers) => headers["x-api-key"],
    errorBody: anthropicError
  },
  openrouter: { ...OPENAI, rules: chat.openrouter, errorBody: openrouterError },
  kimi: { ...OPENAI, rules: chat.kimi },
  deepseek: { ...OPENAI, rules: chat.deepseek },
  gemini: { ...OPENAI, body_bytes_max: 20 * MIB, rules: chat.gemini, errorBody: googleError },
  "qwen-template": { ...OPENAI, rules: chat.qwenTemplate, errorBody: llamaError },
  mistral: { ...OPENAI, rules: chat.mistral, errorBody: mistralError }
})

export type DialectName = keyof typeof DIALECTS

const refuse = (dialect: Dialect, rule: string, problem: Problem): Refusal => {
  const failure = { ...problem, status: problem.status ?? 400 }
  return {
    rule,
    status: failure.status,
    message: failure.message,
    param: failure.param ?? null,
    code: failure.code ?? null,
    body: dialect.errorBody(failure)
  }
}

/** The checks before the content: where a request goes, who asks, and how much. */
const envelopeRefusal = (
  dialect: Dialect,
  { body, bytes, headers, place }: Asked,
  { key }: Traits
): Refusal | undefined => {
  if (place !== undefined && place !== `POST /v1${dialect.path}`)
    return refuse(dialect, "a request is a POST to the path of the API", {
      status: 404,
      message: `Invalid URL (${place})`
    })
  const sent = dialect.keyOf(headers)
  if (key !== undefined && sent !== key)
    return refuse(dialect, "a request brings the key", {
      status: 401,
      message: dialect.api === "messages" ? "invalid x-api-key" : "Incorrect API key provided.",
      code: "invalid_api_key"
    })
  if (bytes > dialect.body_bytes_max)
    return refuse(dialect, "a request is not too large", {
      status: 413,
      message: "Request exceeds the maximum allowed number of bytes."
    })
  // https://docs.claude.com/en/api/versioning
  if (dialect.api === "messages" && headers["anthropic-version"] === undefined)
    return refuse(dialect, "a request names the version of the API", {
      message: "anthropic-version: header is required"
    })
  return isObject(body)
    ? undefined
    : refuse(dialect, "a request is a JSON object", {
        message: "We could not parse the JSON body of your request: expected an object."
      })
}

/** Why a provider would answer a request with an error; `undefined` when it would ask the model. */
export const refusalOf = (dialect: Dialect, asked: Asked, traits: Traits): Refusal | undefined => {
  const early = envelopeRefusal(dialect, asked, traits)
  if (early !== undefined) return early
  for (const { find, name } of dialect.rules) {
    const problem = find(asked.body as Keys, traits)
    if (problem !== undefined) return refuse(dialect, name, problem)
  }
  return undefined
}

/** A server of chat completions that asks for no key, as the offline model and most doubles are. */
export const bodyRefusal = (body: unknown, traits: Traits): Refusal | undefined =>
  refusalOf(DIALECTS.openai, { headers: {}, bytes: 0, body }, traits)
