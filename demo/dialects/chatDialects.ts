/** The servers of chat completions: what each adds to OpenAI's rules, or asks instead. */
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { callsOf, chatRules, type ChatSpec, messagesOf, OPENAI_PARAMETERS, turnStart } from "./chatRules.ts"
import { family, firstOf, type Problem, type Rule, words } from "./Rule.ts"
import { NO_SIGNATURE, signatureOf, signedCall } from "./signatures.ts"

const with_ = (known: ReadonlySet<string>, more: string): ReadonlySet<string> => new Set([...known, ...words(more)])
const without = (known: ReadonlySet<string>, less: string): ReadonlySet<string> => {
  const gone = words(less)
  return new Set([...known].filter((key) => !gone.has(key)))
}

/** OpenAI answers so for a tool beside an effort, and from GPT-5.6 on where none is given: openai/openai-openapi#541, BerriAI/litellm#34569. */
const effortRule: Rule = {
  name: "a request asks for no effort of reasoning beside tools from GPT-5.4 on",
  find: ({ model, reasoning_effort, tools }) => {
    const { refusesEffort, thinksByDefault } = family(model)
    const isAsked = reasoning_effort === undefined ? thinksByDefault : reasoning_effort !== "none"
    return refusesEffort && isAsked && listOf(tools).length > 0
      ? {
          message: `Function tools with reasoning_effort are not supported for ${String(model)} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
          param: "reasoning_effort"
        }
      : undefined
  }
}

/** https://platform.openai.com/docs/api-reference/chat/create */
const OPENAI: ChatSpec = {
  parameters: OPENAI_PARAMETERS,
  assistant_keys: [],
  call_keys: [],
  part_keys: [],
  tool_name: /^[a-zA-Z0-9_-]{1,64}$/u,
  tools_max: 128,
  call_id: /^.{1,40}$/u,
  idWords: (_, at) => ({
    message: `Invalid '${at}.id': string too long. Expected a string with maximum length 40.`,
    param: `${at}.id`,
    code: "string_above_max_length"
  }),
  misplaced: (at) => ({ message: "Expected exactly one system message, at the beginning of 'messages'.", param: at }),
  blind: (at) => ({
    message: "Invalid content type. image_url is only supported by certain models.",
    param: at,
    code: "invalid_content_type"
  }),
  overflow: (prompt, answer, window) => ({
    message: `This model's maximum context length is ${window} tokens. However, you requested ${prompt + answer} tokens (${prompt} in the messages and functions, ${answer} in the completion). Please reduce the length of the messages or completion.`,
    param: "messages",
    code: "context_length_exceeded"
  }),
  more: []
}
export const openai = chatRules({ ...OPENAI, more: [effortRule] })

/** Breakpoints that Anthropic takes, through OpenRouter as well: https://docs.claude.com/en/docs/build-with-claude/prompt-caching */
const BREAKPOINTS_MAX = 4

const breakpoints = (value: unknown): number =>
  Array.isArray(value)
    ? value.reduce<number>((sum, one) => sum + breakpoints(one), 0)
    : isObject(value)
      ? (value["cache_control"] === undefined ? 0 : 1) +
        Object.entries(value).reduce((sum, [key, one]) => sum + (key === "cache_control" ? 0 : breakpoints(one)), 0)
      : 0

/** A prompt has at most four places up to which it is cached. */
export const breakpointRule: Rule = {
  name: "a request has at most four breakpoints of the cache",
  find: (body) => {
    const count = breakpoints([body["tools"], body["system"], body["messages"]])
    return count <= BREAKPOINTS_MAX
      ? undefined
      : { message: `A maximum of ${BREAKPOINTS_MAX} blocks with cache_control may be provided. Found ${count}.` }
  }
}

/** A message's part of reasoning as it was sent, or why it is not. */
const detailProblem = (detail: unknown, model: unknown, at: string): Problem | undefined => {
  const { data, signature, text, type } = isObject(detail) ? detail : {}
  if (type === "reasoning.summary") return undefined
  const signed =
    type === "reasoning.text"
      ? signature === signatureOf(model, String(text))
      : type === "reasoning.encrypted" && typeof data === "string" && data !== ""
  return signed ? undefined : { message: `${at}: Invalid \`signature\` in \`thinking\` block` }
}

