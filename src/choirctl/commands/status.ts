/** choirctl status: choird, its database, runtime, gateways and agents at a glance. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { ask } from "#src/choirctl/client/ask.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import type { SystemStatus } from "#schema/SystemApi.ts"
import { tokenText } from "#src/shared/wire/metricsPage.ts"
import { agentTable } from "#src/choirctl/render/agents.ts"
import { approvalsWaiting } from "#src/choirctl/render/approvals.ts"
import { diskText } from "#src/choirctl/render/retention.ts"
import { paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { fields } from "#src/choirctl/terminal/table.ts"
import { span } from "#src/choirctl/terminal/time.ts"

const working = (ok: boolean, color: boolean) =>
  ok ? paint(color, "green", "ok") : paint(color, "red", "does not work")

export const statusText = (
  { agents, approvals, choird, disk, gateways, metrics, postgres, runtime, warnings }: SystemStatus,
  color: boolean
) => {
  const limits = runtime.limits.length === 0 ? "none" : runtime.limits.join(", ")
  const head = fields([
    ["choird", `${choird.version}, up ${span(choird.uptime_ms)}, config version ${choird.config_version}`],
    [
      "postgres",
      `${working(postgres.ok, color)}, ${postgres.kind} ${safeLine(postgres.version)}, pgvector ${safeLine(postgres.pgvector)}`
    ],
    ...(disk === undefined ? [] : [["disk", diskText(disk, color)] as const]),
    ...(metrics === undefined
      ? []
      : [["metrics", `${metrics.url}, bearer token in ${safeLine(tokenText(metrics))}`] as const]),
    ["runtime", `${runtime.type}, limits enforced: ${limits}`],
    ["approvals", approvals.pending === null ? "not known" : approvalsWaiting(approvals.pending)],
    ...gateways.map(
      ({ detail, name, ok, type }) =>
        [`gateway ${name}`, `${working(ok, color)}, ${type}, ${safeLine(detail)}`] as const
    )
  ])
  const notes = [...runtime.warnings, ...warnings].map(
    (warning) => `${paint(color, "yellow", "warning:")} ${safeLine(warning)}`
  )
  return [head, agentTable(agents, color), ...(notes.length === 0 ? [] : [notes.join("\n")])].join("\n\n")
}

export const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const all = yield* ask("system", (choird) => choird.status())
    yield* printAdvice(all, statusText)
  })
).pipe(
  Command.withDescription("Show choird, its database, runtime, gateways and agents"),
  Command.withExamples([{ command: "choirctl status --json" }])
)
