/**
 * The checks of a chat completions request that providers make before a model sees it, as a pure function. The offline model and the doubles
 * of tests share them, so that a request that passes here passes at OpenAI, and at the stricter templates that other servers put behind the
 * same protocol: one system message, first, and no empty content.
 */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { parseJson } from "./looseJson.ts"
import { schemaRefusal } from "./schemaRules.ts"

/** A refusal as the protocol words it: the `error` of a 400 without its type. */
export interface Refusal {
  readonly message: string
  readonly param: string | null
  readonly code: string | null
}

/** Differences between models. */
export interface Dialect {
  /** Tokens of the prompt and the longest answer together. */
  readonly context_window: number
  /** Parameters that the model's family refuses: `temperature` other than 1, and others altogether. */
  readonly refuses: ReadonlyArray<string>
  /** Parameters that only this provider knows. */
  readonly extensions: ReadonlyArray<string>
  /** Tokens of a text. */
  count(text: string): number
}

const PARAMETERS = new Set(
  `model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens temperature top_p n stop stream stream_options seed
  frequency_penalty presence_penalty logit_bias logprobs top_logprobs response_format reasoning_effort verbosity user metadata store
  service_tier prompt_cache_key prompt_cache_retention safety_identifier modalities audio prediction web_search_options`.split(
    /\s+/u
  )
)
const MESSAGE_KEYS: Readonly<Record<string, ReadonlySet<string>>> = {
  system: new Set(["role", "content", "name"]),
  user: new Set(["role", "content", "name"]),
  assistant: new Set(["role", "content", "name", "refusal", "tool_calls"]),
  tool: new Set(["role", "content", "tool_call_id"])
}
const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/u
const TOOLS_MAX = 128
const CALL_ID_CHARS_MAX = 40
/** Tokens of a message beside its texts. */
const MESSAGE_TOKENS = 4

const refuse = (message: string, param: string | null = null, code: string | null = null): Refusal => ({
  message,
  param,
  code
})

const unknownKey = (value: Keys, known: ReadonlySet<string>): string | undefined =>
  Object.keys(value).find((key) => !known.has(key))

/** The first refusal of a list of checks. */
const firstOf = <A>(
  values: ReadonlyArray<A>,
  check: (value: A, index: number) => Refusal | undefined
): Refusal | undefined => {
  for (const [index, value] of values.entries()) {
    const refusal = check(value, index)
    if (refusal !== undefined) return refusal
  }
  return undefined
}

const isPart = (part: unknown): boolean =>
  isObject(part) && part["type"] === "text" && typeof part["text"] === "string" && part["text"].trim() !== ""

const isContent = (content: unknown): boolean =>
  typeof content === "string"
    ? content.trim() !== ""
    : Array.isArray(content) && content.length > 0 && content.every(isPart)

const callRefusal = (call: unknown, at: string): Refusal | undefined => {
  const target = isObject(call) && call["type"] === "function" ? call["function"] : undefined
  if (!isObject(call) || !isObject(target)) return refuse(`Invalid value for '${at}': expected a function call.`, at)
  const extra =
    unknownKey(call, new Set(["id", "type", "function"])) ?? unknownKey(target, new Set(["name", "arguments"]))
  if (extra !== undefined) return refuse(`Unknown parameter: '${at}.${extra}'.`, `${at}.${extra}`, "unknown_parameter")
  const { arguments: text, name } = target
  const { id } = call
  if (typeof id !== "string" || id === "" || id.length > CALL_ID_CHARS_MAX)
    return refuse(`Invalid '${at}.id': expected a string of 1 to ${CALL_ID_CHARS_MAX} characters.`, `${at}.id`)
  if (typeof name !== "string" || !FUNCTION_NAME.test(name))
    return refuse(`Invalid '${at}.function.name': it does not match '^[a-zA-Z0-9_-]{1,64}$'.`, `${at}.function.name`)
  return typeof text === "string" && isObject(parseJson(text))
    ? undefined
    : refuse(
        `Invalid '${at}.function.arguments': expected a string that holds a JSON object.`,
        `${at}.function.arguments`
      )
}

