/** The rules of OpenAI's Responses API, used without stored state: https://platform.openai.com/docs/api-reference/responses/create */
import { overflowOf } from "./chatRules.ts"
import { responsesImageProblem } from "./images.ts"
import { isObject, type Keys, listOf } from "./jsonKeys.ts"
import { parseJson } from "./looseJson.ts"
import { family, firstOf, type Problem, repeatedOf, type Rule, unknownKey, words } from "./Rule.ts"
import { itemsOf, REASONING_RULES, typeOf } from "./responsesReasoning.ts"
import { schemaRefusal, strictSchemaRefusal } from "./schemaRules.ts"

const PARAMETERS =
  words(`model input instructions tools tool_choice parallel_tool_calls max_output_tokens max_tool_calls temperature top_p
  stream stream_options store include reasoning text truncation metadata user service_tier prompt_cache_key prompt_cache_retention
  prompt_cache_options safety_identifier previous_response_id conversation background prompt top_logprobs context_management`)
/** Parameters of chat completions that moved. */
const MOVED: Readonly<Record<string, string>> = {
  messages: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  reasoning_effort: "reasoning.effort",
  response_format: "text.format"
}
const INCLUDES = words(`reasoning.encrypted_content message.output_text.logprobs message.input_image.image_url
  file_search_call.results web_search_call.results web_search_call.action.sources code_interpreter_call.outputs
  computer_call_output.output.image_url`)
const ITEM_KEYS: Readonly<Record<string, ReadonlySet<string>>> = {
  message: words("type role content id status phase"),
  function_call: words("type call_id name arguments id status namespace"),
  function_call_output: words("type call_id output id status"),
  reasoning: words("type id summary encrypted_content content status")
}
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/u
const TOOLS_MAX = 128
const OUTPUT_TOKENS_MIN = 16
const CALL_ID_CHARS_MAX = 64

const unknown = (at: string): Problem => ({
  message: `Unknown parameter: '${at}'.`,
  param: at,
  code: "unknown_parameter"
})

const PARAMETER_RULES: ReadonlyArray<Rule> = [
  {
    name: "a request names its model",
    find: ({ model }) =>
      typeof model === "string" && model !== ""
        ? undefined
        : { message: "Missing required parameter: 'model'.", param: "model", code: "missing_required_parameter" }
  },
  {
    name: "a request has the parameters of this API",
    find: (body, { extensions }) => {
      const moved = Object.keys(body).find((key) => Object.hasOwn(MOVED, key))
      if (moved !== undefined)
        return {
          message: `Unsupported parameter: '${moved}'. In the Responses API, this parameter has moved to '${MOVED[moved]}'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.`,
          param: moved,
          code: "unsupported_parameter"
        }
      const extra = unknownKey(body, new Set([...PARAMETERS, ...extensions]))
      return extra === undefined ? undefined : unknown(extra)
    }
  },
  {
    name: "a request has parameters that the model takes",
    find: (body, { refuses }) => {
      const all = [...refuses, ...(family(body["model"]).thinksAlways ? ["temperature", "top_p"] : [])]
      const refused = all.find((name) => body[name] !== undefined)
      return refused === undefined
        ? undefined
        : {
            message: `Unsupported parameter: '${refused}' is not supported with this model.`,
            param: refused,
            code: "unsupported_parameter"
          }
    }
  },
  {
    name: "the answer's limit is an integer from 16 on",
    find: ({ max_output_tokens }) =>
      max_output_tokens === undefined ||
      (Number.isSafeInteger(max_output_tokens) && Number(max_output_tokens) >= OUTPUT_TOKENS_MIN)
        ? undefined
        : {
            message: `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= ${OUTPUT_TOKENS_MIN}, but got ${JSON.stringify(max_output_tokens)} instead.`,
            param: "max_output_tokens",
            code: "integer_below_min_value"
          }
  },
  {
    name: "what is to be included is known",
    find: ({ include }) => {
      const extra = listOf(include).find((name) => !INCLUDES.has(String(name)))
      return extra === undefined
        ? undefined
        : { message: `Invalid value: ${JSON.stringify(extra)}.`, param: "include[0]", code: "invalid_value" }
    }
  }
]

const toolsOf = (body: Keys) =>
  listOf(body["tools"]).map((tool, index) => ({ at: `tools[${index}]`, tool: isObject(tool) ? tool : {} }))

