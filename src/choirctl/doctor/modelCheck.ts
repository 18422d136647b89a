/** One small request that has to call a tool, through the API and by the codec that agents use: whether they can work with a model. */
import { Effect, Redacted, Result } from "effect"
import type { Model } from "#schema/Config.ts"
import type { Usage } from "#schema/Event.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { Answer } from "#src/shared/model/Answer.ts"
import { lowerLimit, withAnswerMax } from "#src/shared/model/answerLimit.ts"
import type { Asked } from "#src/shared/model/Asked.ts"
import { CODECS, readStream, readWhole } from "#src/shared/model/codecs.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { quirkWarnings } from "#src/shared/model/quirks.ts"
import { LIMITS, outputTokensMax, withoutRefused } from "#src/shared/model/requestParameters.ts"
import type { ParameterChanges } from "#src/shared/model/Asked.ts"
import { costMax, usageOf } from "#src/shared/model/usage.ts"
import { apiAddress, hasRequestPath } from "#src/shared/wire/apiAddress.ts"
import { ask, isWebPage, quoted, type CheckAnswer, CheckFailed } from "./checkHttp.ts"

/** A model's entry in config.json, or the part that the wizard has asked for. */
export type TriedModel =
  | (Pick<Model, "endpoint" | "model"> &
      Partial<Pick<Model, "api" | "provider">> & { readonly price?: Model["price"] | undefined })
  | Model

/** How a check went. */
export interface Tried {
  readonly took_ms: number
  /** Parameters that the provider refused, in its words; agents leave them out, or send a limit under its other name or a smaller one (D47). */
  readonly refused_parameters: ReadonlyArray<string>
  /** The most tokens of an answer that may be asked for, where the provider refused more; agents ask for no more. */
  readonly answer_tokens_max?: number
  /** Whether the answer came as a stream, so that it can be shown while it is written. */
  readonly streams: boolean
  /** Whether the model was seen to think before this call. */
  readonly thinks: boolean
  /** Whether reasoning came with the call, or a signature of it, which agents send back with the call. */
  readonly has_reasoning: boolean
  readonly usage: Usage
  /** The most that a turn of {@link TURN_TOKENS} costs; absent without a price. */
  readonly turn_usd?: number
  readonly warnings: ReadonlyArray<string>
}

/** A turn of usual size: the instructions and tools with some conversation, and an answer of a page. */
const TURN_TOKENS = { prompt: 10_000, answer: 500 }

/** An amount above zero with two digits, rounded up. */
const dollars = (usd: number): string => {
  const unit = 10 ** (Math.floor(Math.log10(usd)) - 1)
  const rounded = Math.ceil(Number((usd / unit).toPrecision(9))) * unit
  return `$${rounded.toPrecision(2).replace(/\.?0+$/u, "")}`
}

/** The thoughts of a model that were seen; a small call may need none. */
const thoughtWords = ({ has_reasoning, thinks, usage }: Tried): ReadonlyArray<string> => {
  const tokens = usage.reasoning === undefined ? "" : ` for ${usage.reasoning} tokens`
  if (thinks && has_reasoning) return [`it thought${tokens} before this call, and agents send that back with the call`]
  if (thinks) return [`it thought${tokens} before this call`]
  return has_reasoning ? ["it showed no thoughts, but its call carries a signature, which agents send back"] : []
}

/** How a model that works answered. */
export const triedWords = (model: string, tried: Tried): string => {
  const { answer_tokens_max, refused_parameters, streams, took_ms, turn_usd, warnings } = tried
  const refused = refused_parameters.map((name) =>
    answer_tokens_max !== undefined && LIMITS.has(name) ? `${name} above ${answer_tokens_max}` : name
  )
  return [
    `${safeLine(model)} called a tool after ${(took_ms / 1000).toFixed(1)} s`,
    ...(streams ? ["it streams its answers"] : []),
    ...thoughtWords(tried),
    ...(turn_usd === undefined
      ? []
      : [
          `a turn of ${TURN_TOKENS.prompt} tokens, with an answer of ${TURN_TOKENS.answer}, costs at most ${dollars(turn_usd)}`
        ]),
    ...(refused.length === 0
      ? []
      : [`the provider refuses ${refused.join(", ")}, and agents stop sending it after the first refusal`]),
    ...warnings
  ].join("; ")
}

/** The keys under which the APIs show thoughts in words. */
const SHOWN_THOUGHTS = new Set(["reasoning", "reasoning_content", "summary", "text", "thinking"])