const messageRefusal = (message: unknown, index: number): Refusal | undefined => {
  const at = `messages[${index}]`
  if (!isObject(message)) return refuse(`Invalid type for '${at}': expected an object.`, at, "invalid_type")
  const { content, role, tool_calls } = message
  const keys = typeof role === "string" && Object.hasOwn(MESSAGE_KEYS, role) ? MESSAGE_KEYS[role] : undefined
  if (keys === undefined) return refuse(`Invalid value for '${at}.role': ${JSON.stringify(role)}.`, `${at}.role`)
  const extra = unknownKey(message, keys)
  if (extra !== undefined) return refuse(`Unknown parameter: '${at}.${extra}'.`, `${at}.${extra}`, "unknown_parameter")
  if ((role === "system") !== (index === 0))
    return refuse("Expected exactly one system message, at the beginning of 'messages'.", `${at}.role`)
  const calls = listOf(tool_calls)
  if (tool_calls !== undefined && calls.length === 0)
    return refuse(
      `Invalid '${at}.tool_calls': empty array. Expected an array with minimum length 1.`,
      `${at}.tool_calls`
    )
  const mayBeNull = role === "assistant" && calls.length > 0
  if (!isContent(content) && !(mayBeNull && (content === null || content === undefined)))
    return refuse(`Invalid value for '${at}.content': expected a text that is not empty.`, `${at}.content`)
  return firstOf(calls, (call, of) => callRefusal(call, `${at}.tool_calls[${of}]`))
}

/** Each call is answered once, right behind its message, and nothing is answered that was not called. */
const pairingRefusal = (messages: ReadonlyArray<Keys>): Refusal | undefined => {
  const seen = new Set<unknown>()
  let open = new Set<unknown>()
  const unanswered = (index: number) =>
    refuse(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
      `messages[${index}].role`
    )
  for (const [index, { role, tool_call_id, tool_calls }] of messages.entries()) {
    if (role === "tool") {
      if (!open.delete(tool_call_id))
        return refuse(
          "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls', each once.",
          `messages[${index}].role`
        )
      continue
    }
    if (open.size > 0) return unanswered(index)
    const ids = listOf(tool_calls).flatMap((call) => (isObject(call) ? [call["id"]] : []))
    const repeated = ids.find((id, at) => seen.has(id) || ids.indexOf(id) !== at)
    if (repeated !== undefined)
      return refuse(`Invalid 'messages[${index}].tool_calls': the id ${JSON.stringify(repeated)} is used twice.`)
    for (const id of ids) seen.add(id)
    open = new Set(ids)
  }
  return open.size === 0 ? undefined : unanswered(messages.length)
}

const toolRefusal = (tool: unknown, index: number): Refusal | undefined => {
  const at = `tools[${index}]`
  const target = isObject(tool) && tool["type"] === "function" ? tool["function"] : undefined
  if (!isObject(tool) || !isObject(target)) return refuse(`Invalid value for '${at}': expected a function.`, at)
  const extra =
    unknownKey(tool, new Set(["type", "function"])) ??
    unknownKey(target, new Set(["name", "description", "parameters", "strict"]))
  if (extra !== undefined) return refuse(`Unknown parameter: '${at}.${extra}'.`, `${at}.${extra}`, "unknown_parameter")
  const { description, name, parameters } = target
  if (typeof name !== "string" || !FUNCTION_NAME.test(name))
    return refuse(`Invalid '${at}.function.name': it does not match '^[a-zA-Z0-9_-]{1,64}$'.`, `${at}.function.name`)
  if (typeof description !== "string" || description.trim() === "")
    return refuse(`Invalid '${at}.function.description': expected a text.`, `${at}.function.description`)
  const problem = schemaRefusal(parameters)
  return problem === undefined
    ? undefined
    : refuse(
        `Invalid schema for function '${name}': ${problem}`,
        `${at}.function.parameters`,
        "invalid_function_parameters"
      )
}

