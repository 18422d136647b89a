/** Builds the agent API once and mounts it on the sessions' sockets. */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { AgentApi } from "#schema/AgentApi.ts"
import { layerAgentHandlers } from "./AgentHandlers.ts"
import { AgentSockets } from "./AgentSockets.ts"
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
    const sockets = yield* AgentSockets
    yield* sockets.mount(yield* HttpRouter.toHttpEffect(Routes))
  })
)
