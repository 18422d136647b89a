/** The operator API on `socks/choird.sock`, which no agent ever sees (D10). It opens last: until then choird is not ready. */
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Cause, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { SKILL_BUNDLE_BYTES_MAX } from "#schema/SkillOffer.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { layerChatCommands } from "#src/choird/chatcommands/layerChatCommands.ts"
import { type HttpApp, listen, refusalResponse, withBodies } from "#src/shared/wire/http.ts"
import { Updates } from "#src/choird/agents/Updates.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { AgentSummaries } from "./AgentSummaries.ts"
import { askedByOperator, auditedRequests } from "#src/choird/listeners/auditedRequests.ts"
import { ChatStream } from "./ChatStream.ts"
import { layerOperatorAgents, layerOperatorUpdates } from "./OperatorAgents.ts"
import { layerOperatorApprovals } from "./OperatorApprovals.ts"
import {
  layerOperatorAudit,
  layerOperatorDatabase,
  layerOperatorSystem,
  layerOperatorWorkspaces
} from "./OperatorSystem.ts"
import { layerOperatorChat } from "./OperatorChat.ts"
import { layerOperatorConfig } from "./OperatorConfig.ts"
import { layerOperatorResume, layerOperatorSessionDetail, layerOperatorSessions } from "./OperatorSessions.ts"
import { layerOperatorMemory } from "./OperatorMemory.ts"
import { layerOperatorDms } from "./OperatorDms.ts"
import { layerOperatorPlans } from "./OperatorPlans.ts"
import { layerOperatorRetention } from "./OperatorRetention.ts"
import { layerOperatorRuns, layerOperatorSkills } from "./OperatorSkills.ts"
import { layerSchemaErrors } from "#src/choird/api/schemaErrors.ts"
import { awayIn } from "#src/choird/database/DatabaseAway.ts"
import { DATABASE_RETRY_MS_MAX } from "#src/choird/database/DatabaseLock.ts"

/** Reports a database that is away, busy or full, with a time to retry, instead of a defect with a reference into the log. */
const tellingOfDatabase = (app: HttpApp): HttpApp =>
  Effect.catchCause(app, (cause) => {
    const away = awayIn(cause)
    if (away === undefined || Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    const { problem } = away
    return Effect.as(
      Effect.logWarning("a request failed because of the database", { problem }),
      refusalResponse({
        status: 500,
        type: "DATABASE_AWAY",
        message: `the database is unavailable: ${problem}`,
        hint: "check that it runs and has free disk space, then ask again; choirctl status says whether it answers",
        retry_after_ms: DATABASE_RETRY_MS_MAX
      })
    )
  })

/** Open connections to the operator's socket. */
const OPERATOR_CONNECTIONS_MAX = 64

/** A body with the files of a skill, in base64, and what is said about them. */
const SKILL_BODY_BYTES_MAX = 2 * SKILL_BUNDLE_BYTES_MAX
const WITH_SKILL = /^\/skills\/(?:offer|add)$/u

/** Takes the files of a skill, whose requests alone may be that large. */
const takingSkills = (app: HttpApp): HttpApp =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
    WITH_SKILL.test(url) ? withBodies(SKILL_BODY_BYTES_MAX)(app) : app
  )

/** @param version of choird, as its package says. */
export const layerOperatorServer = (version: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { home } = yield* ConfigStore
      const audited = yield* auditedRequests
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
            layerOperatorMemory,
            layerOperatorDms,
            layerOperatorPlans,
            layerOperatorSkills,
            layerOperatorRuns,
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
            layerChatCommands
          ]),
          Layer.provide(NodeHttpServer.layerHttpServices)
        )
      )
      const path = join(home, "socks", "choird.sock")
      yield* listen(audited(takingSkills(tellingOfDatabase(app)), askedByOperator), {
        path,
        connectionsMax: OPERATOR_CONNECTIONS_MAX
      })
    })
  )
