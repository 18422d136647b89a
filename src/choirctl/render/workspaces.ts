/** Workspaces for people. */
import type { WorkspaceSummary } from "#schema/OperatorApi.ts"
import type { WorkspaceReset } from "#schema/WorkspaceApi.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { table } from "#src/choirctl/terminal/table.ts"

const usedText = ({ quota_bytes = null, used_bytes }: WorkspaceSummary): string => {
  if (used_bytes === undefined) return ""
  return quota_bytes === null ? bytesText(used_bytes) : `${bytesText(used_bytes)} of ${bytesText(quota_bytes)}`
}

export const workspaceTable = (rows: ReadonlyArray<WorkspaceSummary>, color: boolean): string =>
  rows.length === 0
    ? "no workspace is configured"
    : table(
        ["WORKSPACE", "HELD BY", "USED", "PATH"],
        rows.map((row) => [row.name, row.leased_by ?? "", usedText(row), row.path]),
        color
      )

export const resetLine = ({ name, path, stopped }: WorkspaceReset): string =>
  stopped === null
    ? `${name} is empty: ${safeLine(path)}`
    : `${name} is empty: ${safeLine(path)}\n${stopped} was stopped for it: choirctl agent start ${stopped}`
