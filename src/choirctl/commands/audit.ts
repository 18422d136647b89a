/** choirctl audit: what was refused, and what changed who may do what (R77). */
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import type { AuditRow } from "#schema/SystemApi.ts"
import { AgentId } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { type Cell, jsonText, safeLine, table } from "#src/choirctl/terminal/text.ts"
import { AUDIT_LISTED_MAX } from "#src/shared/limits.ts"

const isFields = (detail: AuditRow["detail"]): detail is Readonly<Record<string, AuditRow["detail"]>> =>
  typeof detail === "object" && detail !== null && !Array.isArray(detail)

const detailCell = (detail: AuditRow["detail"]) =>
  isFields(detail)
    ? Object.entries(detail)
        .filter(([name]) => name !== "refused" && name !== "outcome")
        .map(([name, value]) => `${name}=${typeof value === "string" ? value : jsonText(value)}`)
        .join(" ")
    : jsonText(detail)

const outcome = ({ count, detail }: AuditRow): Cell => {
  const { outcome: known, refused } = isFields(detail) ? detail : {}
  const times = count === 1 ? "" : ` x${count}`
  if (typeof refused !== "string") return `${typeof known === "string" ? safeLine(known) : "done"}${times}`
  return { text: `${refused}${times}`, style: "yellow" }
}

const auditTable = (rows: ReadonlyArray<AuditRow>, color: boolean): string =>
  rows.length === 0
    ? "no entries"
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

export const audit = Command.make(
  "audit",
  {
    last: Flag.Int("last").pipe(
      Flag.filter(
        (value) => value >= 0 && value <= AUDIT_LISTED_MAX,
        () => `--last must be a whole number from 0 to ${AUDIT_LISTED_MAX}`
      ),
      Flag.withDescription("Number of newest entries to print"),
      Flag.withDefault(100)
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only entries about this agent"),
      Flag.withMetavar("<agent-id>"),
      Flag.withSchema(AgentId),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ agent, last }) {
    const query = { last, ...Option.match(agent, { onNone: () => ({}), onSome: (agent_id) => ({ agent_id }) }) }
    const rows = yield* ask("audit", (choird) => choird.list({ query }))
    yield* print(rows, auditTable)
  })
).pipe(Command.withExamples([{ command: "choirctl audit --last 20 --agent agent-1" }]))
