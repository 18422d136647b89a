/** Approvals for people. */
import type { ApprovalStatus } from "#schema/Approval.ts"
import type { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import { ago, fields, paint, type Paint, safeLine, safeText, span, table } from "#src/choirctl/terminal/text.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"

const STYLES: Readonly<Record<ApprovalStatus, Paint>> = {
  pending: "yellow",
  approved: "green",
  executing: "green",
  done: "green",
  rejected: "red",
  expired: "dim",
  failed: "red"
}

/** How many wait, with the command that shows them. */
export const approvalsWaiting = (pending: number): string =>
  pending === 0 ? "none pending" : `${pending} pending: choirctl approval list`

const left = (expires_at: string, now_ms: number) => {
  const ms = Date.parse(expires_at) - now_ms
  return ms > 0 ? span(ms) : "expired"
}

export const approvalTable = (rows: ReadonlyArray<ApprovalSummary>, now_ms: number, color: boolean): string =>
  rows.length === 0
    ? "no pending approvals"
    : table(
        ["APPROVAL", "AGENT", "TYPE", "STATUS", "ASKED", "LEFT", "SUMMARY"],
        rows.map(({ agent_id, approval_id, created_at, expires_at, request_type, status, summary }) => [
          approval_id,
          agent_id,
          request_type,
          { text: status, style: STYLES[status] },
          ago(created_at, now_ms),
          status === "pending" ? left(expires_at, now_ms) : "",
          summary
        ]),
        color
      )

const SIGNS: Readonly<Record<string, Paint>> = { "+": "green", "-": "red" }

/** The lines of a change in the colours of their signs; a call has none. */
const changeText = ({ request_type, text }: ApprovalDetail, color: boolean): string =>
  request_type === "confirm_tool"
    ? safeText(text)
    : safeText(text)
        .split("\n")
        .map((line) => {
          const style = SIGNS[line.charAt(0)]
          return style === undefined ? line : paint(color, style, line)
        })
        .join("\n")

/** The request and its outcome. */
export const approvalText = (approval: ApprovalDetail, now_ms: number, color: boolean, home?: string): string => {
  const { agent_id, approval_id, hash, reason, resolved_at, resolved_by, status } = approval
  const digits = hash.slice(0, 8)
  const head = fields([
    ["approval", approval_id],
    ["status", paint(color, STYLES[status], status)],
    ["type", approval.request_type],
    ["agent", `${agent_id}, session ${approval.session_id}, lane ${approval.lane}`],
    ["asked", `${approval.created_at}, ${ago(approval.created_at, now_ms)}`],
    ["until", approval.expires_at],
    ["hash", hash],
    ...(resolved_at === null ? [] : [["decided", `${resolved_at} by ${safeLine(resolved_by ?? "")}`] as const]),
    ...(reason === null ? [] : [["reason", safeLine(reason)] as const]),
    ...(approval.step === null || status !== "executing" ? [] : [["step", safeLine(approval.step)] as const]),
    ...(approval.outcome === null ? [] : [["outcome", safeLine(approval.outcome)] as const])
  ])
  const commands = `\n\nchoirctl approval approve ${approval_id} --hash ${digits}\nchoirctl approval reject ${approval_id}`
  const how = status !== "pending" ? "" : home === undefined ? commands : onHome(home, commands)
  return `${head}\n\n${changeText(approval, color)}${how}`
}

export const decidedLine = ({ approval_id, status, summary }: ApprovalDetail, color: boolean): string =>
  `approval ${approval_id} is ${paint(color, STYLES[status], status)}: ${safeLine(summary)}`
