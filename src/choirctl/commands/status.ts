/** choirctl status and doctor: the state of choird and its agents, and of the host. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import type { MemoryStatus, SystemStatus } from "#schema/SystemApi.ts"
import type { DiskStatus } from "#schema/SystemApi.ts"
import { askStatus } from "#src/choirctl/client/ask.ts"
import type { Check } from "#src/choirctl/doctor/hostChecks.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { tokenText } from "#src/shared/wire/metricsPage.ts"
import { searchText } from "#src/choirctl/render/memory.ts"
import { agentTable } from "#src/choirctl/render/agents.ts"
import { approvalsWaiting } from "#src/choirctl/render/approvals.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { withProgress } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { gatewayState } from "#src/choirctl/render/gateways.ts"
import { fields, paint, type Paint, safeLine, span, working } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { counted, plural } from "#src/shared/text/counts.ts"

const STYLES: Readonly<Record<Check["status"], Paint>> = { ok: "green", warn: "yellow", fail: "red", skip: "dim" }

/** A line for each check, and the fix below what needs one. */
const doctorText = ({ checks }: { readonly checks: ReadonlyArray<Check> }, color: boolean): string => {
  const width = Math.max(0, ...checks.map(({ name }) => name.length))
  return checks
    .flatMap(({ detail, fix, name, status }) => [
      `${paint(color, STYLES[status], status.padEnd(4))}  ${name.padEnd(width)}  ${safeLine(detail)}`,
      ...(fix === undefined || status === "ok" || status === "skip"
        ? []
        : [`${" ".repeat(8 + width)}fix: ${safeLine(fix)}`])
    ])
    .join("\n")
}

export const doctor = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { examine } = yield* Effect.promise(() => import("#src/choirctl/doctor/examine.ts"))
    const checks = yield* onHost(examine(home)).pipe(withProgress("checking this host"))
    const ok = checks.every(({ status }) => status !== "fail")
    yield* printAdvice({ ok, checks }, doctorText)
    if (!ok) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(Command.withExamples([{ command: "choirctl doctor" }]))

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
    ...(runtime.network === undefined
      ? []
      : [
          [
            "network",
            `${runtime.network.enforced ? "enforced" : "not enforced"}: ${safeLine(runtime.network.detail)}`
          ] as const
        ]),
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
