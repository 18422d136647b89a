/** Audit rows for people. */
import type { AuditRow } from "#schema/AuditApi.ts"
import { jsonText } from "#src/choirctl/terminal/jsonText.ts"
import { type Cell, table } from "#src/choirctl/terminal/table.ts"

const isFields = (detail: AuditRow["detail"]): detail is Readonly<Record<string, AuditRow["detail"]>> =>
  typeof detail === "object" && detail !== null && !Array.isArray(detail)

const detailCell = (detail: AuditRow["detail"]) =>
  isFields(detail)
    ? Object.entries(detail)
        .filter(([name]) => name !== "refused")
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : jsonText(value)}`)
        .join(" ")
    : jsonText(detail)

const outcome = ({ count, detail }: AuditRow): Cell => {
  const refused = isFields(detail) ? detail["refused"] : undefined
  if (typeof refused !== "string") return "done"
  return { text: count === 1 ? refused : `${refused} x${count}`, style: "yellow" }
}

export const auditTable = (rows: ReadonlyArray<AuditRow>, color: boolean): string =>
  rows.length === 0
    ? "nothing was refused or changed"
    : table(
        ["AT", "WHO", "ACTION", "OUTCOME", "ABOUT", "DETAIL"],
        rows.map((row) => [
          row.at,
          row.who,
          row.action,
          outcome(row),
          row.session_id ?? row.agent_id ?? "",
          detailCell(row.detail)
        ]),
        color
      )
