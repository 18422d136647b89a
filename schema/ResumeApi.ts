/** Going on with a session that was stopped or broken off, as `choirctl session resume` asks for it. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId, Epoch, SessionId } from "./Ids.ts"

/** The agent runs in this session again. `epoch` counts its starts within it (E13). */
export const ResumedSession = Schema.Struct({ session_id: SessionId, agent_id: AgentId, epoch: Epoch })
export type ResumedSession = typeof ResumedSession.Type

export const ResumeApi = HttpApiGroup.make("resume").add(
  HttpApiEndpoint.post("resume", "/sessions/:id/resume", {
    params: { id: SessionId },
    success: ResumedSession,
    error: ApiErrors
  })
)
