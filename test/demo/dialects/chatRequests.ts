/** A conversation of chat completions for every dialect, and the same with each rule broken. */
import type { DialectName } from "#demo/dialects/Dialect.ts"
import type { Keys } from "#demo/dialects/jsonKeys.ts"
import { signatureOf, signedCall } from "#demo/dialects/signatures.ts"

export const PARAMETERS = {
  type: "object",
  properties: { path: { type: "string", description: "The file" } },
  required: ["path"],
  additionalProperties: false
}

export const fn = (name: string, parameters: unknown = PARAMETERS): Keys => ({
  name,
  description: "Reads a file",
  parameters
})
export const chatTool = (name: string, parameters?: unknown): Keys => ({
  type: "function",
  function: fn(name, parameters)
})

/** A request without one of its keys. */
export const without = (base: Keys, key: string): Keys =>
  Object.fromEntries(Object.entries(base).filter(([name]) => name !== key))

export const THOUGHT = "I read both."

/** A conversation in the middle of a turn, as `dialect` wants it back. */
export const chatBase = (dialect: DialectName, model: string) => {
  const calls = ["a", "b"].map((path, index): Keys => {
    const id = dialect === "mistral" ? `callAbc0${index}` : `call_${index}`
    const call = { id, type: "function", function: { name: "fs-read", arguments: JSON.stringify({ path }) } }
    return dialect === "gemini" && index === 0
      ? { ...call, extra_content: { google: { thought_signature: signatureOf(model, signedCall(call)) } } }
      : call
  })
  const reasoning =
    dialect === "kimi" || dialect === "deepseek" || dialect === "qwen-template"
      ? { reasoning_content: THOUGHT }
      : dialect === "openrouter"
        ? {
            reasoning_details: [
              {
                type: "reasoning.text",
                text: THOUGHT,
                signature: signatureOf(model, THOUGHT),
                format: "anthropic-claude-v1"
              }
            ]
          }
        : {}
  return {
    model,
    ...(dialect === "openrouter" ? { reasoning: { effort: "high" } } : {}),
    max_tokens: 1000,
    tools: [chatTool("fs-read"), chatTool("fs-write")],
    messages: [
      { role: "system", content: "You are an agent." },
      { role: "user", content: "Read a and b." },
      { role: "assistant", content: null, tool_calls: calls, ...reasoning },
      ...calls.map(({ id }): Keys => ({ role: "tool", tool_call_id: id, content: "1\tone" }))
    ] as ReadonlyArray<Keys>
  }
}
export type ChatBase = ReturnType<typeof chatBase>

/** The request with one message changed. */
export const withMessage = (base: ChatBase, index: number, change: Keys): Keys => ({
  ...base,
  messages: base.messages.map((message, at) => (at === index ? { ...message, ...change } : message))
})
const callsIn = (base: ChatBase): ReadonlyArray<Keys> => base.messages[2]?.["tool_calls"] as ReadonlyArray<Keys>
export const withCall = (base: ChatBase, change: Keys): Keys =>
  withMessage(base, 2, {
    tool_calls: callsIn(base).map((call, index) => (index === 0 ? { ...call, ...change } : call))
  })
const withFunction = (base: ChatBase, change: Keys): Keys =>
  withCall(base, { function: { ...(callsIn(base)[0]?.["function"] as Keys), ...change } })

