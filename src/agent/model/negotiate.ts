/**
 * One attempt at a model with what its provider refuses left out: parameters by their names (D47), and pictures and reasoning, of which each
 * would else be in every later request of the lane.
 */
import { Context, Effect, Redacted, Result } from "effect"
import { HttpClient } from "effect/http"
import type { Model } from "#schema/Config.ts"
import type { ModelError } from "#schema/Event.ts"
import type { Answer } from "#src/shared/model/Answer.ts"
import { charsOf } from "#src/shared/model/Codec.ts"
import type { Asked } from "#src/shared/model/Asked.ts"
import { CODECS } from "#src/shared/model/codecs.ts"
import { lowerLimit, withAnswerMax } from "#src/shared/model/answerLimit.ts"
import { REFUSED_PICTURE, shownDigests } from "#src/shared/model/pictures.ts"
import { outputTokensMax, withoutRefused } from "#src/shared/model/requestParameters.ts"
import type { ParameterChanges } from "#src/shared/model/Asked.ts"
import { makeScrub } from "#src/agent/settings/scrub.ts"
import { isOverflow } from "./contextOverflow.ts"
import { isRefusedCall, REFUSED_CALLS_MAX, withRefusedCall } from "./refusedCalls.ts"
import { RequestBodies } from "./RequestBodies.ts"
import { type Heard, request, type RequestFailed } from "./modelRequest.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { reasoningOf } from "#src/shared/model/continuation.ts"
import type { Message } from "#src/shared/model/Conversation.ts"

/** The words of providers about reasoning that came back. */
const OF_REASONING =
  /\bsignature\b|encrypted[_ ]content|(?:redacted[_ ])?thinking.{0,40}\bblocks?\b|reasoning[_ ](?:item|content|details)/iu

/** Whether a provider refused a request for the reasoning in it: that of another key, organization or server, whose proof it cannot check. */
const isOfReasoning = ({ message, status }: ModelError): boolean =>
  (status === 400 || status === 422) && OF_REASONING.test(message)

/** The digests of the reasoning that goes back to this model. */
const sentReasoning = (messages: ReadonlyArray<Message>, model: Model): ReadonlyArray<string> =>
  messages.flatMap((message) => {
    const reasoning = message.role === "assistant" ? reasoningOf(message, model) : undefined
    return reasoning === undefined ? [] : [sha256(reasoning)]
  })

/** The messages without the reasoning that was refused. */
const withoutReasoning = (
  messages: ReadonlyArray<Message>,
  model: Model,
  refused: ReadonlySet<string>
): ReadonlyArray<Message> =>
  refused.size === 0
    ? messages
    : messages.map((message) => {
        const reasoning = message.role === "assistant" ? reasoningOf(message, model) : undefined
        if (reasoning === undefined || message.role !== "assistant" || !refused.has(sha256(reasoning))) return message
        const { continuation: _, ...kept } = message
        return kept
      })

/** The model and key of an attempt, taken once for a whole call: a switch meanwhile counts for the next one (R35, R58). */
export interface Candidate {
  readonly name: string
  readonly model: Model
  readonly key: Redacted.Redacted | undefined
  /** The addresses of choird's host, by its word: an agent in a container has others. */
  readonly own: ReadonlySet<string>
}

export type Prompt = Pick<Asked, "cache_key" | "messages" | "pictures" | "tools">

/** Digests that are remembered of one model's pictures, and of its reasoning; the oldest go first. */
const DIGESTS_MAX = 1000

/** The refusals of one model's provider; of its pictures also those that it took, which are not to blame for a later refusal. */
interface Known {
  changes: ParameterChanges
  /** The most tokens of an answer that may be asked for, where the provider refused more. */
  answer_max: number | undefined
  readonly refused: Set<string>
  readonly taken: Set<string>
  readonly reasoning: Set<string>
}

/** The refusals of the providers of this agent's models, by endpoint and model, of which a configuration has few. */
export class Refusals extends Context.Service<Refusals, Map<string, Known>>()("choir/agent/Refusals") {}

/** A provider may quote the request that it refuses; its words reach people and the log, the key must not, nor a part of it. */
const withoutKey = ({ key }: Candidate) => makeScrub(key === undefined ? [] : [Redacted.value(key)])

const remember = (known: Set<string>, digests: ReadonlyArray<string>) => {
  for (const digest of digests) known.add(digest)
  for (const oldest of known) {
    if (known.size <= DIGESTS_MAX) break
    known.delete(oldest)
  }
}

/** The words of providers about pictures; the statuses go from 400 to 500. */
const OF_A_PICTURE = /\bimages?\b|image_url|input_image|\bvision\b|multi-?modal|mmproj/iu

const isOfAPicture = (error: ModelError): boolean =>
  error.kind === "http" &&
  (error.status ?? 0) >= 400 &&
  (error.status ?? 0) <= 500 &&
  !isOverflow(error) &&
  OF_A_PICTURE.test(error.message)

/** A failed request, with the words of one that the provider does not understand. */
interface Failed extends RequestFailed {
  readonly refused?: string
}

const withoutPictures = (prompt: Prompt, { refused }: Known): Prompt =>
  prompt.pictures === undefined || refused.size === 0
    ? prompt
    : {
        ...prompt,
        pictures: new Map(
          [...prompt.pictures].map(([digest, data]) => [digest, refused.has(digest) ? REFUSED_PICTURE : data])
        )
      }

