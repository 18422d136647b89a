/** Workspaces for people. */
import type { WorkspaceSummary } from "#schema/OperatorApi.ts"
import { table } from "./table.ts"

export const workspaceTable = (rows: ReadonlyArray<WorkspaceSummary>, color: boolean): string =>
  rows.length === 0
    ? "no workspace is configured"
    : table(
        ["WORKSPACE", "HELD BY", "PATH"],
        rows.map(({ leased_by, name, path }) => [name, leased_by ?? "", path]),
        color
      )
