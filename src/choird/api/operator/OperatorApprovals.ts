/** The operator's endpoints about approvals. */
import { Effect, Result, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { ApprovalRow } from "#src/choird/approvals/approvalRows.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { readStored, shownText } from "#src/choird/approvals/requestTypes.ts"
import { fromApprovalRefused, notFound } from "#src/choird/api/refusals.ts"

const summary = (row: ApprovalRow): ApprovalSummary => {
  const { agent_id, approval_id, created_at, expires_at, request_type, session_id, status, summary } = row
  return { approval_id, agent_id, session_id, request_type, summary, status, created_at, expires_at }
}

const detail = (row: ApprovalRow): ApprovalDetail => {
  const payload = Result.match(readStored(row.request_type, row.canonical), {
    onSuccess: (asked): Schema.Json => (asked.type === "proposal" ? asked.payload : (asked.call as Schema.Json)),
    onFailure: (): Schema.Json => row.canonical
  })
  const { call_id, hash, lane, outcome, reason, resolved_at, resolved_by, step } = row
  return {
    ...summary(row),
    call_id,
    lane,
    text: shownText(row),
    payload,
    hash,
    resolved_at,
    resolved_by,
    reason,
    outcome,
    step
  }
}

const WHO = "operator"

export const layerOperatorApprovals = HttpApiBuilder.group(
  OperatorApi,
  "approvals",
  Effect.fnUntraced(function* (handlers) {
    const approvals = yield* Approvals
    const decide = (decision: Parameters<typeof approvals.decide>[0]) =>
      Effect.mapBoth(approvals.decide(decision), { onSuccess: detail, onFailure: fromApprovalRefused })
    return handlers.handleAll({
      list: ({ query: { agent_id, all } }) =>
        Effect.map(approvals.list({ ...(agent_id === undefined ? {} : { agent_id }), all: all === "true" }), (rows) =>
          rows.map(summary)
        ),
      show: ({ params }) =>
        Effect.mapBoth(approvals.get(params.id), { onSuccess: detail, onFailure: fromApprovalRefused }),
      grants: ({ query: { agent_id, all } }) =>
        approvals.grants({ ...(agent_id === undefined ? {} : { agent_id }), all: all === "true" }),
      revoke: ({ params }) =>
        Effect.flatMap(approvals.revokeGrant({ grant_id: params.id, who: WHO }), (grant) =>
          grant === undefined
            ? Effect.fail(notFound("UNKNOWN_GRANT", `there is no grant ${params.id}`, "choirctl grant list"))
            : Effect.succeed(grant)
        ),
      approve: ({ params, payload: { grant, hash } }) =>
        decide({
          approval_id: params.id,
          resolution: "approved",
          hash8: hash,
          who: WHO,
          reason: null,
          ...(grant === undefined ? {} : { grant })
        }),
      reject: ({ params, payload: { hash, reason = null } }) =>
        decide({ approval_id: params.id, resolution: "rejected", hash8: hash, who: WHO, reason })
    })
  })
)
