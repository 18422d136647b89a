/** Answers of public reports in which a value is absent, null or empty, and errors that a provider tells in its own way (docs/evidence/counterparts-providers.md). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { ModelApi } from "#schema/Continuation.ts"
import type { Completion } from "#src/agent/model/Llm.ts"
import type { Tool } from "#src/shared/model/Conversation.ts"
import { asking } from "../../support/askedModel.ts"
import { partOf, serveParts } from "../../support/wireCases.ts"

const TOOLS: ReadonlyArray<Tool> = [
  {
    name: "choir-fs-read",
    description: "reads",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] }
  },
  { name: "choir-core-list", description: "lists", parameters: { type: "object", properties: {} } }
]

interface Report {
  readonly source: string
  readonly api?: ModelApi
  readonly status?: number
  readonly headers?: ReadonlyArray<string>
  /** The data of each event, or the whole body as JSON or text. */
  readonly events?: ReadonlyArray<object | string>
  readonly body?: object | string | null
  readonly text?: string
  readonly calls?: Completion["tool_calls"]
  readonly error?: readonly [kind: string, says: RegExp]
  readonly waits?: ReadonlyArray<number>
}

const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value))

const fileOf = ({ body, events, headers = [], status = 200 }: Report) =>
  [
    `HTTP ${status}`,
    ...(events === undefined && !headers.some((header) => header.startsWith("content-type"))
      ? ["content-type: application/json"]
      : []),
    ...headers,
    "",
    ...(events?.map(shown) ?? [shown(body)])
  ].join("\n")

const delta = (delta: unknown, finish_reason: unknown = null) => ({ choices: [{ index: 0, delta, finish_reason }] })
const READ = [{ name: "choir-fs-read", input: { path: "a" } }]
const LIST = [{ name: "choir-core-list", input: {} }]
const begun = (id: unknown, name: unknown, args: unknown) => ({
  tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: args } }]
})
const whole = (message: object, finish_reason: unknown = "stop") => ({
  choices: [{ index: 0, message, finish_reason }]
})
const calling = (name: string, args: unknown) =>
  whole(
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name, arguments: args } }]
    },
    "tool_calls"
  )

