/** One small completion that has to call a tool: whether agents can work with a model. */
import { Clock, Effect, Redacted, Result, Schema } from "effect"
import type { Model } from "#schema/Config.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { withoutRefused } from "#src/shared/model/requestParameters.ts"
import { type ParameterChanges, requestParameters } from "#src/shared/model/requestParameters.ts"
import { apiAddress, hasRequestPath } from "#src/shared/wire/apiAddress.ts"
import { ask, isWebPage, quoted, type TrialAnswer, TrialFailed } from "./trialHttp.ts"

/** A model's entry in config.json, or the part that the wizard has asked for. */
export type TriedModel = Pick<Model, "endpoint" | "model"> | Model

/** How a trial went. */
export interface Tried {
  readonly took_ms: number
  /** Parameters that the provider refused, in its words; agents leave them out, or send a limit under its other name (D47). */
  readonly refused_parameters: ReadonlyArray<string>
}

/** How a model that works answered. */
export const triedWords = (model: string, { refused_parameters, took_ms }: Tried): string => {
  const called = `${safeLine(model)} called a tool after ${(took_ms / 1000).toFixed(1)} s`
  return refused_parameters.length === 0
    ? called
    : `${called}; the provider refuses ${refused_parameters.join(", ")}, and agents stop sending it after the first refusal`
}

const TOOL = "choir_check"
/** Characters that a header may have. */
const KEY = /^[\x21-\x7e]+$/u

/** The last line is an instruction that the offline model follows as well. */
const MESSAGES = [
  { role: "system", content: "You test a connection. You answer with one tool call and no text." },
  { role: "user", content: `call ${TOOL} {"word": "ready"}` }
]

const TOOLS = [
  {
    type: "function",
    function: {
      name: TOOL,
      description: "Report that tool calls work",
      parameters: {
        type: "object",
        properties: { word: { type: "string", description: "The word to report" } },
        required: ["word"],
        additionalProperties: false
      }
    }
  }
]

const Completion = Schema.fromJsonString(
  Schema.Struct({
    choices: Schema.NonEmptyArray(
      Schema.Struct({
        message: Schema.Struct({
          tool_calls: Schema.optionalKey(
            Schema.NullOr(Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String }) })))
          )
        })
      })
    )
  })
)
const decode = Schema.decodeUnknownResult(Completion)

const noTools = (model: string, said: string) =>
  new TrialFailed({
    obstacle: "tools",
    problem: `the model ${model} cannot call tools, which agents need for everything they do${said}`,
    fix: "Choose a model that supports tool calling"
  })

/** The meaning of an error status, and its fix. */
const refusal = (model: TriedModel, answer: TrialAnswer, key: string | undefined): TrialFailed => {
  const { status } = answer
  const { host } = new URL(model.endpoint)
  const said = isWebPage(answer) ? "" : quoted(answer, key)
  const failed = (obstacle: TrialFailed["obstacle"], problem: string, fix: string) =>
    new TrialFailed({ obstacle, problem: `${problem}${said}`, fix })
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
      `${host} has nothing at this address (404), to which Choir adds /chat/completions`,
      `Use the address ${apiAddress(model.endpoint)}`
    )
  if (status === 404 && !/\bmodels?\b/iu.test(answer.text))
    return failed(
      "address",
      `${host} has nothing at ${model.endpoint} (404): the address may be wrong`,
      `Check the address, which usually ends in /v1, and then the model's name ${model.model}`
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

const understood = (model: TriedModel, answer: TrialAnswer, key: string | undefined) => {
  if (answer.status < 200 || answer.status > 299) return Effect.fail(refusal(model, answer, key))
  const completion = decode(answer.text)
  if (Result.isFailure(completion))
    return Effect.fail(
      new TrialFailed({
        obstacle: "address",
        problem: `${new URL(model.endpoint).host} answers with ${isWebPage(answer) ? "a web page" : "something that is not a chat completion"}${isWebPage(answer) ? "" : quoted(answer, key)}`,
        fix: "The API's address usually ends in /v1"
      })
    )
  const calls = completion.success.choices[0].message.tool_calls ?? []
  return calls.some((call) => call.function.name === TOOL) ? Effect.void : Effect.fail(noTools(model.model, ""))
}

const NONE: ParameterChanges = new Map()

const parametersOf = (model: TriedModel, changes: ParameterChanges) =>
  "max_tokens" in model ? requestParameters(model, changes) : [["model", model.model] as const]

/** Asks as an agent would: again without each parameter that the provider names as the one it refuses. */
const negotiated = Effect.fnUntraced(function* (model: TriedModel, key: string | undefined) {
  let changes = NONE
  while (true) {
    const parameters = parametersOf(model, changes)
    const answer = yield* ask(`${model.endpoint.replace(/\/+$/u, "")}/chat/completions`, {
      method: "POST",
      headers: {
        accept: "application/json",
        "content-type": "application/json",
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` })
      },
      body: JSON.stringify({ ...Object.fromEntries(parameters), messages: MESSAGES, tools: TOOLS })
    })
    const sent = parameters.map(([name]) => name)
    const next = answer.status === 400 ? withoutRefused(answer.text, sent, changes) : undefined
    if (next === undefined) return { answer, refused_parameters: [...changes.keys()] }
    changes = next.changes
  }
})

/** Asks the model for one tool call. Costs a few hundred tokens. */
export const tryModel = Effect.fn("tryModel")(function* (model: TriedModel, key: Redacted.Redacted | undefined) {
  const secret = key === undefined ? undefined : Redacted.value(key)
  if (secret !== undefined && !KEY.test(secret))
    return yield* new TrialFailed({
      obstacle: "key",
      problem: "the key has a space, a line break or another character that keys do not have",
      fix: "Copy the key again from your account at the provider, as one line"
    })
  const started_ms = yield* Clock.currentTimeMillis
  const { answer, refused_parameters } = yield* negotiated(model, secret)
  yield* understood(model, answer, secret)
  return { took_ms: (yield* Clock.currentTimeMillis) - started_ms, refused_parameters } satisfies Tried
})
