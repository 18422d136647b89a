/** The rules of Anthropic's Messages API: https://docs.claude.com/en/api/messages */
import { breakpointRule } from "./chatDialects.ts"
import { overflowOf } from "./chatRules.ts"
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { blocksOf, eachBlock, messagesOf, ofType, say } from "./messagesBlocks.ts"
import { messagesImageRules } from "./messagesImages.ts"
import { family, firstOf, type Problem, repeatedOf, type Rule, unknownKey, words } from "./Rule.ts"
import { schemaRefusal } from "./schemaRules.ts"
import { signatureOf } from "./signatures.ts"

const PARAMETERS =
  words(`model messages max_tokens system tools tool_choice temperature top_p top_k stop_sequences stream metadata
  thinking service_tier cache_control output_config context_management container`)
const BLOCK_KEYS: Readonly<Record<string, ReadonlySet<string>>> = {
  text: words("type text cache_control citations"),
  image: words("type source cache_control"),
  document: words("type source title context citations cache_control"),
  tool_use: words("type id name input cache_control"),
  tool_result: words("type tool_use_id content is_error cache_control"),
  thinking: words("type thinking signature"),
  redacted_thinking: words("type data")
}
const TOOL_KEYS = words("type name description input_schema cache_control strict eager_input_streaming")
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/u
const CALL_ID = /^[a-zA-Z0-9_-]+$/u
const THINKING_TOKENS_MIN = 1024

const isOn = ({ thinking }: Keys): boolean =>
  isObject(thinking) && (thinking["type"] === "enabled" || thinking["type"] === "adaptive")

const PARAMETER_RULES: ReadonlyArray<Rule> = [
  {
    name: "a request names its model",
    find: ({ model }) => (typeof model === "string" && model !== "" ? undefined : say("model: Field required"))
  },
  {
    name: "an answer has a limit",
    find: ({ max_tokens }) =>
      max_tokens === undefined
        ? say("max_tokens: Field required")
        : Number.isSafeInteger(max_tokens) && Number(max_tokens) >= 1
          ? undefined
          : say("max_tokens: Input should be greater than or equal to 1")
  },
  {
    name: "an answer's limit is no more than the model writes",
    find: ({ max_tokens, model }, { answer_tokens_max = Infinity }) =>
      Number(max_tokens) <= answer_tokens_max
        ? undefined
        : say(
            `max_tokens: ${String(max_tokens)} > ${answer_tokens_max}, which is the maximum allowed number of output tokens for ${String(model)}`
          )
  },
  {
    name: "a request has parameters that the provider knows",
    find: (body, { extensions }) => {
      const extra = unknownKey(body, new Set([...PARAMETERS, ...extensions]))
      return extra === undefined ? undefined : say(`${extra}: Extra inputs are not permitted`)
    }
  },
  {
    name: "a request has parameters that the model takes",
    find: (body, { refuses }) => {
      const all = [...refuses, ...(family(body["model"]).adaptive ? ["temperature", "top_p", "top_k"] : [])]
      const refused = all.find((name) => body[name] !== undefined)
      return refused === undefined ? undefined : say(`\`${refused}\` is deprecated for this model.`)
    }
  },
  {
    name: "the temperature is a number from 0 to 1",
    find: ({ temperature }) =>
      temperature === undefined || (typeof temperature === "number" && temperature >= 0 && temperature <= 1)
        ? undefined
        : say("temperature: range: 0..1")
  },
  // https://docs.claude.com/en/docs/build-with-claude/extended-thinking
  {
    name: "a model that thinks has temperature 1",
    find: (body) =>
      isOn(body) && body["temperature"] !== undefined && body["temperature"] !== 1
        ? say("`temperature` may only be set to 1 when thinking is enabled.")
        : undefined
  },
  {
    name: "thinking has a budget below the answer's limit",
    find: ({ max_tokens, thinking }) => {
      if (!isObject(thinking) || thinking["type"] !== "enabled") return undefined
      const budget = Number(thinking["budget_tokens"] ?? 0)
      if (!(budget >= THINKING_TOKENS_MIN))
        return say(`thinking.enabled.budget_tokens: Input should be greater than or equal to ${THINKING_TOKENS_MIN}`)
      return budget < Number(max_tokens)
        ? undefined
        : say("`max_tokens` must be greater than `thinking.budget_tokens`.")
    }
  },
  {
    name: "an effort is one that the model knows",
    find: ({ model, output_config }) => {
      const effort = isObject(output_config) ? output_config["effort"] : undefined
      const known = ["low", "medium", "high", ...(family(model).adaptive ? ["xhigh"] : []), "max"]
      return effort === undefined || known.some((word) => word === effort)
        ? undefined
        : say(`output_config.effort: Input should be ${known.map((word) => `'${word}'`).join(", ")}`)
    }
  },
  // https://docs.claude.com/en/docs/build-with-claude/extended-thinking
  {
    name: "no call is forced where the model thinks",
    find: (body) => {
      const { tool_choice } = body
      return isOn(body) && isObject(tool_choice) && (tool_choice["type"] === "any" || tool_choice["type"] === "tool")
        ? say("Thinking may not be enabled when tool_choice forces tool use.")
        : undefined
    }
  },
  {
    name: "the newest models think adaptively",
    find: ({ model, thinking }) =>
      family(model).adaptive && isObject(thinking) && thinking["type"] === "enabled"
        ? say(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
          )
        : undefined
  }
]

