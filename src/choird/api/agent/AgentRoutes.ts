/** Builds the agent API once and mounts it for the sessions' sockets and the TCP listener. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Deferred, Effect, Exit, Layer, Schema } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AgentApi, Lease, OncePerRequest, RequestId } from "#schema/AgentApi.ts"
import { layerAgentHandlers } from "./AgentHandlers.ts"
import { AgentApp } from "#src/choird/listeners/AgentApp.ts"
import { layerLeaseAuth } from "./LeaseAuth.ts"
import { layerSchemaErrors } from "#src/choird/api/schemaErrors.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { conflict } from "#src/choird/api/refusals.ts"
import { CurrentOpenSession } from "#src/choird/listeners/OpenSession.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

const REMEMBERED: ReadonlySet<string> = new Set(["REQUEST_APPROVAL", "TERMINATE_SELF", "EXECUTE_HOST_TOOL"])

const isRequestId = Schema.is(RequestId)

const isReply = (response: HttpServerResponse.HttpServerResponse) => response.status >= 200 && response.status < 300

const layerOncePerRequest = Layer.succeed(
  OncePerRequest,
  Effect.fnUntraced(function* (httpEffect, { endpoint }) {
    const caller = yield* Lease
    const session = yield* CurrentOpenSession
    const request = yield* HttpServerRequest.HttpServerRequest
    const id = request.headers["x-choir-request-id"]
    // A fenced epoch must not spend the ids of its successor, and an invalid id is refused when the headers are decoded.
    if (session === undefined || caller.standing === "superseded" || !isRequestId(id)) return yield* httpEffect
    const digest = sha256(`${endpoint.identifier}\n${yield* Effect.orDie(request.text)}`)
    const remembered = REMEMBERED.has(endpoint.identifier)
    // A waiter whose leader failed becomes the next leader, so each turn of the loop ends one request.
    while (true) {
      const found = session.requests.begin(id, digest, remembered, yield* monotonicMs)
      switch (found.type) {
        case "reused":
          return yield* conflict("REQUEST_ID_REUSED", "this request id was used for another request: take a new one")
        case "reply":
          return found.reply
        case "run":
          return yield* endpoint.identifier === "HEARTBEAT" ? session.heartbeats.withPermit(httpEffect) : httpEffect
        case "wait": {
          const outcome = yield* Deferred.await(found.running)
          if (outcome !== undefined) return outcome
          break
        }
        case "lead": {
          const { running } = found
          return yield* httpEffect.pipe(
            Effect.onExit((exit) =>
              Effect.map(monotonicMs, (now_ms) => {
                const reply = Exit.isSuccess(exit) && isReply(exit.value) ? exit.value : undefined
                session.requests.finish(id, running, reply, now_ms)
              })
            ),
            // A caller that disconnects does not stop what others wait for.
            Effect.uninterruptible
          )
        }
      }
    }
  })
)

const Routes = HttpApiBuilder.layer(AgentApi).pipe(
  Layer.provide(layerAgentHandlers),
  Layer.provide([layerLeaseAuth, layerOncePerRequest, layerSchemaErrors]),
  Layer.provide(NodeHttpServer.layerHttpServices)
)

export const layerAgentRoutes = Layer.effectDiscard(
  Effect.gen(function* () {
    const app = yield* AgentApp
    yield* app.mount(yield* HttpRouter.toHttpEffect(Routes))
  })
)
