/**
 * The rules of chat completions. OpenAI's own are the base; a dialect adds its keys, ids and orders (`chatDialects.ts`). Of every dialect is
 * asked what at least one server behind the protocol asks: one system message, first, no empty content, arguments that are JSON objects.
 */
import { sees, urlProblem, weighed } from "./images.ts"
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { parseJson } from "./looseJson.ts"
import { family, firstOf, type Problem, repeatedOf, type Rule, type Traits, unknownKey, words } from "./Rule.ts"
import { schemaRefusal } from "./schemaRules.ts"

/** Differences between servers of chat completions. */
export interface ChatSpec {
  readonly parameters: ReadonlySet<string>
  /** Keys of an assistant's message, of its calls and of parts of a content beside OpenAI's. */
  readonly assistant_keys: ReadonlyArray<string>
  readonly call_keys: ReadonlyArray<string>
  readonly part_keys: ReadonlyArray<string>
  readonly tool_name: RegExp
  readonly tools_max: number
  readonly call_id: RegExp
  /** Words about an id that does not match. */
  readonly idWords: (id: unknown, at: string) => Problem
  /** Words about a system message in mid-conversation, or about its absence. */
  readonly misplaced: (at: string) => Problem
  /** Words about an image for a model that takes none. */
  readonly blind: (at: string) => Problem
  /** Words about a prompt that is too long. */
  readonly overflow: (prompt: number, answer: number, window: number) => Problem
  readonly more: ReadonlyArray<Rule>
}

/** https://platform.openai.com/docs/api-reference/chat/create */
export const OPENAI_PARAMETERS =
  words(`model messages tools tool_choice parallel_tool_calls max_tokens max_completion_tokens temperature
  top_p n stop stream stream_options seed frequency_penalty presence_penalty logit_bias logprobs top_logprobs response_format
  reasoning_effort verbosity user metadata store service_tier prompt_cache_key prompt_cache_retention prompt_cache_options
  safety_identifier modalities audio prediction web_search_options`)

const MESSAGE_KEYS: Readonly<Record<string, ReadonlyArray<string>>> = {
  system: ["role", "content", "name"],
  user: ["role", "content", "name"],
  assistant: ["role", "content", "name", "refusal", "tool_calls"],
  tool: ["role", "content", "tool_call_id"]
}
/** Tokens of a message beside its texts. */
const MESSAGE_TOKENS = 4

const unknown = (at: string): Problem => ({
  message: `Unknown parameter: '${at}'.`,
  param: at,
  code: "unknown_parameter"
})

export const messagesOf = (body: Keys): ReadonlyArray<Keys> => listOf(body["messages"]).filter(isObject)
export const callsOf = (message: Keys): ReadonlyArray<Keys> => listOf(message["tool_calls"]).filter(isObject)

/** The place of the last message that a person wrote, behind which a turn's calls and results stand. */
export const turnStart = (messages: ReadonlyArray<Keys>): number =>
  messages.findLastIndex(({ role }) => role === "user")

const toolsOf = (body: Keys) =>
  listOf(body["tools"]).map((tool, index) => ({
    at: `tools[${index}]`,
    tool: isObject(tool) ? tool : {},
    target: isObject(tool) && tool["type"] === "function" && isObject(tool["function"]) ? tool["function"] : undefined
  }))

const isPart =
  (keys: ReadonlySet<string>) =>
  (part: unknown): boolean => {
    if (!isObject(part) || unknownKey(part, keys) !== undefined) return false
    if (part["type"] === "text") return typeof part["text"] === "string" && part["text"].trim() !== ""
    // https://platform.openai.com/docs/guides/images-vision
    return part["type"] === "image_url" && isObject(part["image_url"]) && typeof part["image_url"]["url"] === "string"
  }

const contentProblem = (keys: ReadonlySet<string>) => (message: Keys, index: number) => {
  const { content, role } = message
  if (role === "assistant" && callsOf(message).length > 0 && (content === null || content === undefined))
    return undefined
  const isContent =
    typeof content === "string"
      ? content.trim() !== ""
      : Array.isArray(content) && content.length > 0 && content.every(isPart(keys))
  const at = `messages[${index}].content`
  return isContent ? undefined : { message: `Invalid value for '${at}': expected a text that is not empty.`, param: at }
}