/** Whether a continuation shows a thought, and not only a signature or what is encrypted. */
const showsThoughts = (reasoning: string | undefined): boolean => {
  let isShown = false
  JSON.parse(reasoning ?? "null", (key, value: unknown) => {
    if (SHOWN_THOUGHTS.has(key) && typeof value === "string" && value.trim() !== "") isShown = true
    return value
  })
  return isShown
}

const TOOL = "choir_check"
/** Characters that a header may have. */
const KEY = /^[\x21-\x7e]+$/u

export const looksLikeKey = (key: string): boolean => KEY.test(key)

/** The last line is an instruction that the offline model follows as well. */
const MESSAGES: ReadonlyArray<Message> = [
  { role: "system", content: "You test a connection. You answer with one tool call and no text." },
  { role: "user", content: `call ${TOOL} {"word": "ready"}` }
]

const TOOLS: ReadonlyArray<Tool> = [
  {
    name: TOOL,
    description: "Report that tool calls work",
    parameters: {
      type: "object",
      properties: { word: { type: "string", description: "The word to report" } },
      required: ["word"],
      additionalProperties: false
    }
  }
]

/** Before the wizard has asked for more, a request has no key that a provider might refuse. */
const BARE = {
  provider: "",
  api: "chat",
  cache: "off",
  temperature: null,
  reasoning_effort: null,
  max_tokens: 4096,
  context_window: 128_000,
  fallback: []
} as const

const entryOf = (model: TriedModel): Model => {
  if ("request_template" in model) return model
  const { price, ...named } = model
  const request_template = (model.api ?? "chat") === "chat" ? { max_tokens: null } : {}
  return { ...BARE, ...named, ...(price === undefined ? {} : { price }), request_template }
}

const noTools = (model: string, said: string) =>
  new CheckFailed({
    obstacle: "tools",
    problem: `the model ${model} cannot call tools, which agents need for everything they do${said}`,
    fix: "Choose a model that supports tool calling"
  })

/** The meaning of an error status, and its fix. */
const refusal = (model: Model, answer: CheckAnswer, key: string | undefined): CheckFailed => {
  const { status } = answer
  const { host } = new URL(model.endpoint)
  const said = isWebPage(answer) ? "" : quoted(answer, key)
  const failed = (obstacle: CheckFailed["obstacle"], problem: string, fix: string) =>
    new CheckFailed({ obstacle, problem: `${problem}${said}`, fix })
  if (status === 401 || status === 403)
    return key === undefined
      ? failed("key", `${host} asks for a key (${status})`, "Enter the provider's key")
      : failed("key", `${host} refuses the key (${status})`, "Copy the key again from your account at the provider")
  if (status === 402) return failed("credit", `the account at ${host} has no credit (402)`, "Add credit there")
  if ([400, 404, 422].includes(status) && /\btools?\b|function.?call/iu.test(answer.text))
    return noTools(model.model, said)
  if (isWebPage(answer))
    return failed("address", `${host} answers with a web page (${status})`, "The API's address usually ends in /v1")
  if (status === 404 && hasRequestPath(model.endpoint))
    return failed(
      "address",
      `${host} has nothing at this address (404), to which Choir adds ${CODECS[model.api].path}`,
      `Use the address ${apiAddress(model.endpoint)}`
    )
  if (status === 404 && !/\bmodels?\b/iu.test(answer.text))
    return failed(
      "address",
      `${host} has nothing at ${model.endpoint} (404): the address may be wrong`,
      `Check the address, which usually ends in /v1; if the API is not ${CODECS[model.api].path}, end the address with the path of its requests, such as /v1/messages`
    )
  if (status === 404)
    return failed(
      "name",
      `${host} has no model ${model.model} at this address (404)`,
      "Check the model's name and the address"
    )
  if (status === 429)
    return failed("busy", `${host} limits how often this account may send requests (429)`, "Try again later")
  if (status >= 500) return failed("broken", `the server at ${host} failed (${status})`, "Try again later")
  if (status >= 300 && status <= 399)
    return failed(
      "address",
      `${host} redirects to another address (${status})`,
      "Enter the address that it redirects to"
    )
  return failed("answer", `${host} refuses the request (${status})`, "Check the model's name and the address")
}

/** A stream begins with the name of a field or with a comment. */
const STREAM = /^\uFEFF?\s*(?::|(?:data|event|id|retry):)/u

