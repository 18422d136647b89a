/** What is learned of a refusal that names the limit of the answer. */
import { assert, describe, it } from "@effect/vitest"
import { lowerLimit, withAnswerMax } from "#src/shared/model/answerLimit.ts"
import { modelOf } from "../../support/askedCodec.ts"

const of = (message: string) => JSON.stringify({ error: { message } })
const SENT = 8000

describe("lowerLimit", () => {
  it.each([
    [
      "OpenAI",
      of(
        "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided 8000."
      ),
      4096
    ],
    [
      "OpenAI's responses",
      of("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 4096, but got 8000 instead."),
      4096
    ],
    [
      "Anthropic",
      of("max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307"),
      4096
    ],
    [
      "Mistral",
      JSON.stringify({
        object: "error",
        message: {
          detail: [
            {
              type: "less_than_equal",
              loc: ["body", "max_tokens"],
              msg: "Input should be less than or equal to 4096",
              input: 8000,
              ctx: { le: 4096 }
            }
          ]
        },
        type: "invalid_request_error"
      }),
      4096
    ],
    [
      "Groq",
      of(
        "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model"
      ),
      4096
    ],
    ["DeepSeek", of("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]"), 4096],
    ["Qwen's service", of("Range of max_tokens should be [1, 2000]"), 2000],
    [
      "Cohere",
      of("too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model"),
      4096
    ],
    [
      "Bedrock",
      of(
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."
      ),
      4096
    ],
    ["a server that names no number", of("max_tokens is too large for this model"), 4000],
    [
      "vLLM",
      of(
        "This model's maximum context length is 8192 tokens. However, you requested 8300 tokens (300 in the messages, 8000 in the completion). Please reduce the length of the messages or completion."
      ),
      2048
    ],
    [
      "a later vLLM",
      of(
        "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 8192 tokens and your request has 300 input tokens (8000 > 8192 - 300)."
      ),
      2048
    ],
    [
      "Anthropic, of a context",
      of(
        "input length and `max_tokens` exceed context limit: 300 + 8000 > 8192, decrease input length or `max_tokens` and try again"
      ),
      2048
    ],
    [
      "Together",
      of(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 300 `inputs` tokens and 8000 `max_new_tokens`"
      ),
      2048
    ]
  ] as const)("is what %s says", (_, said, limit) => assert.strictEqual(lowerLimit(said, SENT, false), limit))

  it.each([
    [
      "a prompt that is too long itself",
      of(
        "This model's maximum context length is 8192 tokens. However, you requested 15000 tokens (7000 in the messages, 8000 in the completion)."
      )
    ],
    ["a prompt of which only the length is named", of("prompt is too long: 210000 tokens > 200000 maximum")],
    [
      "a prompt without numbers",
      of("Please reduce the length of the messages or completion. (context_length_exceeded)")
    ],
    ["a long input at Google", of("The input token count (9000) exceeds the maximum number of tokens allowed (8192).")],
    [
      "a limit under its older name",
      of("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    ],
    ["a limit below the budget to think", of("`max_tokens` must be greater than `thinking.budget_tokens`.")],
    ["another parameter", of("Unsupported value: 'temperature' does not support 0.7 with this model.")],
    [
      "a limit of tools",
      of("Invalid 'tools': array too long. Expected an array with maximum length 128, but got 130.")
    ],
    ["nothing", ""]
  ] as const)("changes nothing for %s", (_, said) => assert.isUndefined(lowerLimit(said, SENT, false)))

  it("ends where a server refuses whatever it is sent", () => {
    const seen: Array<number> = []
    let sent = SENT
    while (true) {
      const said = of(`max_tokens is too large: ${sent}. This model supports at most ${sent - 1} completion tokens.`)
      const next = lowerLimit(said, sent, seen.length > 0)
      if (next === undefined || seen.length > 20) break
      seen.push(next)
      sent = next
    }
    assert.deepStrictEqual(seen, [7999, 3999, 1999, 1024])
  })
})

describe("withAnswerMax", () => {
  it("lowers the limit under each of its names, and raises none", () => {
    const model = modelOf({ max_tokens: 8000, request_template: { max_completion_tokens: 9000, top_p: 1 } })
    const lowered = withAnswerMax(model, 4096)
    assert.strictEqual(lowered.max_tokens, 4096)
    assert.deepStrictEqual(lowered.request_template, { max_completion_tokens: 4096, top_p: 1 })
    assert.strictEqual(withAnswerMax(modelOf({ max_tokens: 77 }), 4096).max_tokens, 77)
    assert.strictEqual(withAnswerMax(model, undefined), model)
  })
})
