/** The operator API on `socks/choird.sock`, which no agent ever sees (D10). It opens last: until then choird is not ready. */
import { join } from "node:path"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { GatewayCommands } from "#src/choird/gateway/GatewayCommands.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { listen } from "#src/shared/wire/http.ts"
import { Updates } from "#src/choird/agents/Updates.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { AgentSummaries } from "./AgentSummaries.ts"
import { askedByOperator, auditedRequests } from "#src/choird/listeners/auditedRequests.ts"
import { ChatStream } from "./ChatStream.ts"
import { tellingOfDatabase } from "#src/choird/api/databaseAway.ts"
import { layerOperatorAgents } from "./OperatorAgents.ts"
import { layerOperatorApprovals } from "./OperatorApprovals.ts"
import { layerOperatorAudit } from "./OperatorAudit.ts"
import { layerOperatorChat } from "./OperatorChat.ts"
import { layerOperatorDatabase } from "./OperatorDatabase.ts"
import { layerOperatorConfig } from "./OperatorConfig.ts"
import { layerOperatorResume } from "./OperatorResume.ts"
import { layerOperatorRetention } from "./OperatorRetention.ts"
import { layerOperatorSessionDetail } from "./OperatorSessionDetail.ts"
import { layerOperatorSessions } from "./OperatorSessions.ts"
import { layerOperatorSkills } from "./OperatorSkills.ts"
import { layerOperatorSystem } from "./OperatorSystem.ts"
import { layerOperatorUpdates } from "./OperatorUpdates.ts"
import { layerOperatorWorkspaces } from "./OperatorWorkspaces.ts"
import { layerSchemaErrors } from "#src/choird/api/agent/SchemaErrors.ts"

/** Open connections to the operator's socket. */
const OPERATOR_CONNECTIONS_MAX = 64

/** @param version of choird, as its package says. */
export const layerOperatorServer = (version: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { home } = yield* ConfigStore
      const audit = yield* Audit
      const app = yield* HttpRouter.toHttpEffect(
        HttpApiBuilder.layer(OperatorApi).pipe(
          Layer.provide([
            layerOperatorSystem(version),
            layerOperatorDatabase(version),
            layerOperatorAgents,
            layerOperatorUpdates
          ]),
          Layer.provide([
            layerOperatorSessions,
            layerOperatorSessionDetail,
            layerOperatorResume,
            layerOperatorRetention,
            layerOperatorSkills,
            layerOperatorChat,
            layerOperatorApprovals,
            layerOperatorConfig,
            layerOperatorAudit,
            layerOperatorWorkspaces
          ]),
          Layer.provide([
            layerSchemaErrors,
            Updates.layer,
            Workspaces.layer,
            AgentSummaries.layer,
            ChatStream.layer,
            GatewayCommands.layer
          ]),
          Layer.provide(NodeHttpServer.layerHttpServices)
        )
      )
      const path = join(home, "socks", "choird.sock")
      yield* listen(auditedRequests(audit, tellingOfDatabase(app), askedByOperator), {
        path,
        connectionsMax: OPERATOR_CONNECTIONS_MAX
      })
    })
  )
