/** A model's answer in one shape for all APIs, and the limits of what a hostile one may hold. */
import { Predicate, Result, Schema } from "effect"
import type { ModelApi } from "#schema/Continuation.ts"
import type { ModelError } from "#schema/Event.ts"
import { withTellingCode } from "#src/shared/wire/errorMessage.ts"
import { isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"
import { oneLine } from "#src/shared/text/foreignText.ts"
import { apiOf, meantArguments } from "./leniency.ts"
import { isSpent, SPENT } from "./providerWords.ts"
import { withoutThoughts } from "./spokenText.ts"
import type { Counted } from "./usage.ts"

/** Tool calls in one answer of a model that run. */
export const MODEL_TOOL_CALLS_MAX = 32
/** Tool calls of one answer that get a result; those beyond {@link MODEL_TOOL_CALLS_MAX} are rejected, and the last one's result counts those that have none. */
const MODEL_TOOL_CALLS_KEPT_MAX = 64
/** The arguments of one tool call, as the model sent them. */
export const MODEL_TOOL_ARGUMENT_BYTES_MAX = 64 * 1024
/** How deep the arguments of a tool call may nest, far below what an event may (EVENT_DEPTH_MAX). */
const MODEL_TOOL_ARGUMENT_DEPTH_MAX = 100

/** Why a model stopped, in the words of chat completions. What a model or a provider does not want to answer is an error. */
export type FinishReason = "stop" | "tool_calls" | "length"

/** A call as its model made it. */
export interface AnsweredCall {
  readonly name: string
  readonly input: Schema.Json
  /** Why it must not run, in words for the model. */
  readonly refused?: string
  /** Calls behind it that have no result of their own: its own has to tell of them. */
  readonly left_out?: number
}

export interface Answer {
  /** Empty where the model said nothing. */
  readonly content: string
  readonly tool_calls: ReadonlyArray<AnsweredCall>
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

/** Keys of an answer that hold thoughts, which are nobody's to read, whatever else is wrong with the answer (invariant 6). */
const THOUGHTS = /^(?:reasoning|thinking|thought|encrypted)/iu

/** An answer that cannot be read, without its thoughts. */
export const unreadable = (what: string, body: unknown): ModelError => {
  const shown = JSON.stringify(body, (key, value: unknown) => (THOUGHTS.test(key) ? undefined : value)) ?? ""
  return problem("malformed", `${what}: ${excerpt(withoutThoughts(shown))}`)
}

/** An answer in the form of another API than the one that was asked. */
export const otherApi = (data: unknown, asked: ModelApi): ModelError | undefined => {
  const api = apiOf(data)
  return api === undefined || api === asked
    ? undefined
    : problem(
        "malformed",
        `the server answers as the API "${api}" does, not as "${asked}": set the model's "api" in config.json to "${api}"`
      )
}

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

/** An answer that its provider, or its model, does not want to give. */
const refusalOf = ({ reason, refusal, text }: Parts): ModelError | undefined => {
  const words = (refusal ?? "").trim()
  const why = (reason ?? "").toLowerCase()
  const said = withoutThoughts(text).trim()
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

const TOO_MANY = `your answer has more than ${MODEL_TOOL_CALLS_MAX} calls, and only the first ${MODEL_TOOL_CALLS_MAX} were run; make this one again in your next answer`

const tooLarge = (bytes: number): string =>
  `its arguments have ${bytes} bytes, and ${MODEL_TOOL_ARGUMENT_BYTES_MAX} are the limit. Nothing was run; write in smaller parts`

/** One call of an answer. What is wrong with it fails it alone. */
const callOf = (call: Parts["calls"][number], isWhole: boolean): AnsweredCall => {
  const name = call.name.slice(0, 128)
  const bytes = Buffer.byteLength(call.arguments)
  if (bytes > MODEL_TOOL_ARGUMENT_BYTES_MAX) return { name, input: {}, refused: tooLarge(bytes) }
  // Arguments that were cut before their first character are not those of a call without any.
  const parsed = decodeJson(call.arguments.trim() === "" && isWhole ? "{}" : call.arguments)
  const meant = Result.map(parsed, meantArguments)
  const isUsable = Result.isSuccess(meant) && !isDeeperThan(meant.success, MODEL_TOOL_ARGUMENT_DEPTH_MAX)
  return { name, input: isUsable ? meant.success : call.arguments }
}

/** The calls of one answer, of which those beyond the limit are refused, and those that no model makes are counted only; `more` of them are in the count without being here. */
export const limitedCalls = (calls: ReadonlyArray<AnsweredCall>, more = 0): ReadonlyArray<AnsweredCall> => {
  const beyond = Math.max(0, calls.length - MODEL_TOOL_CALLS_KEPT_MAX)
  const left_out = calls.reduce((sum, call) => sum + (call.left_out ?? 0), beyond + more)
  return calls.slice(0, MODEL_TOOL_CALLS_KEPT_MAX).map((call, index, { length }) => {
    const refused = call.refused ?? (index < MODEL_TOOL_CALLS_MAX ? undefined : TOO_MANY)
    return {
      ...call,
      ...(refused === undefined ? {} : { refused }),
      ...(left_out === 0 || index < length - 1 ? {} : { left_out })
    }
  })
}

/** Checks the parts and makes an answer of them, the same for every API. */
export const answerOf = (parts: Parts): Result.Result<Answer, ModelError> => {
  const { calls, reason, reasoning, text, usage } = parts
  const refused = refusalOf(parts)
  if (refused !== undefined) return Result.fail(refused)
  const why = (reason ?? "").toLowerCase()
  const isCut = CUT.has(why)
  const kept = calls.slice(0, MODEL_TOOL_CALLS_KEPT_MAX)
  const tool_calls = limitedCalls(
    kept.map((call, index) => callOf(call, !isCut || index < calls.length - 1)),
    calls.length - kept.length
  )
  const said = withoutThoughts(text)
  // Calls that are replayed otherwise than they were written cannot be behind their reasoning.
  const isKept =
    tool_calls.length > 0 &&
    tool_calls.length === calls.length &&
    !isCut &&
    tool_calls.every(({ input, refused }) => refused === undefined && isReplayed(input))
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
  [/overloaded/iu, 529],
  [/rate.?limit|too.?many.?requests|resource.?exhausted/iu, 429],
  [/billing|quota|insufficient.?(?:balance|credit)/iu, 402],
  [/authentication|unauthori[sz]ed|invalid.?api.?key/iu, 401],
  [/permission/iu, 403],
  [/invalid.?request|bad.?request|tool.?use.?failed/iu, 400],
  [/timeout/iu, 504]
]

/** Failures that pass by themselves, by the status that names them. */
export const KIND_OF: ReadonlyMap<number, ModelError["kind"]> = new Map([
  [408, "timeout"],
  [429, "rate_limited"]
])

const isStatus = (status: number): boolean => status >= 400 && status <= 599

/** A status among an error's numbers, which some write as texts. */
const statusIn = (...values: ReadonlyArray<unknown>): number | undefined =>
  values
    .map((value) => (typeof value === "number" || /^\d{3}$/u.test(String(value)) ? Math.trunc(Number(value)) : 0))
    .find(isStatus)

/** The keys under which a server says what is wrong without the word "error", in place of an answer. */
const BARE_KEYS = ["message", "msg", "detail", "status_msg"]
/** The keys of an answer, of a part of one, and of an event. */
const ANSWER_KEYS = ["choices", "output", "content", "usage", "response", "delta", "item"]

const has = (value: unknown, key: string): boolean =>
  Predicate.hasProperty(value, key) && value[key] !== undefined && value[key] !== null

/** The error of the first choice, where OpenRouter has it. */
const choiceError = (body: unknown): unknown => {
  const choices = Predicate.hasProperty(body, "choices") ? body.choices : undefined
  const first: unknown = Array.isArray(choices) ? choices[0] : undefined
  return Predicate.hasProperty(first, "error") && first.error !== null ? first.error : undefined
}

/** An error inside an answer: MiniMax puts one into each answer, and its code 0 means no error. */
const bareError = (body: unknown): unknown => {
  if (Predicate.hasProperty(body, "object") && body.object === "error") return body
  if (ANSWER_KEYS.some((key) => has(body, key))) return undefined
  const base = Predicate.hasProperty(body, "base_resp") ? body.base_resp : undefined
  if (Predicate.hasProperty(base, "status_code") && base.status_code !== 0) return base
  return BARE_KEYS.some((key) => Predicate.hasProperty(body, key) && typeof body[key] === "string" && body[key] !== "")
    ? body
    : undefined
}

/** An error that a provider sent in place of an answer or in the middle of one, with a status of success in front of it. */
export const errorIn = (body: unknown): ModelError | undefined => {
  // Google wraps it in a list.
  if (Array.isArray(body)) return body.length === 1 ? errorIn(body[0]) : undefined
  const own = Predicate.hasProperty(body, "error") ? body.error : undefined
  const error = (own === "" || own === null || own === false ? undefined : own) ?? choiceError(body) ?? bareError(body)
  if (typeof error === "string") return errorOf({ message: error, code: undefined, kinds: "" }, statusIn())
  if (typeof error !== "object" || error === null || Object.keys(error).length === 0) return undefined
  const of = (key: string): unknown => (Predicate.hasProperty(error, key) ? error[key] : undefined)
  const code = of("code")
  const kinds = [of("type"), code, of("status")].filter((kind) => typeof kind === "string").join(" ")
  const message = BARE_KEYS.map(of).find((words) => typeof words === "string" && words !== "")
  const beside = Predicate.hasProperty(body, "status_code") ? body.status_code : undefined
  return errorOf({ message, code, kinds }, statusIn(code, of("status"), of("status_code"), beside))
}

/** An error with its words and its kinds, which name a status where it has none. */
const errorOf = (
  { code, kinds, message }: { readonly message: unknown; readonly code: unknown; readonly kinds: string },
  given: number | undefined
): ModelError => {
  const words = typeof message === "string" ? message : kinds
  const known = STATUS_OF.find(([kind]) => kind.test(kinds))?.[1] ?? (/rate limit/iu.test(words) ? 429 : 502)
  const status = given ?? known
  const said = excerpt(withTellingCode(words, code))
  if (status === 429 && isSpent(`${kinds} ${words}`))
    return problem("http", `${SPENT} (${status}: ${said.replace(/\.$/u, "")})`, { status })
  return problem(KIND_OF.get(status) ?? "http", `the provider answered ${status}: ${said}`, { status })
}
