/** Workspaces for people. */
import type { WorkspaceSummary } from "#schema/OperatorApi.ts"
import type { WorkspaceReset } from "#schema/WorkspaceApi.ts"
import { safeLine } from "./safeText.ts"
import { table } from "./table.ts"

export const workspaceTable = (rows: ReadonlyArray<WorkspaceSummary>, color: boolean): string =>
  rows.length === 0
    ? "no workspace is configured"
    : table(
        ["WORKSPACE", "HELD BY", "PATH"],
        rows.map(({ leased_by, name, path }) => [name, leased_by ?? "", path]),
        color
      )

export const resetLine = ({ name, path, stopped }: WorkspaceReset): string =>
  stopped === null
    ? `${name} is empty: ${safeLine(path)}`
    : `${name} is empty: ${safeLine(path)}\n${stopped} was stopped for it: choirctl agent start ${stopped}`
