import { assert, describe, it } from "@effect/vitest"
import { errorMessage } from "#src/shared/wire/errorMessage.ts"

describe("the message of an error", () => {
  it.each([
    ["OpenAI", { error: { message: "Too long", type: "invalid_request_error", param: null, code: "x" } }],
    ["Anthropic", { type: "error", error: { type: "not_found_error", message: "Too long" }, request_id: "req_1" }],
    ["Google", [{ error: { code: 400, message: "Too long", status: "INVALID_ARGUMENT" } }]],
    ["Mistral", { object: "error", message: "Too long", type: "invalid_request_error" }],
    ["vLLM", { detail: "Too long" }],
    ["Telegram", { ok: false, error_code: 400, description: "Too long" }]
  ])("is found where %s has it", (_, body) => assert.strictEqual(errorMessage(JSON.stringify(body)), "Too long"))

  it("has the words of the provider behind a router", () => {
    const body = { error: { code: 400, message: "Provider returned error", metadata: { raw: "prompt is too long" } } }
    assert.strictEqual(errorMessage(JSON.stringify(body)), "Provider returned error: prompt is too long")
  })

  it.each(["", "Bad Gateway", "<html>", "[]", "{}", "[[[[{}]]]]", '"text"', '{"error":{"code":1}}', '{"error":'])(
    "is missing in %s",
    (body) => assert.isUndefined(errorMessage(body))
  )
})