/** Leaves out from now on what a provider refuses, and says what that is; undefined where nothing can be left out. */
const leaveOut = (
  known: Known,
  failure: Failed,
  {
    answer_max,
    asked,
    model,
    shown
  }: {
    readonly answer_max: number | undefined
    readonly asked: Asked & Pick<Known, "changes">
    readonly model: Model
    /** The digests of the pictures in the request. */
    readonly shown: ReadonlyArray<string>
  }
): { readonly text: string; readonly detail?: Readonly<Record<string, unknown>> } | undefined => {
  const { answered, error, refused } = failure
  if (shown.length > 0 && answered === undefined && isOfAPicture(error)) {
    const fresh = shown.filter((digest) => !known.taken.has(digest))
    remember(known.refused, fresh.length === 0 ? shown : fresh)
    return { text: "refuses images; they are left out from now on" }
  }
  const reasoning = isOfReasoning(error) ? sentReasoning(asked.messages, model) : []
  if (reasoning.length > 0 && reasoning.length <= DIGESTS_MAX) {
    remember(known.reasoning, reasoning)
    return { text: "rejects its earlier reasoning; it is left out from now on" }
  }
  if (refused === undefined) return undefined
  const limit = lowerLimit(refused, outputTokensMax(model), answer_max !== undefined)
  if (limit !== undefined) {
    known.answer_max = limit
    return { text: `rejects this max_tokens; using ${limit} from now on` }
  }
  // The words about a prompt that is too long may name the limit of the answer, which is not what is refused.
  if (isOverflow(error)) return undefined
  const sent = CODECS[model.api].parameters(asked).map(([key]) => key)
  const next = withoutRefused(refused, sent, asked.changes, model.api)
  if (next === undefined) return undefined
  known.changes = next.changes
  const { parameter } = next
  return {
    text: `refuses the parameter ${parameter}; it is left out from now on`,
    detail: { parameter, instead: next.changes.get(parameter) }
  }
}

/** Asks until the provider takes the request, or refuses it for something that cannot be left out. */
const settle = Effect.fnUntraced(function* (
  candidate: Candidate,
  prompt: Prompt,
  sending: (asked: Asked, chars: number) => Effect.Effect<void>,
  lost: Effect.Effect<void>,
  heard: Heard
) {
  const bodies = yield* RequestBodies
  const http = yield* HttpClient.HttpClient
  const refusals = yield* Refusals
  const { model: configured, name } = candidate
  const kind = `${configured.api} ${configured.endpoint} ${configured.model}`
  const known: Known = refusals.get(kind) ?? {
    changes: new Map(),
    answer_max: undefined,
    refused: new Set(),
    taken: new Set(),
    reasoning: new Set()
  }
  refusals.set(kind, known)
  const codec = CODECS[configured.api]
  while (true) {
    const { answer_max, changes } = known
    const model = withAnswerMax(configured, answer_max)
    const messages = withoutReasoning(prompt.messages, model, known.reasoning)
    const asked = { ...withoutPictures({ ...prompt, messages }, known), model, changes }
    const parts = codec.parts(asked)
    const send = sending(asked, charsOf(parts))
    const broken = Effect.logWarning(`the connection to the model "${name}" broke before its answer`).pipe(
      Effect.andThen(lost),
      Effect.andThen(send)
    )
    yield* send
    const shown = shownDigests(asked)
    const endpoint = { ...candidate, redact: withoutKey(candidate) }
    const outcome = yield* Effect.result(
      bodies.use(prompt.cache_key, parts, (body) =>
        Effect.flatMap(request(http, endpoint, body, broken, heard), (answer): Effect.Effect<Answer, Failed> =>
          "refused" in answer ? Effect.fail(answer) : Effect.succeed(answer)
        )
      )
    )
    if (Result.isSuccess(outcome)) {
      remember(known.taken, shown)
      return outcome.success
    }
    const failure: Failed = outcome.failure
    const left_out = leaveOut(known, failure, { answer_max, asked, model, shown })
    if (left_out === undefined) return yield* Effect.fail<RequestFailed>(failure)
    yield* Effect.logWarning(`the model "${name}" ${left_out.text}`, left_out.detail ?? failure.error.message)
  }
})

/**
 * Asks a model, and again without each parameter that the provider refuses by name, with a smaller limit of the answer, and without the pictures and the
 * reasoning that it refuses; none of them is sent any more. Where it refuses a call that the model made, the model learns why and makes another. `sending` hears of each request and its characters before it is sent; `lost` runs after each whose connection broke
 * before its answer.
 */
export const negotiate = Effect.fnUntraced(function* (
  candidate: Candidate,
  prompt: Prompt,
  sending: (asked: Asked, chars: number) => Effect.Effect<void>,
  lost: Effect.Effect<void>,
  heard: Heard
) {
  let asked = prompt
  for (let refused = 0; ; refused += 1) {
    const outcome = yield* Effect.result(settle(candidate, asked, sending, lost, heard))
    if (Result.isSuccess(outcome)) return outcome.success
    const { failure } = outcome
    if (refused >= REFUSED_CALLS_MAX || !isRefusedCall(failure.error)) return yield* Effect.fail<RequestFailed>(failure)
    yield* Effect.logWarning(
      `the server of the model "${candidate.name}" refuses the model's own call`,
      failure.error.message
    )
    // A stream may have been billed before it broke off; a refusal in place of an answer is not.
    if (failure.unfinished === true) yield* lost
    asked = { ...prompt, messages: withRefusedCall(asked.messages, failure.error) }
  }
})