/** https://openrouter.ai/docs/api/reference/overview, https://openrouter.ai/docs/guides/best-practices/reasoning-tokens */
export const openrouter = chatRules({
  ...OPENAI,
  parameters: with_(
    OPENAI_PARAMETERS,
    "provider models route transforms reasoning include_reasoning usage plugins cache_control top_k min_p top_a repetition_penalty structured_outputs session_id trace"
  ),
  assistant_keys: ["reasoning", "reasoning_details"],
  part_keys: ["cache_control"],
  // NousResearch/hermes-agent#23411
  blind: () => ({ message: "No endpoints found that support image input", status: 404 }),
  overflow: (prompt, answer, window) => ({
    message: `This endpoint's maximum context length is ${window} tokens. However, you requested about ${prompt + answer} tokens (${prompt} of text input, ${answer} in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.`
  }),
  more: [
    breakpointRule,
    {
      name: "reasoning comes back as it was sent, to the model that it is of",
      find: (body) =>
        firstOf(messagesOf(body), ({ reasoning_details }, index) =>
          firstOf(listOf(reasoning_details), (detail, of) =>
            detailProblem(detail, body["model"], `messages.${index}.content.${of}`)
          )
        )
    },
    // RooCodeInc/Roo-Code#9506: Gemini behind OpenRouter; Anthropic's rule holds behind it likewise.
    {
      name: "calls of the present turn come back with their reasoning where reasoning is on",
      find: (body) => {
        const { adapts, claude, gemini3 } = family(body["model"])
        const { effort, enabled, max_tokens } = isObject(body["reasoning"]) ? body["reasoning"] : {}
        const isAsked = enabled === true || (effort !== undefined && effort !== "none") || max_tokens !== undefined
        const isOn = gemini3 || (claude && isAsked && (!adapts || max_tokens !== undefined))
        if (!isOn) return undefined
        const messages = messagesOf(body)
        const index = messages.findIndex((message, at) => at > turnStart(messages) && callsOf(message).length > 0)
        const first = messages[index]
        if (first === undefined || listOf(first["reasoning_details"]).length > 0) return undefined
        return {
          message: gemini3
            ? "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
            : `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`tool_use\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`
        }
      }
    }
  ]
})

const isThinking = ({ thinking }: Keys): boolean => !(isObject(thinking) && thinking["type"] === "disabled")

const reasoningRule = (name: string, problemAt: (index: number) => Problem): Rule => ({
  name,
  find: (body) =>
    isThinking(body)
      ? firstOf(messagesOf(body), (message, index) =>
          callsOf(message).length === 0 ||
          (typeof message["reasoning_content"] === "string" && message["reasoning_content"] !== "")
            ? undefined
            : problemAt(index)
        )
      : undefined
})

/** https://platform.moonshot.ai/docs/api/chat, https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model */
export const kimi = chatRules({
  ...OPENAI,
  parameters: with_(without(OPENAI_PARAMETERS, "reasoning_effort store verbosity"), "thinking"),
  assistant_keys: ["reasoning_content", "partial"],
  tool_name: /^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$/u,
  overflow: (prompt, answer, window) => ({
    message: `Invalid request: Your request exceeded model token limit: ${window} (requested: ${prompt + answer})`
  }),
  more: [
    {
      name: "the temperature of a model that thinks is 1",
      find: ({ model, temperature }) =>
        family(model).kimiThinks && temperature !== undefined && temperature !== 1
          ? { message: "invalid temperature: only 1 is allowed for this model" }
          : undefined
    },
    // bytedance/deer-flow#3043, agentscope-ai/QwenPaw#433
    reasoningRule("calls come back with their reasoning_content", (index) => ({
      message: `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${index}`
    }))
  ]
})

/** https://api-docs.deepseek.com/api/create-chat-completion, https://api-docs.deepseek.com/guides/thinking_mode */
export const deepseek = chatRules({
  ...OPENAI,
  parameters: with_(without(OPENAI_PARAMETERS, "store verbosity max_completion_tokens"), "thinking"),
  assistant_keys: ["reasoning_content", "prefix"],
  blind: (at) => ({
    message: `Failed to deserialize the JSON body into the target type: ${at}: unknown variant \`image_url\`, expected \`text\``
  }),
  // evalstate/fast-agent#621
  overflow: (prompt, answer, window) => ({
    message: `This model's maximum context length is ${window} tokens. However, you requested ${prompt + answer} tokens (${prompt} in the messages, ${answer} in the completion). Please reduce the length of the messages or completion.`,
    code: "invalid_request_error"
  }),
  more: [
    reasoningRule("calls come back with their reasoning_content", (index) => ({
      message: `Missing \`reasoning_content\` field in the assistant message at message index ${index}. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls`
    }))
  ]
})

const signatureIn = (call: Keys | undefined): unknown => {
  const extra = call?.["extra_content"]
  const google = isObject(extra) ? extra["google"] : undefined
  return isObject(google) ? google["thought_signature"] : undefined
}

/** https://ai.google.dev/gemini-api/docs/openai, https://ai.google.dev/gemini-api/docs/thought-signatures */
export const gemini = chatRules({
  ...OPENAI,
  parameters: with_(
    words(`model messages tools tool_choice max_tokens max_completion_tokens temperature top_p n stop stream stream_options
      response_format reasoning_effort seed frequency_penalty presence_penalty parallel_tool_calls user`),
    "extra_body"
  ),
  assistant_keys: ["extra_content"],
  call_keys: ["extra_content"],
  tool_name: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/u,
  overflow: (prompt, _, window) => ({
    message: `The input token count (${prompt}) exceeds the maximum number of tokens allowed (${window}).`
  }),
  more: [
    {
      name: "calls come right behind a user's message or a result",
      find: (body) => {
        const messages = messagesOf(body)
        return firstOf(messages, (message, index) =>
          callsOf(message).length > 0 && !["user", "tool"].includes(String(messages[index - 1]?.["role"]))
            ? {
                message:
                  "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
              }
            : undefined
        )
      }
    },
    {
      name: "the first call of each step of the present turn comes back with its signature",
      find: (body) => {
        const { model } = body
        if (!family(model).gemini3) return undefined
        const messages = messagesOf(body)
        return firstOf(messages, (message, index) => {
          const [call] = callsOf(message)
          if (call === undefined || index < turnStart(messages)) return undefined
          const signature = signatureIn(call)
          if (NO_SIGNATURE.has(signature) || signature === signatureOf(model, signedCall(call))) return undefined
          const name = isObject(call["function"]) ? String(call["function"]["name"]) : ""
          return {
            message:
              signature === undefined
                ? `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`
                : "Corrupted thought signature."
          }
        })
      }
    }
  ]
})

const jinja = (words: string): Problem => ({
  message: `\n------------\nWhile executing CallExpression at line 85, column 32 in source:\n...first %}↵            {{- raise_exception('${words.slice(0, 38)}...\n                                           ^\nError: Jinja Exception: ${words}`,
  status: 500,
  type: "server_error"
})

/**
 * Qwen's template in llama.cpp or vLLM, which parses arguments and renders every message:
 * https://huggingface.co/Qwen/Qwen3.5-27B/blob/main/chat_template.jinja, ggml-org/llama.cpp#27367, tailcallhq/forgecode#2586
 */
export const qwenTemplate = chatRules({
  ...OPENAI,
  parameters: with_(
    without(
      OPENAI_PARAMETERS,
      "store prompt_cache_retention prompt_cache_options safety_identifier web_search_options"
    ),
    "top_k min_p repetition_penalty chat_template_kwargs cache_prompt"
  ),
  assistant_keys: ["reasoning_content"],
  misplaced: () => jinja("System message must be at the beginning."),
  blind: () => ({
    message: "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    status: 500,
    type: "server_error"
  }),
  overflow: (prompt, _, window) => ({
    message: `request (${prompt} tokens) exceeds the available context size (${window} tokens), try increasing it`,
    type: "exceed_context_size_error",
    more: { n_prompt_tokens: prompt, n_ctx: window }
  }),
  more: [
    {
      name: "the template finds a user's message",
      find: (body) =>
        messagesOf(body).some(({ role }) => role === "user") ? undefined : jinja("No user query found in messages.")
    }
  ]
})

/** https://docs.mistral.ai/api/#tag/chat */
export const mistral = chatRules({
  ...OPENAI,
  parameters:
    words(`model messages tools tool_choice parallel_tool_calls max_tokens temperature top_p n stop stream random_seed
    frequency_penalty presence_penalty response_format prediction prompt_mode reasoning_effort safe_prompt metadata`),
  assistant_keys: ["prefix"],
  call_keys: ["index"],
  call_id: /^[a-zA-Z0-9]{9}$/u,
  // nearai/ironclaw#1241, zed-industries/zed#53034
  idWords: (id) => ({
    message: `Tool call id was ${String(id)} but must be a-z, A-Z, 0-9, with a length of 9.`,
    type: "invalid_function_call",
    code: "3280"
  }),
  overflow: (prompt, _, window) => ({
    message: `Prompt contains ${prompt} tokens and 0 draft tokens, too large for model with ${window} maximum context length`,
    type: "invalid_request_prompt",
    code: "3051"
  }),
  more: [
    // https://github.com/mistralai/mistral-common: the validator of its request of a chat
    {
      name: "results are followed by an answer",
      find: (body) => {
        const messages = messagesOf(body)
        return firstOf(messages, ({ role }, index) =>
          role === "user" && messages[index - 1]?.["role"] === "tool"
            ? {
                message: "Unexpected role 'user' after role 'tool'",
                type: "invalid_request_message_order",
                code: "3230"
              }
            : undefined
        )
      }
    },
    {
      name: "the last message is a user's or a result",
      find: (body) => {
        const last = messagesOf(body).at(-1)
        return last === undefined || last["role"] !== "assistant" || last["prefix"] === true
          ? undefined
          : {
              message: "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
              type: "invalid_request_message_order",
              code: "3230"
            }
      }
    }
  ]
})