const callShape = (spec: ChatSpec, call: unknown, at: string): Problem | undefined => {
  const target = isObject(call) && call["type"] === "function" ? call["function"] : undefined
  if (!isObject(call) || !isObject(target))
    return { message: `Invalid value for '${at}': expected a function call.`, param: at }
  const extra =
    unknownKey(call, new Set(["id", "type", "function", ...spec.call_keys])) ??
    unknownKey(target, new Set(["name", "arguments"]))
  if (extra !== undefined) return unknown(`${at}.${extra}`)
  const { name } = target
  return typeof name === "string" && spec.tool_name.test(name) ? undefined : nameProblem(spec, `${at}.function.name`)
}

const nameProblem = ({ tool_name }: ChatSpec, at: string): Problem => ({
  message: `Invalid '${at}': string does not match pattern. Expected a string that matches the pattern '${tool_name.source}'.`,
  param: at,
  code: "invalid_value"
})

const eachCall =
  (check: (call: Keys, at: string) => Problem | undefined) =>
  (body: Keys): Problem | undefined =>
    firstOf(messagesOf(body), (message, index) =>
      firstOf(listOf(message["tool_calls"]), (call, of) =>
        check(isObject(call) ? call : {}, `messages[${index}].tool_calls[${of}]`)
      )
    )