const TOOL_RULES: ReadonlyArray<Rule> = [
  {
    name: "a tool is a function with its keys at the top",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) => {
        if (tool["type"] !== "function")
          return {
            message: `Missing required parameter: '${at}.type'.`,
            param: `${at}.type`,
            code: "missing_required_parameter"
          }
        if (tool["name"] === undefined)
          return {
            message: `Missing required parameter: '${at}.name'.`,
            param: `${at}.name`,
            code: "missing_required_parameter"
          }
        const extra = unknownKey(tool, words("type name description parameters strict"))
        return extra === undefined ? undefined : unknown(`${at}.${extra}`)
      })
  },
  {
    name: "a tool's name has the letters and the length that the provider takes",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) =>
        typeof tool["name"] === "string" && TOOL_NAME.test(tool["name"])
          ? undefined
          : {
              message: `Invalid '${at}.name': string does not match pattern. Expected a string that matches the pattern '${TOOL_NAME.source}'.`,
              param: `${at}.name`,
              code: "invalid_value"
            }
      )
  },
  {
    name: "tools are few and have different names",
    find: (body) => {
      const names = toolsOf(body).map(({ tool }) => tool["name"])
      const twice = repeatedOf(names)
      return names.length <= TOOLS_MAX && twice === undefined
        ? undefined
        : { message: `Invalid 'tools': expected at most ${TOOLS_MAX} tools with different names.`, param: "tools" }
    }
  },
  // https://platform.openai.com/docs/guides/migrate-to-responses: functions are strict unless they say otherwise
  {
    name: "a tool's parameters are the schema of an object, and a strict one unless strict is false",
    find: (body) =>
      firstOf(toolsOf(body), ({ at, tool }) => {
        const { name, parameters, strict } = tool
        const problem = schemaRefusal(parameters) ?? (strict === false ? undefined : strictSchemaRefusal(parameters))
        return problem === undefined
          ? undefined
          : {
              message: `Invalid schema for function '${String(name)}': ${problem}`,
              param: `${at}.parameters`,
              code: "invalid_function_parameters"
            }
      })
  }
]

const partProblem = (part: unknown, role: unknown, at: string): Problem | undefined => {
  const type = isObject(part) ? part["type"] : undefined
  const allowed = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"]
  if (!allowed.includes(String(type)))
    return {
      message: `Invalid value: '${String(type)}'. Supported values are: ${allowed.map((one) => `'${one}'`).join(", ")}.`,
      param: `${at}.type`,
      code: "invalid_value"
    }
  const text = isObject(part) ? part["text"] : undefined
  return type !== "input_text" || (typeof text === "string" && text.trim() !== "")
    ? undefined
    : { message: `Invalid value for '${at}.text': expected a text that is not empty.`, param: `${at}.text` }
}

const INPUT_RULES: ReadonlyArray<Rule> = [
  {
    name: "there is input",
    find: ({ input }) =>
      (typeof input === "string" && input !== "") || listOf(input).length > 0
        ? undefined
        : { message: "Missing required parameter: 'input'.", param: "input", code: "missing_required_parameter" }
  },
  {
    name: "an item has a known type and that type's keys",
    find: (body) =>
      firstOf(itemsOf(body), (item, index) => {
        const type = typeOf(item)
        const keys = Object.hasOwn(ITEM_KEYS, type) ? ITEM_KEYS[type] : undefined
        const at = `input[${index}]`
        if (keys === undefined)
          return { message: `Invalid value: '${type}'.`, param: `${at}.type`, code: "invalid_value" }
        const extra = unknownKey(item, keys)
        return extra === undefined ? undefined : unknown(`${at}.${extra}`)
      })
  },
  {
    name: "a message has a known role",
    find: (body) =>
      firstOf(itemsOf(body), (item, index) =>
        typeOf(item) !== "message" || ["user", "assistant", "system", "developer"].includes(String(item["role"]))
          ? undefined
          : {
              message: `Invalid value: '${String(item["role"])}'.`,
              param: `input[${index}].role`,
              code: "invalid_value"
            }
      )
  },
  {
    name: "instructions come first, in 'instructions' or in the first message",
    find: (body) =>
      firstOf(itemsOf(body), ({ role }, index) =>
        (role === "system" || role === "developer") && (index > 0 || body["instructions"] !== undefined)
          ? { message: "Expected instructions at the beginning of 'input' only.", param: `input[${index}].role` }
          : undefined
      )
  },
  {
    name: "a message has content of its role's kind",
    find: (body) =>
      firstOf(itemsOf(body), (item, index) => {
        if (typeOf(item) !== "message") return undefined
        const { content, role } = item
        const at = `input[${index}].content`
        if (typeof content === "string" ? content.trim() === "" : listOf(content).length === 0)
          return { message: `Invalid value for '${at}': expected a text that is not empty.`, param: at }
        return firstOf(listOf(content), (part, of) => partProblem(part, role, `${at}[${of}]`))
      })
  }
]