/** The smallest PNG, in base64. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

export const imagePart = (type: string, data = PNG): Keys => ({
  type: "image_url",
  image_url: { url: `data:${type};base64,${data}` }
})

export type Broken<Base> = Readonly<Record<string, (base: Base) => Keys>>

export const CHAT: Broken<ChatBase> = {
  "a request names its model": (base) => without(base, "model"),
  "a request has parameters that the provider knows": (base) => ({ ...base, thinking_budget: 1 }),
  "a request has parameters that the model takes": (base) => ({ ...base, model: "gpt-5.1", temperature: 0.7 }),
  // OpenAI's own
  "a request asks for no effort of reasoning beside tools from GPT-5.4 on": ({ max_tokens, ...base }) => ({
    ...base,
    model: "gpt-5.6",
    max_completion_tokens: max_tokens
  }),
  "an answer has one limit, an integer": (base) => ({ ...base, max_tokens: 0 }),
  "an answer's limit is no more than the model writes": (base) => ({ ...base, max_tokens: 128_001 }),
  "the temperature is a number from 0 to 2": (base) => ({ ...base, temperature: 3 }),
  "tools are a list that is not empty and not too long": (base) => ({ ...base, tools: [] }),
  "a tool is a function with known keys": (base) => ({ ...base, tools: [{ ...chatTool("fs-read"), strict: true }] }),
  "a tool's name has the letters and the length that the provider takes": (base) => ({
    ...base,
    tools: [chatTool("fs read")]
  }),
  "a tool has a description": (base) => ({
    ...base,
    tools: [{ type: "function", function: { name: "fs-read", parameters: PARAMETERS } }]
  }),
  "a tool's parameters are the schema of an object": (base) => ({
    ...base,
    tools: [chatTool("core-list", { not: { type: "null" } })]
  }),
  "tools have different names": (base) => ({ ...base, tools: [chatTool("fs-read"), chatTool("fs-read")] }),
  "there are messages": (base) => ({ ...base, messages: [] }),
  "a message has a known role and that role's keys": (base) => withMessage(base, 1, { role: "function" }),
  "one system message comes first": (base) => withMessage(base, 0, { role: "user" }),
  "a message has content": (base) => withMessage(base, 1, { content: " " }),
  "images are a user's, of a known format, and for a model that takes them": (base) =>
    withMessage(base, 3, { content: [{ type: "text", text: "one" }, imagePart("image/png")] }),
  "calls are a list that is not empty": (base) => withMessage(base, 2, { content: "a", tool_calls: [] }),
  "a call is a function's, with a legal name": (base) => withFunction(base, { name: "fs.read()" }),
  "a call's id has the form that the provider takes": (base) => withCall(base, { id: "x".repeat(65) }),
  "a call's arguments are a JSON object": (base) => withFunction(base, { arguments: '{"path":"a' }),
  "each call is answered once, right behind it": (base) => ({ ...base, messages: base.messages.slice(0, 4) }),
  "prompt and answer fit into the model's context": (base) => withMessage(base, 1, { content: "word ".repeat(30_000) })
}

export const withoutReasoning = (base: ChatBase): Keys => {
  const bare = without(without(base.messages[2] ?? {}, "reasoning_content"), "reasoning_details")
  return { ...base, messages: base.messages.map((message, index) => (index === 2 ? bare : message)) }
}
export const withUser = (base: ChatBase): Keys => ({
  ...base,
  messages: [...base.messages, { role: "user", content: "And?" }]
})
export const marked = (text: string): Keys => ({ type: "text", text, cache_control: { type: "ephemeral" } })

export const MORE: Partial<Record<DialectName, Broken<ChatBase>>> = {
  openrouter: {
    "a request has at most four breakpoints of the cache": (base) =>
      withMessage(base, 1, { content: Array.from({ length: 5 }, () => marked("Read a.")) }),
    "reasoning comes back as it was sent, to the model that it is of": (base) => ({
      ...base,
      model: "anthropic/claude-haiku-4.5"
    }),
    "calls of the present turn come back with their reasoning where reasoning is on": withoutReasoning
  },
  kimi: {
    "a tool's name has the letters and the length that the provider takes": (base) => ({
      ...base,
      tools: [chatTool("ls")]
    }),
    "the temperature of a model that thinks is 1": (base) => ({ ...base, temperature: 0.7 }),
    "calls come back with their reasoning_content": withoutReasoning
  },
  deepseek: { "calls come back with their reasoning_content": withoutReasoning },
  gemini: {
    "calls come right behind a user's message or a result": (base) => ({
      ...base,
      messages: base.messages.flatMap((message, index) =>
        index === 2 ? [{ role: "assistant", content: "I look." }, message] : [message]
      )
    }),
    "the first call of each step of the present turn comes back with its signature": (base) =>
      withFunction(base, { arguments: '{"path":"c"}' })
  },
  "qwen-template": {
    "the template finds a user's message": (base) => ({ ...base, messages: base.messages.slice(0, 1) })
  },
  mistral: {
    "a call's id has the form that the provider takes": (base) => withCall(base, { id: "call_0" }),
    "results are followed by an answer": withUser,
    "the last message is a user's or a result": (base) => ({
      ...base,
      messages: [...base.messages, { role: "assistant", content: "Done." }]
    })
  }
}
