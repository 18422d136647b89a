/** choirctl status: the state of choird and its agents. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import type { DiskStatus, MemoryStatus, SystemStatus } from "#schema/SystemApi.ts"
import { askStatus } from "#src/choirctl/client/ask.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { tokenText } from "#src/shared/wire/metricsPage.ts"
import { searchText } from "#src/choirctl/render/memory.ts"
import { agentTable } from "#src/choirctl/render/agents.ts"
import { approvalsWaiting } from "#src/choirctl/render/approvals.ts"
import { gatewayState } from "#src/choirctl/render/gateways.ts"
import { fields, paint, safeLine, span, working } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { counted, plural } from "#src/shared/text/counts.ts"

const diskText = ({ files, free_bytes, lacks, low, paused, total_bytes }: DiskStatus, color: boolean): string => {
  const bytes = `${bytesText(free_bytes)} of ${bytesText(total_bytes)} free`
  const free =
    files !== undefined && lacks.includes("files")
      ? `${bytes}, ${counted(files.free)} of ${plural(files.total, "file")} free`
      : bytes
  if (!low) return free
  const agents = paused.length === 0 ? "" : `, paused: ${paused.join(", ")}`
  return `${paint(color, "red", "almost full")}, ${free}${agents}`
}

const memoryText = (memory: MemoryStatus, color: boolean): string =>
  memory.problem === undefined ? searchText(memory) : paint(color, "yellow", searchText(memory))

/** Whether the runtime enforces a limit here. */
const enforcedRow = (name: string, row: SystemStatus["runtime"]["calls"]) => {
  if (row === undefined) return []
  const level = row.enforced ? "enforced" : row.partly === true ? "partly enforced" : "not enforced"
  return [[name, `${level}: ${safeLine(row.detail)}`] as const]
}

export const statusText = (
  { agents, approvals, choird, disk, gateways, memory, metrics, postgres, runtime, warnings }: SystemStatus,
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
    ...enforcedRow("network", runtime.network),
    ...enforcedRow("calls apart", runtime.calls),
    ...(runtime.browser === undefined ? [] : [["browser", safeLine(runtime.browser)] as const]),
    ...(memory === undefined ? [] : [["memory", memoryText(memory, color)] as const]),
    ["approvals", approvals.pending === null ? "unknown" : approvalsWaiting(approvals.pending)],
    ...gateways.map(
      ({ detail, name, ok, type }) => [`gateway ${name}`, gatewayState({ ok, detail }, color, type)] as const
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
    const all = yield* askStatus
    yield* printAdvice(all, statusText)
  })
).pipe(Command.withExamples([{ command: "choirctl status --json" }]))
