/** The one place where choird's errors become refusals of its APIs. */
import {
  type ApiError,
  BadRequest,
  Conflict,
  type ErrorDetail,
  Internal,
  NotFound,
  TooLarge,
  TooMany,
  Unauthorized
} from "#schema/ApiError.ts"
import type { BuildError } from "#src/choird/images/Images.ts"
import type { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import type { WorkspaceRefused } from "#src/choird/agents/Workspaces.ts"
import type { ApprovalRefused } from "#src/choird/approvals/ApprovalRefused.ts"
import type { ConfigurationRefused } from "#src/choird/reconfiguration/ConfigurationRefused.ts"
import type { HostToolRefused } from "#src/choird/hosttools/HostTools.ts"
import type { EventTooLarge } from "#src/choird/sessions/EventStore.ts"
import type { SessionUnknown } from "#src/choird/sessions/readLog.ts"
import type { NewerEvents } from "#src/choird/sessions/newerEvents.ts"
import { problemText } from "#src/shared/config/configProblems.ts"
import { defectWords } from "#src/shared/defects.ts"
import type { SkillRefused } from "#src/choird/skillimports/SkillRefused.ts"
import type { TrialRefused } from "#src/choird/trials/TrialRefused.ts"
import type { SteeringRefused } from "#src/choird/sessions/Order.ts"

/** The wait after too many requests of a session. */
const SIGNALS_FULL_RETRY_MS = 5000
/** The wait of an agent while too many host tools run. */
const HOST_TOOL_RETRY_MS = 1000

const detail = (type: string, message: string, hint?: string): ErrorDetail =>
  hint === undefined ? { type, message } : { type, message, hint }

export const badRequest = (message: string) => new BadRequest({ error: detail("BAD_REQUEST", message) })

/** Does not say what was wrong: a caller without a valid token learns nothing (R29). */
export const unauthorized = () => new Unauthorized({ error: detail("AUTH", "no valid token for this session") })

export const notFound = (type: string, message: string, hint?: string) =>
  new NotFound({ error: detail(type, message, hint) })

export const conflict = (type: string, message: string, hint?: string) =>
  new Conflict({ error: detail(type, message, hint) })

export const tooLarge = (message: string, hint?: string) => new TooLarge({ error: detail("TOO_LARGE", message, hint) })

/** @param ref under which the log has the defect (R78). */
export const internal = (ref: string) =>
  new Internal({ error: detail("INTERNAL", defectWords("the request failed", ref)) })

/** The agent has to send what choird lacks before it may end (D18). */
export const notFlushed = (ack_rev: number) =>
  new Conflict({
    error: { ...detail("NOT_FLUSHED", `the newest event here is ${ack_rev}, or has another hash`), ack_rev }
  })

export const queueFull = (agent_id: string, pending: number, retry_after_ms: number) =>
  new TooMany({
    error: {
      ...detail("QUEUE_FULL", `${pending} messages are already waiting for ${agent_id}: send again later`),
      retry_after_ms
    }
  })

export const fromAgentRefused = ({ hint, kind, reason }: AgentRefused): ApiError =>
  kind === "UNKNOWN_AGENT" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

export const fromSessionUnknown = ({ hint, message }: SessionUnknown) => notFound("UNKNOWN_SESSION", message, hint)

/** A session that does not exist, or whose events only a later choird knows. */
export const fromSessionUnreadable = (error: SessionUnknown | NewerEvents) =>
  error._tag === "SessionUnknown" ? fromSessionUnknown(error) : conflict("NEWER_EVENTS", error.message, error.hint)

export const fromSteeringRefused = ({ hint, kind, reason }: SteeringRefused): ApiError => {
  switch (kind) {
    case "EMPTY":
      return new BadRequest({ error: detail(kind, reason, hint) })
    case "TOO_LARGE":
      return tooLarge(reason, hint)
    case "NO_SUCH_JOB":
      return notFound(kind, reason, hint)
    case "SIGNALS_FULL":
      return new TooMany({ error: { ...detail(kind, reason, hint), retry_after_ms: SIGNALS_FULL_RETRY_MS } })
    case "JOB_AMBIGUOUS":
    case "NO_QUESTION":
    case "NOTHING_RUNS":
    case "JOBS_RUN":
    case "ALREADY_NEW":
    case "OTHER_TEXT":
    case "NOT_RUNNING":
    case "NEWER_EVENTS":
    case "REQUEST_ID_REUSED":
      return conflict(kind, reason, hint)
  }
}

export const fromApprovalRefused = ({ hint, kind, reason, retry_after_ms }: ApprovalRefused): ApiError => {
  switch (kind) {
    case "BAD_REQUEST":
      return badRequest(reason)
    case "TOO_LARGE":
      return tooLarge(reason, hint)
    case "NOT_AVAILABLE":
    case "UNKNOWN_APPROVAL":
      return notFound(kind, reason, hint)
    case "APPROVALS_FULL":
      return new TooMany({ error: detail(kind, reason, hint) })
    case "RATE_LIMITED":
      return new TooMany({
        error: { ...detail(kind, reason, hint), ...(retry_after_ms === undefined ? {} : { retry_after_ms }) }
      })
    case "CALL_ID_REUSED":
    case "NOT_OPEN":
    case "REPOSITORY":
    case "ALREADY_DECIDED":
    case "EXPIRED":
    case "SESSION_ENDED":
    case "CHANGED":
    case "NOT_ALONE":
    case "NO_GRANT":
    case "GRANTS_FULL":
      return conflict(kind, reason, hint)
  }
}

export const fromEventTooLarge = ({ hint, message }: EventTooLarge) => tooLarge(message, hint)

export const fromHostToolRefused = ({ kind, reason }: HostToolRefused): ApiError => {
  switch (kind) {
    case "NOT_AVAILABLE":
      return notFound(kind, reason)
    case "BAD_REQUEST":
      return badRequest(reason)
    case "CALL_ID_REUSED":
      return conflict(kind, reason)
    case "RATE_LIMITED":
      return new TooMany({ error: { ...detail(kind, reason), retry_after_ms: HOST_TOOL_RETRY_MS } })
  }
}

export const fromWorkspaceRefused = ({ hint, kind, reason }: WorkspaceRefused): ApiError =>
  kind === "UNKNOWN_WORKSPACE" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

export const fromSkillRefused = ({ hint, kind, reason }: SkillRefused): ApiError =>
  kind === "UNKNOWN_AGENT" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

export const fromTrialRefused = ({ hint, kind, reason }: TrialRefused): ApiError =>
  kind.startsWith("UNKNOWN_") || kind === "NO_IMAGE" ? notFound(kind, reason, hint) : conflict(kind, reason, hint)

/** The message holds every problem with its path, since a client gets only one refusal. */
export const fromConfigurationRefused = ({ hint, kind, problems, reason }: ConfigurationRefused): ApiError => {
  const message = problems.length === 0 ? reason : `${reason}:\n${problems.map(problemText).join("\n")}`
  return kind === "NO_SUCH_VERSION" ? notFound(kind, message, hint) : conflict(kind, message, hint)
}

/** A build fails after its stream has begun, so this is a line of the stream. */
export const refusedBuild = (error: BuildError) =>
  detail(error._tag, error.message, error._tag === "ImageBuildFailed" ? error.fix : undefined)