const toolsOf = (body: Keys) =>
  listOf(body["tools"]).map((tool, index) => ({ at: `tools.${index}.custom`, tool: isObject(tool) ? tool : {} }))

const TOOL_RULES: ReadonlyArray<Rule> = [
  {
    name: "a tool has known keys",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) => {
        const extra = unknownKey(tool, TOOL_KEYS)
        return extra === undefined ? undefined : say(`${at}.${extra}: Extra inputs are not permitted`)
      })
  },
  {
    name: "a tool's name has the letters and the length that the provider takes",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) =>
        typeof tool["name"] === "string" && TOOL_NAME.test(tool["name"])
          ? undefined
          : say(`${at}.name: String should match pattern '${TOOL_NAME.source}'`)
      )
  },
  {
    name: "a tool's parameters are the schema of an object",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) => {
        const schema = tool["input_schema"]
        if (!isObject(schema) || schema["type"] === undefined) return say(`${at}.input_schema.type: Field required`)
        if (schema["type"] !== "object") return say(`${at}.input_schema.type: Input should be 'object'`)
        if (["oneOf", "allOf", "anyOf"].some((key) => schema[key] !== undefined))
          return say(`${at}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`)
        return schemaRefusal(schema) === undefined
          ? undefined
          : say(
              `${at}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).`
            )
      })
  },
  {
    name: "tools have different names",
    find: (body) =>
      repeatedOf(toolsOf(body).map(({ tool }) => tool["name"])) === undefined
        ? undefined
        : say("tools: Tool names must be unique.")
  },
  {
    name: "a request with calls or results has tools",
    find: (body) =>
      listOf(body["tools"]).length > 0 ||
      !messagesOf(body).some(
        (message) => ofType(message, "tool_use").length + ofType(message, "tool_result").length > 0
      )
        ? undefined
        : say("Requests which include `tool_use` or `tool_result` blocks must define tools")
  }
]

const isSystem = (system: unknown): boolean =>
  system === undefined ||
  typeof system === "string" ||
  (Array.isArray(system) && system.every((block) => isObject(block) && block["type"] === "text"))