/** Each call is answered once, right behind its message, and nothing is answered that was not called. */
const pairingProblem = (body: Keys): Problem | undefined => {
  const seen = new Set<unknown>()
  let open = new Set<unknown>()
  const unanswered = (index: number): Problem => ({
    message: `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
    param: `messages[${index}].role`
  })
  const messages = messagesOf(body)
  for (const [index, message] of messages.entries()) {
    if (message["role"] === "tool") {
      if (!open.delete(message["tool_call_id"]))
        return {
          message:
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          param: `messages[${index}].role`
        }
      continue
    }
    if (open.size > 0) return unanswered(index)
    const ids = callsOf(message).map(({ id }) => id)
    const repeated = repeatedOf(ids) ?? ids.find((id) => seen.has(id))
    if (repeated !== undefined)
      return { message: `Invalid 'messages[${index}].tool_calls': the id ${JSON.stringify(repeated)} is used twice.` }
    for (const id of ids) seen.add(id)
    open = new Set(ids)
  }
  return open.size === 0 ? undefined : unanswered(messages.length)
}

const refusedParameter = (body: Keys, { refuses }: Traits): Problem | undefined => {
  const { thinksAlways } = family(body["model"])
  const all = [...refuses, ...(thinksAlways ? ["temperature", "top_p", "max_tokens"] : [])]
  const refused = all.find((name) => body[name] !== undefined && !(name !== "max_tokens" && body[name] === 1))
  if (refused === undefined) return undefined
  if (refused === "temperature")
    return {
      message: `Unsupported value: 'temperature' does not support ${JSON.stringify(body["temperature"])} with this model. Only the default (1) value is supported.`,
      param: refused,
      code: "unsupported_value"
    }
  const instead = refused === "max_tokens" ? " Use 'max_completion_tokens' instead." : ""
  return {
    message: `Unsupported parameter: '${refused}' is not supported with this model.${instead}`,
    param: refused,
    code: "unsupported_parameter"
  }
}

const limitProblem = ({ max_completion_tokens, max_tokens }: Keys): Problem | undefined => {
  if (max_tokens !== undefined && max_completion_tokens !== undefined)
    return {
      message: "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      param: "max_tokens"
    }
  const limit = max_completion_tokens ?? max_tokens
  return limit === undefined || (Number.isSafeInteger(limit) && Number(limit) >= 1)
    ? undefined
    : {
        message: "Invalid type for 'max_tokens': expected an integer of at least 1.",
        param: "max_tokens",
        code: "invalid_type"
      }
}

const imagesOf = ({ content }: Keys): ReadonlyArray<Keys> =>
  listOf(content)
    .filter(isObject)
    .filter(({ type }) => type === "image_url")

/** Where images may stand, for which models, and of which kind they are. */
const imageProblem =
  ({ blind }: ChatSpec) =>
  (body: Keys, traits: Traits): Problem | undefined =>
    firstOf(messagesOf(body), (message, index) => {
      const images = imagesOf(message)
      if (images.length === 0) return undefined
      if (message["role"] !== "user")
        return {
          message: `Invalid 'messages[${index}]'. Image URLs are only allowed for messages with role 'user', but this message with role '${String(message["role"])}' contains an image URL.`,
          param: `messages[${index}]`,
          code: "invalid_value"
        }
      if (!sees(body["model"], traits)) return blind(`messages[${index}].content`)
      return firstOf(images, ({ image_url }) =>
        urlProblem(isObject(image_url) ? image_url["url"] : undefined, `messages[${index}].content`)
      )
    })

const textsOf = ({ content, tool_calls }: Keys): ReadonlyArray<string> => [
  ...(typeof content === "string" ? [content] : listOf(content).map((part) => JSON.stringify(part))),
  ...listOf(tool_calls).map((call) => JSON.stringify(call))
]

/** Tokens of texts and of the longest answer, if they are above the window. Counted only where it may matter: no token is less than a byte. */
export const overflowOf = (
  texts: ReadonlyArray<string>,
  parts: number,
  answer: number,
  { context_window, count }: Traits
): { readonly prompt: number } | undefined => {
  const weights = texts.map(weighed)
  const sum = (size: (text: string) => number) =>
    weights.reduce((total, { text, tokens }) => total + size(text) + tokens, parts * MESSAGE_TOKENS)
  if (sum((text) => Buffer.byteLength(text)) + answer <= context_window) return undefined
  const prompt = sum(count)
  return prompt + answer <= context_window ? undefined : { prompt }
}

const lengthProblem =
  ({ overflow }: ChatSpec) =>
  (body: Keys, traits: Traits): Problem | undefined => {
    const answer = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? 0)
    const messages = messagesOf(body)
    const texts = [...messages.flatMap(textsOf), ...listOf(body["tools"]).map((tool) => JSON.stringify(tool))]
    const over = overflowOf(texts, messages.length, answer, traits)
    return over && overflow(over.prompt, answer, traits.context_window)
  }

const parameterRules = (spec: ChatSpec): ReadonlyArray<Rule> => [
  {
    name: "a request names its model",
    find: ({ model }) =>
      typeof model === "string" && model !== "" ? undefined : { message: "you must provide a model parameter" }
  },
  {
    name: "a request has parameters that the provider knows",
    find: (body, { extensions }) => {
      const extra = unknownKey(body, new Set([...spec.parameters, ...extensions]))
      return extra === undefined ? undefined : unknown(extra)
    }
  },
  { name: "a request has parameters that the model takes", find: refusedParameter },
  { name: "an answer has one limit, an integer", find: limitProblem },
  {
    name: "an answer's limit is no more than the model writes",
    find: ({ max_completion_tokens, max_tokens }, { answer_tokens_max = Infinity }) => {
      const limit = Number(max_completion_tokens ?? max_tokens ?? 0)
      return limit <= answer_tokens_max
        ? undefined
        : {
            message: `max_tokens is too large: ${limit}. This model supports at most ${answer_tokens_max} completion tokens, whereas you provided ${limit}.`,
            param: max_completion_tokens === undefined ? "max_tokens" : "max_completion_tokens",
            code: "invalid_value"
          }
    }
  },
  {
    name: "the temperature is a number from 0 to 2",
    find: ({ temperature }) =>
      temperature === undefined || (typeof temperature === "number" && temperature >= 0 && temperature <= 2)
        ? undefined
        : {
            message: "Invalid 'temperature': expected a number from 0 to 2.",
            param: "temperature",
            code: "invalid_type"
          }
  }
]

/** https://platform.openai.com/docs/guides/function-calling */
const toolRules = (spec: ChatSpec): ReadonlyArray<Rule> => [
  {
    name: "tools are a list that is not empty and not too long",
    find: ({ tools }) =>
      tools === undefined || (listOf(tools).length > 0 && listOf(tools).length <= spec.tools_max)
        ? undefined
        : { message: `Invalid 'tools': expected an array of 1 to ${spec.tools_max} tools.`, param: "tools" }
  },
  {
    name: "a tool is a function with known keys",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, target, tool }) => {
        if (target === undefined) return { message: `Invalid value for '${at}': expected a function.`, param: at }
        const extra =
          unknownKey(tool, new Set(["type", "function", ...spec.part_keys.filter((key) => key === "cache_control")])) ??
          unknownKey(target, new Set(["name", "description", "parameters", "strict"]))
        return extra === undefined ? undefined : unknown(`${at}.${extra}`)
      })
  },
  {
    name: "a tool's name has the letters and the length that the provider takes",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, target }) =>
        typeof target?.["name"] === "string" && spec.tool_name.test(target["name"])
          ? undefined
          : nameProblem(spec, `${at}.function.name`)
      )
  },
  {
    name: "a tool has a description",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, target }) =>
        typeof target?.["description"] === "string" && target["description"].trim() !== ""
          ? undefined
          : {
              message: `Invalid '${at}.function.description': expected a text.`,
              param: `${at}.function.description`
            }
      )
  },
  {
    name: "a tool's parameters are the schema of an object",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, target }) => {
        const problem = schemaRefusal(target?.["parameters"])
        return problem === undefined
          ? undefined
          : {
              message: `Invalid schema for function '${String(target?.["name"])}': ${problem}`,
              param: `${at}.function.parameters`,
              code: "invalid_function_parameters"
            }
      })
  },
  {
    name: "tools have different names",
    find: (body) => {
      const twice = repeatedOf(toolsOf(body).map(({ target }) => target?.["name"]))
      return twice === undefined
        ? undefined
        : { message: `Invalid 'tools': the name ${JSON.stringify(twice)} is used twice.`, param: "tools" }
    }
  }
]

const messageRules = (spec: ChatSpec): ReadonlyArray<Rule> => [
  {
    name: "there are messages",
    find: ({ messages }) =>
      listOf(messages).length > 0
        ? undefined
        : { message: "Invalid 'messages': empty array. Expected an array with minimum length 1.", param: "messages" }
  },
  {
    name: "a message has a known role and that role's keys",
    find: ({ messages }) =>
      firstOf(listOf(messages), (message, index) => {
        const at = `messages[${index}]`
        if (!isObject(message))
          return { message: `Invalid type for '${at}': expected an object.`, param: at, code: "invalid_type" }
        const { role } = message
        const keys = typeof role === "string" && Object.hasOwn(MESSAGE_KEYS, role) ? MESSAGE_KEYS[role] : undefined
        if (keys === undefined)
          return { message: `Invalid value for '${at}.role': ${JSON.stringify(role)}.`, param: `${at}.role` }
        const extra = unknownKey(message, new Set([...keys, ...(role === "assistant" ? spec.assistant_keys : [])]))
        return extra === undefined ? undefined : unknown(`${at}.${extra}`)
      })
  },
  // Behind the protocol are templates that refuse anything else (ggml-org/llama.cpp#27367).
  {
    name: "one system message comes first",
    find: (body) =>
      firstOf(messagesOf(body), ({ role }, index) =>
        (role === "system") === (index === 0) ? undefined : spec.misplaced(`messages[${index}].role`)
      )
  },
  {
    name: "a message has content",
    find: (body) => firstOf(messagesOf(body), contentProblem(new Set(["type", "text", "image_url", ...spec.part_keys])))
  },
  { name: "images are a user's, of a known format, and for a model that takes them", find: imageProblem(spec) }
]

const callRules = (spec: ChatSpec): ReadonlyArray<Rule> => [
  {
    name: "calls are a list that is not empty",
    find: (body) =>
      firstOf(messagesOf(body), ({ tool_calls }, index) =>
        tool_calls === undefined || listOf(tool_calls).length > 0
          ? undefined
          : {
              message: `Invalid 'messages[${index}].tool_calls': empty array. Expected an array with minimum length 1.`,
              param: `messages[${index}].tool_calls`
            }
      )
  },
  { name: "a call is a function's, with a legal name", find: eachCall((call, at) => callShape(spec, call, at)) },
  {
    name: "a call's id has the form that the provider takes",
    find: eachCall(({ id }, at) => (typeof id === "string" && spec.call_id.test(id) ? undefined : spec.idWords(id, at)))
  },
  // MoonshotAI/kimi-cli#2165: strict servers parse them.
  {
    name: "a call's arguments are a JSON object",
    find: eachCall((call, at) => {
      const target = call["function"]
      const text = isObject(target) ? target["arguments"] : undefined
      return typeof text === "string" && isObject(parseJson(text))
        ? undefined
        : {
            message: `Invalid '${at}.function.arguments': expected a string that holds a JSON object.`,
            param: `${at}.function.arguments`
          }
    })
  },
  { name: "each call is answered once, right behind it", find: pairingProblem }
]

/** The table of a server's rules, in the order in which they are looked at. */
export const chatRules = (spec: ChatSpec): ReadonlyArray<Rule> => [
  ...parameterRules(spec),
  ...toolRules(spec),
  ...messageRules(spec),
  ...callRules(spec),
  ...spec.more,
  { name: "prompt and answer fit into the model's context", find: lengthProblem(spec) }
]
