/** The offline model behind the OpenAI HTTP protocol (E3): `POST /v1/chat/completions` and `GET /v1/models`. */
import { Clock, Effect, Result, Schema, type Scope } from "effect"
import { CliError } from "effect/cli"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { ChatRequest, OFFLINE_MODEL } from "./ChatCompletion.ts"
import { connections, listen } from "./HttpListener.ts"
import { parseJson } from "#demo/dialects/looseJson.ts"
import { bodyRefusal } from "#demo/dialects/Dialect.ts"
import { respond, tokens } from "./respond.ts"
import { responseOf } from "./responseOf.ts"

/** A request's body to the offline model. */
export const OFFLINE_MODEL_BODY_BYTES_MAX = 8 * 1024 * 1024
/** Tokens of the offline model's prompt and answer together, as those of the models that it stands in for. */
const OFFLINE_MODEL_CONTEXT_TOKENS = 128_000

/** The address could not be taken, as a rule because another program has it. */
export class AddressUnavailable extends Schema.TaggedError<AddressUnavailable>()("AddressUnavailable", {
  host: Schema.String,
  port: Schema.Int,
  cause: Schema.Defect()
}) {
  override get [CliError.userMessage]() {
    return this.message
  }

  override get message() {
    const reason = this.cause instanceof Error ? this.cause.message : String(this.cause)
    return `cannot listen on ${this.host}:${this.port} (${reason}): give another --port, or --port 0 for a free one`
  }
}

/** An error in the shape of the protocol. */
const refusal = (status: number, code: string, message: string, param: string | null = null) =>
  HttpServerResponse.jsonUnsafe({ error: { message, type: "invalid_request_error", param, code } }, { status })

/** The offline model takes what a real one would, so that what works with it works with them. */
const TRAITS = {
  context_window: OFFLINE_MODEL_CONTEXT_TOKENS,
  refuses: [],
  extensions: [],
  count: (text: string) => tokens(text.length)
}

const decodeRequest = Schema.decodeUnknownResult(Schema.fromJsonString(ChatRequest))

const complete = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const text = yield* request.text
  const refused = bodyRefusal(parseJson(text), TRAITS)
  if (refused !== undefined)
    return refusal(refused.status, refused.code ?? "invalid_request", refused.message, refused.param)
  const decoded = decodeRequest(text)
  if (Result.isFailure(decoded)) return refusal(400, "invalid_request", decoded.failure.message)
  const { model } = decoded.success
  if (model !== OFFLINE_MODEL) return refusal(404, "model_not_found", `only the model ${OFFLINE_MODEL} is served here`)
  const now_ms = yield* Clock.currentTimeMillis
  // A report that is nested too deep for the stack is the only thing that a decoded request can make respond throw on.
  const reply = yield* Effect.result(Effect.try(() => respond(decoded.success, Math.floor(now_ms / 1000))))
  return Result.isFailure(reply)
    ? refusal(400, "invalid_request", "the request holds JSON that is nested too deep")
    : responseOf(decoded.success, reply.success)
}).pipe(
  Effect.catchReason("HttpServerError", "RequestParseError", ({ reason }) =>
    Effect.succeed(
      reason === "BodyTooLarge"
        ? refusal(413, "body_too_large", `a request is at most ${OFFLINE_MODEL_BODY_BYTES_MAX} bytes`)
        : refusal(400, "invalid_request", "the request could not be read")
    )
  )
)

const models = HttpServerResponse.jsonUnsafe({
  object: "list",
  data: [{ id: OFFLINE_MODEL, object: "model", created: 0, owned_by: "choir" }]
})

const app = (base: string) =>
  Effect.gen(function* () {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const path = url.split("?", 1)[0] ?? url
    if (method === "POST" && path === `${base}/v1/chat/completions`) return yield* complete
    if (method === "GET" && path === `${base}/v1/models`) return models
    return refusal(404, "unknown_url", "only POST /v1/chat/completions and GET /v1/models are served here")
  })

/** Serves the model until the scope closes; answers with the endpoint for config.json, which ends in `/v1`. */
export const serveOfflineModel = Effect.fn("OfflineModel.serve")(function* (address: {
  readonly host: string
  readonly port: number
}): Effect.fn.Return<string, AddressUnavailable, Scope.Scope> {
  const url = yield* listen(app(""), { ...address, body_bytes_max: OFFLINE_MODEL_BODY_BYTES_MAX }).pipe(
    Effect.mapError(({ cause }) => new AddressUnavailable({ ...address, cause }))
  )
  return `${url}/v1`
})

/** Takes connections that another process accepted. Only paths below the key are served, so that nobody else uses the model. */
export const takeConnections = (key: string) =>
  connections(app(`/${key}`), { body_bytes_max: OFFLINE_MODEL_BODY_BYTES_MAX })