const toolsRefusal = (tools: unknown): Refusal | undefined => {
  if (tools === undefined) return undefined
  const list = listOf(tools)
  if (list.length === 0 || list.length > TOOLS_MAX)
    return refuse(`Invalid 'tools': expected an array of 1 to ${TOOLS_MAX} tools.`, "tools")
  const refusal = firstOf(list, toolRefusal)
  if (refusal !== undefined) return refusal
  const names = list.map((tool) =>
    isObject(tool) && isObject(tool["function"]) ? tool["function"]["name"] : undefined
  )
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  return twice === undefined
    ? undefined
    : refuse(`Invalid 'tools': the name ${JSON.stringify(twice)} is used twice.`, "tools")
}

const parameterRefusal = (body: Keys, { extensions, refuses }: Dialect): Refusal | undefined => {
  const extra = unknownKey(body, new Set([...PARAMETERS, ...extensions]))
  if (extra !== undefined) return refuse(`Unknown parameter: '${extra}'.`, extra, "unknown_parameter")
  const refused = refuses.find((name) => body[name] !== undefined && !(name === "temperature" && body[name] === 1))
  if (refused === "temperature")
    return refuse(
      `Unsupported value: 'temperature' does not support ${JSON.stringify(body["temperature"])} with this model. Only the default (1) value is supported.`,
      refused,
      "unsupported_value"
    )
  if (refused !== undefined) {
    const instead = refused === "max_tokens" ? " Use 'max_completion_tokens' instead." : ""
    return refuse(
      `Unsupported parameter: '${refused}' is not supported with this model.${instead}`,
      refused,
      "unsupported_parameter"
    )
  }
  const { max_completion_tokens, max_tokens, model, temperature } = body
  if (typeof model !== "string" || model === "") return refuse("you must provide a model parameter")
  if (max_tokens !== undefined && max_completion_tokens !== undefined)
    return refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens")
  const limit = max_completion_tokens ?? max_tokens
  if (limit !== undefined && !(Number.isSafeInteger(limit) && Number(limit) >= 1))
    return refuse("Invalid type for 'max_tokens': expected an integer of at least 1.", "max_tokens", "invalid_type")
  return temperature === undefined || (typeof temperature === "number" && temperature >= 0 && temperature <= 2)
    ? undefined
    : refuse("Invalid 'temperature': expected a number from 0 to 2.", "temperature", "invalid_type")
}

const textsOf = ({ content, tool_calls }: Keys): ReadonlyArray<string> => [
  ...(typeof content === "string" ? [content] : listOf(content).map((part) => JSON.stringify(part))),
  ...listOf(tool_calls).map((call) => JSON.stringify(call))
]

/** Counted only where it may matter: no token is less than a byte. */
const lengthRefusal = (body: Keys, messages: ReadonlyArray<Keys>, { context_window, count }: Dialect) => {
  const answer = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? 0)
  const texts = [...messages.flatMap(textsOf), ...listOf(body["tools"]).map((tool) => JSON.stringify(tool))]
  const sum = (size: (text: string) => number) =>
    texts.reduce((total, text) => total + size(text), messages.length * MESSAGE_TOKENS)
  if (sum((text) => Buffer.byteLength(text)) + answer <= context_window) return undefined
  const prompt = sum(count)
  return prompt + answer <= context_window
    ? undefined
    : refuse(
        `This model's maximum context length is ${context_window} tokens. However, you requested ${prompt + answer} tokens (${prompt} in the messages and functions, ${answer} in the completion). Please reduce the length of the messages or completion.`,
        "messages",
        "context_length_exceeded"
      )
}

/** Why a provider would answer 400 to a request; `undefined` when it would ask the model. */
export const refusalOf = (body: unknown, dialect: Dialect): Refusal | undefined => {
  if (!isObject(body)) return refuse("We could not parse the JSON body of your request: expected an object.")
  const messages = listOf(body["messages"])
  if (messages.length === 0)
    return refuse("Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages")
  return (
    parameterRefusal(body, dialect) ??
    toolsRefusal(body["tools"]) ??
    firstOf(messages, messageRefusal) ??
    pairingRefusal(messages.filter(isObject)) ??
    lengthRefusal(body, messages.filter(isObject), dialect)
  )
}
