/** What `choirctl daemon` found and did, for people. */
import type { DaemonState } from "#src/choirctl/daemon/daemon.ts"
import { fields } from "#src/choirctl/terminal/table.ts"
import { span } from "#src/choirctl/terminal/time.ts"

const what = ({ pid, ready, running, uptime_ms, version }: DaemonState) => {
  if (!running) return "does not run"
  const who = pid === null ? "" : `, pid ${pid}`
  return ready
    ? `${version} runs${who}, up ${span(uptime_ms ?? 0)}`
    : `runs${who}, and takes no commands: it starts or stops`
}

export const stateText = (state: DaemonState): string =>
  fields([
    ["choird", what(state)],
    ["unit", state.unit ?? "none; choirctl daemon install"]
  ])

export const startedText = ({ started, ...state }: DaemonState & { readonly started: boolean }): string =>
  `choird ${what(state)}${started ? "" : "; it ran already"}`

export const stoppedText = ({ pid, stopped }: { readonly stopped: boolean; readonly pid: number | null }): string =>
  stopped ? `choird has stopped${pid === null ? "" : ` (pid ${pid})`}` : "choird does not run"

interface Unit {
  readonly path: string
  readonly next: ReadonlyArray<string>
}

const next = (commands: ReadonlyArray<string>) => commands.map((command) => `  ${command}`)

export const installedText = ({ next: commands, path }: Unit): string =>
  [`${path} is written. Next:`, ...next(commands)].join("\n")

export const uninstalledText = ({ next: commands, path, removed }: Unit & { readonly removed: boolean }): string =>
  removed ? [`${path} is removed. Next:`, ...next(commands)].join("\n") : `there is no ${path}`
