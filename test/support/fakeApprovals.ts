/** Approvals and grants of the fake choird. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import type { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import type { GrantSummary } from "#schema/Grant.ts"
import { AgentId, ApprovalId, GrantId, JobName, SessionId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

export const grantSummary: GrantSummary = {
  grant_id: GrantId.make("3"),
  agent_id: AgentId.make("agent-1"),
  scope: "job",
  session_id: SessionId.make("0123456789abcdef"),
  job_name: JobName.make("mailing"),
  words: "calls to mail.send, only to ada@example.org, with no arguments other than body, to",
  uses: 2,
  uses_max: 20,
  until: "2030-01-02T03:04:05.000Z",
  created_at: "2030-01-01T03:04:05.000Z",
  created_by: "operator",
  approval_id: ApprovalId.make("7"),
  revoked_at: null
}

type Answer<A> = Effect.Effect<A, ApiError>

interface Answers {
  readonly approvals: Answer<ReadonlyArray<ApprovalSummary>>
  readonly approval: Answer<ApprovalDetail>
  readonly grants: Answer<ReadonlyArray<GrantSummary>>
  readonly grant: Answer<GrantSummary>
}

interface Call {
  readonly name: string
  readonly id?: string
  readonly input?: unknown
}

/** @param noted keeps the call and gives the answer. */
export const fakeApprovals = (
  noted: <A>(call: Call, answer: Answer<A>) => Answer<A>,
  { approval, approvals, grant, grants }: Answers
) =>
  HttpApiBuilder.group(OperatorApi, "approvals", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: ({ query }) => noted({ name: "approvals", input: query }, approvals),
        show: ({ params }) => noted({ name: "approval", id: params.id }, approval),
        grants: ({ query }) => noted({ name: "grants", input: query }, grants),
        revoke: ({ params }) => noted({ name: "revoke", id: params.id }, grant),
        approve: ({ params, payload }) => noted({ name: "approve", id: params.id, input: payload }, approval),
        reject: ({ params, payload }) => noted({ name: "reject", id: params.id, input: payload }, approval)
      })
    )
  )
