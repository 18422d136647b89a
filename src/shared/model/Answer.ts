/** A model's answer in one shape for all APIs, and the limits of what a hostile one may hold. */
import { Predicate, Result, Schema } from "effect"
import type { ModelError } from "#schema/Event.ts"
import { withLengthCode } from "#src/shared/wire/errorMessage.ts"
import { isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"
import { oneLine } from "#src/shared/text/foreignText.ts"
import type { Counted } from "./usage.ts"

/** Tool calls in one answer of a model. */
export const MODEL_TOOL_CALLS_MAX = 32
/** The arguments of one tool call, as the model sent them. */
export const MODEL_TOOL_ARGUMENT_BYTES_MAX = 64 * 1024
/** How deep the arguments of a tool call may nest, far below what an event may (EVENT_DEPTH_MAX). */
const MODEL_TOOL_ARGUMENT_DEPTH_MAX = 100

/** Why a model stopped, in the words of chat completions. What a model or a provider does not want to answer is an error. */
export type FinishReason = "stop" | "tool_calls" | "length"

export interface Answer {
  /** Empty where the model said nothing. */
  readonly content: string
  readonly tool_calls: ReadonlyArray<{ readonly name: string; readonly input: Schema.Json }>
  readonly finish_reason: FinishReason
  readonly usage?: Counted
  /** The reasoning that the provider wants back with the calls, as JSON in a text, whose bytes no store changes. */
  readonly reasoning?: string
}

export const problem = (kind: ModelError["kind"], message: string, more: Partial<ModelError> = {}): ModelError => ({
  kind,
  message,
  ...more
})

/** The words of a provider, shortened and on one line, since they may be a whole page. They have no label: it writes each word of the model as well. */
export const excerpt = (text: string): string => oneLine(text)

/** The provider's reasons to stop. A reason that nobody knows is taken for the usual one. */
const CUT = new Set([
  "length",
  "max_tokens",
  "model_length",
  "max_output_tokens",
  "model_context_window_exceeded",
  // DeepSeek stops so when it is overloaded; what it wrote can be continued.
  "insufficient_system_resource"
])
const FILTERED = new Set(["content_filter", "sensitive", "safety", "prohibited_content"])
const REFUSED = new Set(["refusal"])
const FAILED = new Set(["error", "network_error"])
const CALLED = new Set(["tool_calls", "function_call", "tool_use"])

/** The parts of an answer that a codec found. */
export interface Parts {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>
  readonly reason: string | null | undefined
  /** The model's words on why it does not answer. */
  readonly refusal?: string
  readonly usage?: Counted | undefined
  readonly reasoning?: string | undefined
}

/**
 * Some servers put a model's reasoning in front of its answer instead of into a field of its own. It is nobody's to read
 * (invariant 6); an answer of thoughts alone counts as empty. Where the template of the prompt opens the thoughts, only their end comes, in a
 * line of its own.
 */
const withoutThoughts = (content: string): string => {
  const opening = /^\s*<(think|thinking|reasoning)>/u.exec(content)
  if (opening === null) {
    const end = /(?:^|\n)[ \t]*<\/think>[ \t]*(?:\n|$)/u.exec(content)
    const isOpened = end !== null && !content.slice(0, end.index).includes("<think>")
    return isOpened ? content.slice(end.index + end[0].length).trimStart() : content
  }
  const closing = `</${opening[1]}>`
  const end = content.indexOf(closing)
  return end < 0 ? "" : content.slice(end + closing.length).trimStart()
}

/** An answer that its provider, or its model, does not want to give. */
const refusalOf = ({ reason, refusal, text }: Parts): ModelError | undefined => {
  const words = (refusal ?? "").trim()
  const why = (reason ?? "").toLowerCase()
  const said = text.trim()
  const rest = said === "" ? "" : `: ${said}`
  if (words !== "") return problem("content_filter", excerpt(`the model refused: ${words}`))
  if (REFUSED.has(why)) return problem("content_filter", excerpt(`the model refused${rest}`))
  if (FILTERED.has(why))
    return problem("content_filter", excerpt(`the provider's content filter stopped the answer${rest}`))
  return FAILED.has(why) ? problem("http", "the provider broke off its answer", { status: 502 }) : undefined
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

/** Whether a call goes back as its model wrote it: an object of texts that the log can store. */
const isReplayed = (input: Schema.Json): boolean =>
  typeof input === "object" &&
  input !== null &&
  !Array.isArray(input) &&
  JSON.stringify(input) === JSON.stringify(storableJson(input))

/** Checks the parts and makes an answer of them, the same for every API. */
export const answerOf = (parts: Parts): Result.Result<Answer, ModelError> => {
  const { calls, reason, reasoning, text, usage } = parts
  const refused = refusalOf(parts)
  if (refused !== undefined) return Result.fail(refused)
  if (calls.length > MODEL_TOOL_CALLS_MAX)
    return Result.fail(
      problem("malformed", `${calls.length} tool calls in one answer; ${MODEL_TOOL_CALLS_MAX} are allowed`)
    )
  const large = calls.find((call) => Buffer.byteLength(call.arguments) > MODEL_TOOL_ARGUMENT_BYTES_MAX)
  if (large !== undefined)
    return Result.fail(problem("too_large", `the arguments of ${large.name.slice(0, 64)} are too large`))
  const why = (reason ?? "").toLowerCase()
  const isCut = CUT.has(why)
  const tool_calls = calls.map((call, index) => {
    // Arguments that were cut before their first character are not those of a call without any.
    const isWhole = !isCut || index < calls.length - 1
    const parsed = decodeJson(call.arguments === "" && isWhole ? "{}" : call.arguments)
    const isUsable = Result.isSuccess(parsed) && !isDeeperThan(parsed.success, MODEL_TOOL_ARGUMENT_DEPTH_MAX)
    return { name: call.name.slice(0, 128), input: isUsable ? parsed.success : call.arguments }
  })
  const said = withoutThoughts(text)
  // Calls that are replayed otherwise than they were written cannot be behind their reasoning.
  const isKept = tool_calls.length > 0 && !isCut && tool_calls.every(({ input }) => isReplayed(input))
  return Result.succeed({
    // An answer of blanks says nothing, and no provider takes it back.
    content: said.trim() === "" ? "" : said,
    tool_calls,
    finish_reason: isCut ? "length" : calls.length > 0 || CALLED.has(why) ? "tool_calls" : "stop",
    ...(usage === undefined ? {} : { usage }),
    ...(reasoning === undefined || !isKept ? {} : { reasoning })
  })
}

/** Kinds of error that providers name where an answer has no status of its own, in the middle of a stream. */
const STATUS_OF: ReadonlyArray<readonly [RegExp, number]> = [
  [/overloaded/u, 529],
  [/rate.?limit/u, 429],
  [/billing|quota/u, 402],
  [/authentication/u, 401],
  [/permission/u, 403],
  [/invalid.?request|bad.?request/u, 400],
  [/timeout/u, 504]
]

/** Failures that pass by themselves, by the status that names them. */
export const KIND_OF: ReadonlyMap<number, ModelError["kind"]> = new Map([
  [408, "timeout"],
  [429, "rate_limited"]
])

/** An error that a provider sent in place of an answer or in the middle of one, with a status of success in front of it. */
export const errorIn = (body: unknown): ModelError | undefined => {
  // Google wraps it in a list.
  if (Array.isArray(body)) return body.length === 1 ? errorIn(body[0]) : undefined
  const isBare = Predicate.hasProperty(body, "object") && body.object === "error"
  const error = isBare ? body : Predicate.hasProperty(body, "error") ? body.error : undefined
  if (typeof error !== "object" || error === null) return undefined
  const of = (key: string): unknown => (Predicate.hasProperty(error, key) ? error[key] : undefined)
  const code = of("code")
  const kinds = [of("type"), code].filter((kind) => typeof kind === "string").join(" ")
  const known = STATUS_OF.find(([kind]) => kind.test(kinds))?.[1] ?? 502
  const status = typeof code === "number" && code >= 400 && code <= 599 ? Math.trunc(code) : known
  const words = of("message")
  const said = withLengthCode(typeof words === "string" && words !== "" ? words : kinds, code)
  return problem(KIND_OF.get(status) ?? "http", `the provider answered ${status}: ${excerpt(said)}`, { status })
}
