/** choirctl daemon: choird in the background, by itself or under systemd. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import type { DaemonState } from "#src/choirctl/daemon/daemon.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, printAdvice, withProgress } from "#src/choirctl/terminal/print.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { fields, span } from "#src/choirctl/terminal/text.ts"

const what = ({ pid, ready, running, uptime_ms, version }: DaemonState) => {
  if (!running) return "is not running"
  const who = pid === null ? "" : `, pid ${pid}`
  return ready
    ? `${version} is running${who}, up ${span(uptime_ms ?? 0)}`
    : `is running${who} but not ready: it is starting or stopping`
}

const stateText = (state: DaemonState): string =>
  fields([
    ["choird", what(state)],
    ["unit", state.unit ?? "none; to install one: choirctl daemon install"]
  ])

const startedText = ({ started, ...state }: DaemonState & { readonly started: boolean }): string =>
  `choird ${what(state)}${started ? "" : "; it was already running"}`

const stoppedText = ({ pid, stopped }: { readonly stopped: boolean; readonly pid: number | null }): string =>
  stopped ? `choird has stopped${pid === null ? "" : ` (pid ${pid})`}` : "choird is not running"

interface Unit {
  readonly path: string
  readonly next: ReadonlyArray<string>
}

const next = (commands: ReadonlyArray<string>) => commands.map((command) => `  ${command}`)

const installedText = ({ next: commands, path }: Unit): string => [`Wrote ${path}. Next:`, ...next(commands)].join("\n")

const uninstalledText = ({ next: commands, path, removed }: Unit & { readonly removed: boolean }): string =>
  removed ? [`Removed ${path}. Next:`, ...next(commands)].join("\n") : `there is no ${path}`

const load = Effect.promise(() => import("#src/choirctl/daemon/daemon.ts"))

const start = Command.make(
  "start",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { startDaemon } = yield* load
    const state = yield* startDaemon(home).pipe(withProgress("starting choird"))
    yield* printAdvice({ ok: true, ...state }, startedText)
  })
).pipe(
  Command.withDescription("Start choird in the background and wait until it is ready"),
  Command.withExamples([{ command: "choirctl daemon start" }])
)

const stop = Command.make(
  "stop",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { stopDaemon } = yield* load
    const stopped = yield* stopDaemon(home).pipe(withProgress("stopping choird"))
    yield* printAdvice({ ok: true, ...stopped }, stoppedText)
  })
).pipe(
  Command.withDescription("Stop choird and wait until it has exited; sessions resume at its next start"),
  Command.withExamples([{ command: "choirctl daemon stop" }])
)

const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { daemonState } = yield* load
    const state = yield* daemonState(home)
    yield* printAdvice(state, stateText)
    if (!state.ready) return yield* new Unsuccessful({ exit_code: EXIT.unreachable })
  })
).pipe(
  Command.withDescription("Show whether choird is running; exits with 69 unless it is ready"),
  Command.withExamples([{ command: "choirctl daemon status" }])
)

const install = Command.make(
  "install",
  {},
  Effect.fnUntraced(function* () {
    const { home } = yield* root
    const { installUnit } = yield* Effect.promise(() => import("#src/choirctl/daemon/unit.ts"))
    const installed = yield* onHost(installUnit(home))
    yield* printAdvice({ ok: true, ...installed }, installedText)
  })
).pipe(
  Command.withDescription("Write a systemd user unit for choird; does not start it"),
  Command.withExamples([{ command: "choirctl daemon install" }])
)

const uninstall = Command.make(
  "uninstall",
  {},
  Effect.fnUntraced(function* () {
    const { uninstallUnit } = yield* Effect.promise(() => import("#src/choirctl/daemon/unit.ts"))
    const removed = yield* uninstallUnit
    yield* print({ ok: true, ...removed }, uninstalledText)
  })
).pipe(
  Command.withDescription("Remove the systemd unit; does not stop a running choird"),
  Command.withExamples([{ command: "choirctl daemon uninstall" }])
)

export const daemon = Command.make("daemon").pipe(Command.withSubcommands([start, stop, status, install, uninstall]))
