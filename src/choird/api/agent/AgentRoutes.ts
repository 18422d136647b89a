/** Builds the agent API once and mounts it for the sessions' sockets and the TCP listener. */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AgentApi } from "#schema/AgentApi.ts"
import { layerAgentHandlers } from "./AgentHandlers.ts"
import { AgentApp } from "#src/choird/listeners/AgentApp.ts"
import { layerLeaseAuth } from "./LeaseAuth.ts"
import { layerOncePerRequest } from "./OncePerRequest.ts"
import { layerSchemaErrors } from "./SchemaErrors.ts"

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