const MESSAGE_RULES: ReadonlyArray<Rule> = [
  {
    name: "there are messages",
    find: ({ messages }) =>
      listOf(messages).length > 0 ? undefined : say("messages: at least one message is required")
  },
  {
    name: "a message has the role user or assistant",
    find: (body) =>
      firstOf(messagesOf(body), ({ role }, index) =>
        role === "user" || role === "assistant"
          ? undefined
          : say(
              role === "system"
                ? 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
                : `messages.${index}.role: Input should be 'user' or 'assistant'`
            )
      )
  },
  {
    name: "the system prompt is text",
    find: ({ system }) => (isSystem(system) ? undefined : say("system: Input should be a valid list"))
  },
  {
    name: "a message has role and content only",
    find: (body) =>
      firstOf(messagesOf(body), (message, index) => {
        const extra = unknownKey(message, words("role content"))
        return extra === undefined ? undefined : say(`messages.${index}.${extra}: Extra inputs are not permitted`)
      })
  },
  {
    name: "the first message is the user's, and roles alternate",
    find: (body) => {
      const messages = messagesOf(body)
      return firstOf(messages, ({ role }, index) =>
        index === 0
          ? role === "user"
            ? undefined
            : say('messages: first message must use the "user" role')
          : role === messages[index - 1]?.["role"]
            ? say(
                `messages: roles must alternate between "user" and "assistant", but found multiple "${String(role)}" roles in a row`
              )
            : undefined
      )
    }
  },
  {
    name: "the conversation ends with the user's message",
    find: (body) =>
      messagesOf(body).at(-1)?.["role"] === "assistant"
        ? say("This model does not support assistant message prefill. The conversation must end with a user message.")
        : undefined
  },
  {
    name: "a message has content",
    find: (body) =>
      firstOf(messagesOf(body), (message, index) =>
        blocksOf(message).length === 0 ? say(`messages.${index}: all messages must have non-empty content`) : undefined
      )
  },
  {
    name: "a block has a known type and that type's keys",
    find: eachBlock((block, at) => {
      const type = String(block["type"])
      const keys = Object.hasOwn(BLOCK_KEYS, type) ? BLOCK_KEYS[type] : undefined
      if (keys === undefined)
        return say(`${at}: Input tag '${type}' found using 'type' does not match any of the expected tags`)
      const extra = unknownKey(block, keys)
      return extra === undefined ? undefined : say(`${at}.${type}.${extra}: Extra inputs are not permitted`)
    })
  },
  {
    name: "a text block has text",
    find: (body) => {
      const check = (block: Keys): Problem | undefined => {
        if (block["type"] !== "text") return undefined
        const text = typeof block["text"] === "string" ? block["text"] : ""
        if (text === "") return say("messages: text content blocks must be non-empty")
        return text.trim() === "" ? say("messages: text content blocks must contain non-whitespace text") : undefined
      }
      return eachBlock(check)(body) ?? firstOf(listOf(body["system"]).filter(isObject), check)
    }
  }
]