const EMPTY: ReadonlyArray<Report> = [
  {
    source: "vllm-project/vllm-ascend#14501",
    events: [
      delta({ role: "assistant", content: null, ...begun("c1", "choir-fs-read", "") }),
      delta({ content: null, tool_calls: [{ index: 0, function: { arguments: '{"path":"a"}' } }] }),
      delta({ content: null }, "tool_calls"),
      "[DONE]"
    ],
    calls: READ
  },
  {
    source: "anomalyco/opencode#37841",
    events: [
      delta(begun("c1", "choir-fs-read", "{")),
      delta(begun("", "", '"path": ')),
      delta(begun("", "", '"a"}')),
      delta({}, "tool_calls")
    ],
    calls: READ
  },
  {
    source: "langchain-ai/langchainjs#11470",
    events: [delta({ role: "", ...begun("c1", "choir-fs-read", '{"path":"a"}') }), delta({ role: "" }, "tool_calls")],
    calls: READ
  },
  {
    source: "lidge-jun/opencodex#1754",
    events: [
      delta(begun("c1", "choir-fs-read", null)),
      delta(begun(null, null, '{"path":"a"}')),
      delta(begun(null, null, null)),
      delta({}, "tool_calls")
    ],
    calls: READ
  },
  {
    source: "Effect-TS/effect#8333",
    events: [
      delta({ role: null, content: "Good " }),
      delta({ role: null, content: "morning" }),
      delta({ role: null, content: "" }, "stop")
    ],
    text: "Good morning"
  },
  {
    source: "decolua/9router#2230",
    events: [
      delta({ reasoning_content: "I think of birds", tool_calls: [] }),
      delta({ content: "Herons", tool_calls: [] }),
      delta({ tool_calls: [] }, "stop")
    ],
    text: "Herons"
  },
  {
    source: "Gitlawb/openclaude#48",
    events: [delta({ role: "assistant", content: "" }), delta({ content: "Begins empty" }), delta({}, "stop")],
    text: "Begins empty"
  },
  {
    source: "crewAIInc/crewAI#4461",
    events: [
      delta({ content: "", ...begun("c1", "choir-fs-read", '{"path":"a"}') }),
      delta({ content: "" }, "tool_calls")
    ],
    calls: READ
  },
  {
    source: "sgl-project/sglang#3912",
    events: [
      { ...delta({ role: null, content: "Whole", tool_calls: null }, ""), usage: null },
      { ...delta({ role: null, content: null, tool_calls: null }, "stop"), usage: null },
      "[DONE]"
    ],
    text: "Whole"
  },
  {
    source: "ollama/ollama#4357",
    events: [
      delta({ content: "Hello" }, ""),
      delta({ content: " there" }, ""),
      delta({ content: "" }, "stop"),
      "[DONE]"
    ],
    text: "Hello there"
  },
  {
    source: "cline/cline#8518",
    events: [
      delta({ content: "Counted" }, "stop"),
      { choices: null, usage: { prompt_tokens: 9, completion_tokens: 1 } },
      "[DONE]"
    ],
    text: "Counted"
  },
  {
    source: "vllm-project/vllm#36944",
    events: [delta({ content: "The end " }), delta({ content: "of it" }, "stop")],
    text: "The end of it"
  },
  { source: "openai/openai-agents-js#664", body: calling("choir-core-list", ""), calls: LIST },
  { source: "aws-samples/bedrock-engineer#188", body: calling("choir-core-list", '""'), calls: LIST },
  { source: "NousResearch/hermes-agent#83937", body: calling("choir-core-list", " \n"), calls: LIST },
  { source: "brave/brave-browser#56601", body: calling("choir-core-list", "null"), calls: LIST },
  { source: "evalstate/fast-agent#102", body: calling("choir-core-list", null), calls: LIST },
  {
    source: "PowerShell/AIShell#350",
    body: whole({ role: "assistant", content: "Without a reason" }, null),
    text: "Without a reason"
  },
  {
    source: "mistralai/client-python#135",
    events: [
      delta({ role: "assistant", content: null }),
      delta({ content: null, ...begun("c1", "choir-core-list", "{}") }, "tool_calls")
    ],
    calls: LIST
  },
  {
    source: "veryfront/veryfront-code#3815",
    events: [
      delta({ role: null, content: null, reasoning_content: "Which one?" }),
      delta({ role: null, content: "This one", reasoning_content: null, tool_calls: null }),
      delta({ content: null, reasoning_content: null }, "stop")
    ],
    text: "This one"
  }
]