const OUTPUT_RULES: ReadonlyArray<Rule> = [
  {
    name: "a result is a text, or parts as a message of the user has them",
    find: (body) =>
      firstOf(itemsOf(body), (item, index) => {
        if (typeOf(item) !== "function_call_output" || typeof item["output"] === "string") return undefined
        const at = `input[${index}].output`
        if (listOf(item["output"]).length === 0)
          return { message: `Invalid type for '${at}': expected a string or an array of parts.`, param: at }
        return firstOf(listOf(item["output"]), (part, of) => partProblem(part, "user", `${at}[${of}]`))
      })
  },
  { name: "images have a known format, and the model takes them", find: responsesImageProblem }
]

const CALL_RULES: ReadonlyArray<Rule> = [
  {
    name: "a call has an id, a legal name and arguments that are a JSON object",
    find: (body) =>
      firstOf(itemsOf(body), (item, index) => {
        if (typeOf(item) !== "function_call") return undefined
        const { arguments: text, call_id, name } = item
        const at = `input[${index}]`
        if (typeof call_id !== "string" || call_id === "" || call_id.length > CALL_ID_CHARS_MAX)
          return {
            message: `Invalid '${at}.call_id': string too long. Expected a string with maximum length ${CALL_ID_CHARS_MAX}.`,
            param: `${at}.call_id`,
            code: "string_above_max_length"
          }
        if (typeof name !== "string" || !TOOL_NAME.test(name))
          return {
            message: `Invalid '${at}.name': string does not match pattern.`,
            param: `${at}.name`,
            code: "invalid_value"
          }
        return typeof text === "string" && isObject(parseJson(text))
          ? undefined
          : {
              message: `Invalid '${at}.arguments': expected a string that holds a JSON object.`,
              param: `${at}.arguments`
            }
      })
  },
  {
    name: "each call is answered once, and no result comes before its call",
    find: (body) => {
      const open = new Set<unknown>()
      const seen = new Set<unknown>()
      for (const item of itemsOf(body)) {
        const { call_id } = item
        const type = typeOf(item)
        if (type === "function_call") {
          if (seen.has(call_id))
            return { message: `Duplicate item found with call_id ${String(call_id)}.`, param: "input" }
          seen.add(call_id)
          open.add(call_id)
        } else if (type === "function_call_output") {
          if (!open.delete(call_id))
            return {
              message: `No tool call found for function call output with call_id ${String(call_id)}.`,
              param: "input"
            }
        } else if (type === "message" && item["role"] !== "assistant" && open.size > 0) break
      }
      const [missing] = open
      return open.size === 0
        ? undefined
        : { message: `No tool output found for function call ${String(missing)}.`, param: "input" }
    }
  }
]

/** The table of the API's rules, in the order in which they are looked at. */
export const responsesRules: ReadonlyArray<Rule> = [
  ...PARAMETER_RULES,
  ...TOOL_RULES,
  ...INPUT_RULES,
  ...CALL_RULES,
  ...OUTPUT_RULES,
  ...REASONING_RULES,
  {
    name: "prompt and answer fit into the model's context",
    find: (body, traits) => {
      const answer = Number(body["max_output_tokens"] ?? 0)
      const { input, instructions, tools } = body
      const texts = [instructions, ...(typeof input === "string" ? [input] : listOf(input)), ...listOf(tools)]
      const over = overflowOf(
        texts.map((part) => JSON.stringify(part) ?? ""),
        listOf(input).length,
        answer,
        traits
      )
      return over === undefined
        ? undefined
        : {
            message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
            param: "input",
            code: "context_length_exceeded"
          }
    }
  }
]