/** Results are first in the message behind their calls, each once. */
const pairingProblem = (body: Keys): Problem | undefined => {
  const messages = messagesOf(body)
  return firstOf(messages, (message, index) => {
    const asked = new Set(ofType(messages[index - 1], "tool_use").map(({ id }) => id))
    const results = ofType(message, "tool_result").map(({ tool_use_id }) => tool_use_id)
    const stray = results.find((id) => !asked.has(id))
    if (stray !== undefined)
      return say(
        `messages.${index}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${JSON.stringify(stray)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
      )
    const twice = repeatedOf(results)
    if (twice !== undefined)
      return say(
        `messages.${index}.content.1: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${JSON.stringify(twice)}`
      )
    const first = blocksOf(message).findIndex((block) => block["type"] !== "tool_result")
    const isBehind =
      first >= 0 &&
      blocksOf(message)
        .slice(first)
        .some((block) => block["type"] === "tool_result")
    const open = ofType(message, "tool_use").map(({ id }) => id)
    const next = new Set(ofType(messages[index + 1], "tool_result").map(({ tool_use_id }) => tool_use_id))
    const missing = isBehind ? [...asked] : open.filter((id) => !next.has(id))
    return missing.length === 0
      ? undefined
      : say(
          `messages.${isBehind ? index - 1 : index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
        )
  })
}

const CALL_RULES: ReadonlyArray<Rule> = [
  {
    name: "a call has a legal id and name",
    find: eachBlock((block, at) =>
      block["type"] !== "tool_use"
        ? undefined
        : typeof block["id"] !== "string" || !CALL_ID.test(block["id"])
          ? say(`${at}.tool_use.id: String should match pattern '${CALL_ID.source}'`)
          : typeof block["name"] !== "string" || !TOOL_NAME.test(block["name"])
            ? say(`${at}.tool_use.name: String should match pattern '${TOOL_NAME.source}'`)
            : undefined
    )
  },
  {
    name: "a call's input is an object",
    find: eachBlock((block, at) =>
      block["type"] === "tool_use" && !isObject(block["input"])
        ? say(`${at}.tool_use.input: Input should be a valid dictionary`)
        : undefined
    )
  },
  {
    name: "calls are the assistant's and have different ids",
    find: (body) => {
      const ids = messagesOf(body).flatMap((message) => ofType(message, "tool_use").map(({ id }) => id))
      if (repeatedOf(ids) !== undefined) return say("messages: `tool_use` ids must be unique")
      return messagesOf(body).some((message) => message["role"] === "user" && ofType(message, "tool_use").length > 0)
        ? say("messages: `tool_use` blocks can only be in `assistant` messages")
        : undefined
    }
  },
  // anthropics/claude-code#12526
  { name: "each call is answered once, right behind it", find: pairingProblem }
]

/** Where the present turn begins: behind the last message of the user that is more than results. */
const turnStart = (messages: ReadonlyArray<Keys>): number =>
  messages.findLastIndex((message) => message["role"] === "user" && ofType(message, "tool_result").length === 0)

const THINKING_RULES: ReadonlyArray<Rule> = [
  {
    name: "thinking comes back as it was sent, to the model that it is of",
    find: (body) =>
      eachBlock((block, at) =>
        block["type"] === "thinking" && block["signature"] !== signatureOf(body["model"], String(block["thinking"]))
          ? say(`${at}: Invalid \`signature\` in \`thinking\` block`)
          : undefined
      )(body)
  },
  {
    name: "thinking is the beginning of the assistant's message",
    find: (body) =>
      firstOf(messagesOf(body), (message, index) => {
        const thoughts = blocksOf(message).map(({ type }) => type === "thinking" || type === "redacted_thinking")
        return thoughts.includes(true) && (thoughts[0] !== true || message["role"] !== "assistant")
          ? say(
              `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(blocksOf(message)[0]?.["type"])}\`.`
            )
          : undefined
      })
  },
  {
    // A model that thinks adaptively may have begun a turn without: https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
    name: "calls of the present turn come back with their thinking where thinking has a budget",
    find: (body) => {
      const messages = messagesOf(body)
      const index = messages.findIndex(
        (message, at) => at > turnStart(messages) && ofType(message, "tool_use").length > 0
      )
      const first = messages[index] === undefined ? undefined : blocksOf(messages[index])[0]
      const { thinking } = body
      const isManual = isObject(thinking) && thinking["type"] === "enabled"
      return !isManual || first === undefined || ["thinking", "redacted_thinking"].includes(String(first["type"]))
        ? undefined
        : say(
            `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first["type"])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`
          )
    }
  }
]

/** The table of Anthropic's rules, in the order in which they are looked at. */
export const messagesRules: ReadonlyArray<Rule> = [
  ...PARAMETER_RULES,
  ...TOOL_RULES,
  ...MESSAGE_RULES,
  ...CALL_RULES,
  ...messagesImageRules,
  ...THINKING_RULES,
  breakpointRule,
  {
    name: "prompt and answer fit into the model's context",
    find: (body, traits) => {
      const answer = Number(body["max_tokens"] ?? 0)
      const { messages, system, tools } = body
      const texts = [system, ...listOf(messages), ...listOf(tools)].map((part) => JSON.stringify(part) ?? "")
      const over = overflowOf(texts, listOf(messages).length, answer, traits)
      if (over === undefined) return undefined
      const { context_window } = traits
      return over.prompt > context_window
        ? say(`prompt is too long: ${over.prompt} tokens > ${context_window} maximum`)
        : say(
            `input length and \`max_tokens\` exceed context limit: ${over.prompt} + ${answer} > ${context_window}, decrease input length or \`max_tokens\` and try again`
          )
    }
  }
]