const ERRORS: ReadonlyArray<Report> = [
  {
    source: "open-webui/computer#293",
    status: 400,
    body: {
      error: {
        message: "Provider returned error",
        code: 400,
        metadata: { raw: "the glm model is not served there", provider_name: "BaseTen" }
      }
    },
    error: ["http", /answered 400: Provider returned error: the glm model is not served there/u]
  },
  { source: "open-webui/open-webui#28938", body: null, error: ["malformed", /empty|null/u] },
  {
    source: "anomalyco/opencode#28860",
    api: "responses",
    events: [
      { type: "error", code: "invalid_prompt", message: "the prompt was refused", param: null, sequence_number: 1 }
    ],
    error: ["http", /the prompt was refused/u]
  },
  {
    source: "anomalyco/opencode#28757",
    api: "messages",
    events: [{ type: "error", error: { type: "not_found_error", message: "" } }],
    error: ["http", /not_found_error/u]
  },
  {
    source: "n4ze3m/page-assist#406",
    status: 400,
    body: [{ error: { code: 400, message: "The model is not there", status: "INVALID_ARGUMENT" } }],
    error: ["http", /answered 400: The model is not there/u]
  },
  {
    source: "voideditor/void#557",
    status: 400,
    body: {
      error: {
        message: JSON.stringify({ error: { code: 400, message: "The key has no access" } }, null, 1),
        code: 400,
        status: "Bad Request"
      }
    },
    error: ["http", /answered 400: The key has no access/u]
  },
  {
    source: "ogkalu2/comic-translate#403",
    status: 429,
    body: {
      error: {
        code: 429,
        message: "You exceeded your current quota. Please retry in 58.821668433s.",
        status: "RESOURCE_EXHAUSTED"
      }
    },
    error: ["rate_limited", /retry in 58/u],
    waits: [58_822]
  },
  {
    source: "holon-run/holon#2720",
    status: 429,
    headers: ["retry-after: 13"],
    body: { detail: "Rate limit exceeded" },
    error: ["rate_limited", /Rate limit exceeded/u],
    waits: [13_000]
  },
  {
    source: "cloudfoundry/cloud_controller_ng#2544",
    status: 429,
    headers: ["retry-after: 4102444800"],
    body: { error: { message: "slow" } },
    error: ["rate_limited", /slow/u]
  },
  {
    source: "diegosouzapw/OmniRoute#8210",
    events: [{ choices: [], error: { code: 400, message: "Worker local total request limit reached (33/32)" } }],
    error: ["http", /Worker local total request limit reached/u]
  },
  {
    source: "diegosouzapw/OmniRoute#4177",
    events: [delta({ content: "Half" }), { error: { code: 400, message: "This model is experiencing high demand" } }],
    error: ["http", /experiencing high demand/u]
  },
  {
    source: "BerriAI/litellm#22793",
    events: [{ error: { message: "the deployment is gone", type: "None", param: "None", code: null } }],
    error: ["http", /the deployment is gone/u]
  },
  {
    source: "jgravelle/jmunch-mcp#5",
    status: 502,
    headers: ["content-type: text/event-stream"],
    body: 'data: {"error":{"message":"upstream said no","code":502}}',
    error: ["http", /answered 502: upstream said no/u]
  },
  {
    source: "bigduu/Bamboo-agent#355",
    api: "responses",
    events: [
      { type: "response.output_text.delta", delta: "Half" },
      {
        type: "response.failed",
        response: { status: "failed", error: { message: "the worker died", type: "api_error" } }
      }
    ],
    error: ["http", /the worker died/u]
  },
  {
    source: "zyycn/codex-proxy-rs#90",
    api: "responses",
    events: [
      {
        type: "error",
        error: { type: "invalid_request_error", code: "bad_thing", message: "This cannot be served" },
        sequence_number: 2
      }
    ],
    error: ["http", /This cannot be served/u]
  },
  {
    source: "diegosouzapw/OmniRoute#4942",
    body: { id: "x", object: "chat.completion", choices: [] },
    error: ["malformed", /is not a chat completion/u]
  },
  {
    source: "NVIDIA-AI-Blueprints/llm-router#33",
    status: 400,
    headers: ["content-type: text/html"],
    body: "Input required: specify prompt or messages",
    error: ["http", /answered 400: Input required: specify prompt or messages/u]
  },
  {
    source: "browseros-ai/BrowserOS#70",
    status: 403,
    body: { error: { message: "This model is not for you", type: "invalid_request_error", param: null, code: null } },
    error: ["http", /answered 403 \(is the model's secret right\?.*: This model is not for you/u]
  },
  {
    source: "open-webui/open-webui#29628",
    events: [delta({ content: "Half of" })],
    error: ["unreachable", /broke off/u]
  },
  {
    source: "earendil-works/pi#9595",
    status: 429,
    headers: ["retry-after: 30"],
    body: "",
    error: ["rate_limited", /rate limit is reached/u],
    waits: [30_000]
  }
]

const play = Effect.fnUntraced(function* (report: Report) {
  const server = yield* serveParts([partOf(fileOf(report))])
  const provider = { endpoint: server.endpoint } as Parameters<typeof asking>[0]
  const announced = yield* Deferred.make<void>()
  const asked = asking(provider, { api: report.api ?? "chat" }, {}, TOOLS, announced)
  yield* Effect.forkScoped(Effect.andThen(Deferred.await(announced), TestClock.adjust("1 minute")))
  return yield* asked
})

describe("an answer with a value that is absent, null or empty", () => {
  for (const report of EMPTY)
    it.effect(`is read as it was meant: ${report.source}`, () =>
      Effect.gen(function* () {
        const { error, text, tool_calls } = (yield* play(report)).completion
        assert.isUndefined(error)
        assert.strictEqual(text ?? "", report.text ?? "")
        assert.deepStrictEqual(tool_calls, report.calls ?? [])
      })
    )
})

describe("an error of a provider", () => {
  for (const report of ERRORS)
    it.effect(`is told in its words: ${report.source}`, () =>
      Effect.gen(function* () {
        const { completion, waits } = yield* play(report)
        const [kind, says] = report.error ?? [undefined, /^$/u]
        assert.strictEqual(completion.error?.kind, kind, completion.error?.message)
        assert.match(completion.error?.message ?? "", says)
        assert.notMatch(completion.error?.message ?? "", /[\n<]/u)
        if (report.waits !== undefined) assert.deepStrictEqual(waits.slice(0, 1), report.waits)
      })
    )
})