/** The answer in a body; `redact` keeps the key out of what an error quotes. */
const answerIn = ({ api }: Model, text: string) => {
  const same = (text: string) => text
  if (!STREAM.test(text)) return readWhole(CODECS[api], text, same)
  const reading = readStream(CODECS[api], same)
  return Result.flatMap(reading.feed(`${text}\n\n`), reading.answer)
}

const understood = (model: Model, answer: CheckAnswer, key: string | undefined): Effect.Effect<Answer, CheckFailed> => {
  if (answer.status < 200 || answer.status > 299) return Effect.fail(refusal(model, answer, key))
  const read = answerIn(model, answer.text)
  if (Result.isFailure(read))
    return Effect.fail(
      new CheckFailed({
        obstacle: read.failure.kind === "malformed" ? "address" : "answer",
        problem: `${new URL(model.endpoint).host} answers with ${isWebPage(answer) ? "a web page" : KINDS[model.api]}${isWebPage(answer) ? "" : quoted(answer, key)}`,
        fix: model.api === "chat" ? "The API's address usually ends in /v1" : "Check the address, and the model's api"
      })
    )
  return read.success.tool_calls.some((call) => call.name === TOOL)
    ? Effect.succeed(read.success)
    : Effect.fail(noTools(model.model, ""))
}

const KINDS: Readonly<Record<Model["api"], string>> = {
  chat: "something that is not a chat completion",
  responses: "something that is not a response",
  messages: "something that is not a message"
}

const NONE: ParameterChanges = new Map()

/** Asks as an agent would: again without each parameter that the provider names as the one it refuses. */
const negotiated = Effect.fnUntraced(function* (configured: Model, key: string | undefined) {
  const codec = CODECS[configured.api]
  let changes = NONE
  let most: number | undefined
  const limits = new Set<string>()
  while (true) {
    const model = withAnswerMax(configured, most)
    const asked: Asked = { model, messages: MESSAGES, tools: TOOLS, changes }
    const body = codec.body(asked)
    const answer = yield* ask(`${model.endpoint.replace(/\/+$/u, "")}${codec.path}`, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        ...codec.headers(model, key)
      },
      body
    })
    const sent = codec.parameters(asked).map(([name]) => name)
    const isRefused = answer.status === 400 || answer.status === 422
    const lower = isRefused ? lowerLimit(answer.text, outputTokensMax(model), most !== undefined) : undefined
    if (lower !== undefined) {
      most = lower
      for (const name of sent) if (LIMITS.has(name)) limits.add(name)
      continue
    }
    const next = isRefused ? withoutRefused(answer.text, sent, changes, model.api) : undefined
    if (next === undefined)
      return {
        answer,
        sent_chars: body.length,
        refused_parameters: [...new Set([...changes.keys(), ...limits])],
        ...(most === undefined ? {} : { answer_tokens_max: most })
      }
    changes = next.changes
  }
})

/** Asks the model for one tool call. Costs a few hundred tokens. */
export const tryModel = Effect.fn("tryModel")(function* (model: TriedModel, key: Redacted.Redacted | undefined) {
  const secret = key === undefined ? undefined : Redacted.value(key)
  if (secret !== undefined && !looksLikeKey(secret))
    return yield* new CheckFailed({
      obstacle: "key",
      problem: "the key has a space, a line break or another character that keys do not have",
      fix: "Copy the key again from your account at the provider, as one line"
    })
  const entry = entryOf(model)
  const started_ms = yield* monotonicMs
  const { answer, answer_tokens_max, refused_parameters, sent_chars } = yield* negotiated(entry, secret)
  const said = yield* understood(entry, answer, secret)
  const turn_usd = costMax(entry, TURN_TOKENS.prompt, TURN_TOKENS.answer)
  const usage = usageOf(entry, sent_chars, JSON.stringify(said.tool_calls).length, said.usage)
  return {
    took_ms: (yield* monotonicMs) - started_ms,
    refused_parameters,
    ...(answer_tokens_max === undefined ? {} : { answer_tokens_max }),
    streams: STREAM.test(answer.text),
    thinks: (usage.reasoning ?? 0) > 0 || showsThoughts(said.reasoning),
    has_reasoning: said.reasoning !== undefined,
    usage,
    ...(turn_usd === 0 ? {} : { turn_usd }),
    warnings: quirkWarnings(entry).map(({ key, message }) => `its ${key} ${message}`)
  } satisfies Tried
})
