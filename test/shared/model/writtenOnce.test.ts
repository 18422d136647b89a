/** Requests are written from parts that were written for earlier requests: that shows in no byte. */
import { assert, describe, it } from "@effect/vitest"
import type { Message } from "#src/shared/model/Conversation.ts"
import { charsOf } from "#src/shared/model/Codec.ts"
import { CODECS } from "#src/shared/model/codecs.ts"
import { modelOf, TOOL } from "../../support/askedCodec.ts"
import { makeRandom, pick } from "../../support/history.ts"

const MODELS = [
  { model: "gpt-4o", endpoint: "https://api.openai.com/v1" },
  { model: "gpt-5", api: "responses", endpoint: "https://api.openai.com/v1" },
  { model: "claude-sonnet-4-5", api: "messages", endpoint: "https://api.anthropic.com/v1" },
  { model: "anthropic/claude-opus-4.7", endpoint: "https://openrouter.ai/api/v1" },
  { model: "kimi-k2-thinking", endpoint: "https://api.moonshot.ai/v1" },
  { model: "gemini-3-pro", endpoint: "https://generativelanguage.googleapis.com/v1beta/openai" },
  { model: "mistral-large-latest", endpoint: "https://api.mistral.ai/v1" },
  { model: "llama-3.3-70b" }
].map(modelOf)

const TEXTS = ["hi", "", 'a "b"\n\u2028', "é 漢字 🙂", "x".repeat(500)]

/** A conversation of a person, a model and its tools, some of whose calls bring reasoning. */
const conversation = (seed: number): ReadonlyArray<Message> => {
  const random = makeRandom(seed)
  const messages: Array<Message> = [{ role: "system", content: "You are an agent." }]
  for (let step = 0; step < 20; step++) {
    const ids = Array.from({ length: Math.floor(random() * 3) }, (_, index) => `c-${step}-${index}`)
    const model = pick(random, MODELS)
    const data = JSON.stringify({ reasoning_content: "thought", ids: ids.map((id) => `own_${id}`) })
    const continuation = { api: model.api, model: `${new URL(model.endpoint).host} ${model.model}`, data }
    if (random() < 0.4) messages.push({ role: "user", content: pick(random, TEXTS) })
    messages.push({
      role: "assistant",
      content: random() < 0.3 ? null : pick(random, TEXTS),
      ...(ids.length === 0 ? {} : { calls: ids.map((id) => ({ id, name: TOOL.name, arguments: '{"a":1}' })) }),
      ...(ids.length > 0 && random() < 0.3 ? { continuation } : {})
    })
    for (const call_id of ids) messages.push({ role: "tool", call_id, content: pick(random, TEXTS) })
  }
  return messages
}

describe("a request that repeats the ones before it", () => {
  it.each(MODELS)("has the bytes of one whose parts are all new, for $model", (model) => {
    for (const seed of [1, 2, 3]) {
      const messages = conversation(seed)
      for (let length = 1; length <= messages.length; length++) {
        const asked = { model, messages: messages.slice(0, length), tools: [TOOL], cache_key: "session/edge" }
        const { body, parts } = CODECS[model.api]
        const written = parts(asked)
        assert.strictEqual(written.join(""), body(structuredClone(asked)))
        assert.strictEqual(charsOf(written), body(asked).length)
        // As a compaction asks at the end of a lane's own prompt.
        const aside = { ...asked, messages: [...asked.messages, { role: "user", content: "Summarize." } as const] }
        assert.strictEqual(parts(aside).join(""), body(structuredClone(aside)))
      }
    }
  })

  it("is JSON", () => {
    for (const model of MODELS) {
      const body = CODECS[model.api].body({ model, messages: conversation(4), tools: [TOOL, TOOL] })
      assert.strictEqual(JSON.stringify(JSON.parse(body)), body)
    }
  })
})
