/** choird in the background: its start, stop and state by home (docs/operating.md). */
import { type ChildProcess, spawn } from "node:child_process"
import { closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, realpathSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schedule } from "effect"
import { choirdAnswers } from "#src/choirctl/client/ask.ts"
import { askChoird, choirdStatus } from "#src/choirctl/client/OperatorClient.ts"
import { requireHome } from "#src/choirctl/home/homeFiles.ts"
import { CommandFailed, configError, EXIT } from "#src/choirctl/terminal/failure.ts"
import { homeHolder } from "#src/shared/files/homeLocks.ts"
import type { LockHolder } from "#src/shared/files/lockFile.ts"
import { folderWords } from "#src/shared/files/hostProblems.ts"
import { CHOIRD_STOP_MS_MAX } from "#src/shared/limits.ts"
import { CHOIRD_ENVIRONMENT, CHOIRD_NODE_FLAGS, ChoirdProgram } from "./choirdProgram.ts"
import { unitPath } from "./unit.ts"

/** How long `choirctl daemon start` waits: longer than choird tries to reach Postgres. */
const DAEMON_START_MS_MAX = 90_000
/** Between two checks of `choirctl daemon` whether choird runs. */
const DAEMON_LOOK_MS = 50
/** Time that `choirctl daemon stop` waits beyond choird's own limit. */
const DAEMON_STOP_GRACE_MS = 5000
/** How long choird may take to answer that it stops, before a signal asks it. */
const DAEMON_ASKED_MS_MAX = 60_000
/** Characters of choird's last output that `choirctl daemon start` repeats. */
const DAEMON_WORDS_CHARS_MAX = 4000

/** The state of a home's choird. `ready` is whether it takes commands. */
export interface DaemonState {
  readonly running: boolean
  readonly ready: boolean
  readonly pid: number | null
  readonly version: string | null
  readonly uptime_ms: number | null
  /** The unit that systemd runs choird by, when one is installed. */
  readonly unit: string | null
}

/** The meaning of choird's exit codes. */
const MEANINGS: Readonly<Record<number, string>> = {
  2: "wrong arguments",
  70: "a bug: see choirctl logs choird",
  75: "a temporary problem: try again",
  78: "a problem that an operator must fix",
  130: "stopped by a second signal"
}

const realHome = (home: string) =>
  Effect.andThen(
    requireHome(home),
    Effect.sync(() => realpathSync(home))
  )

/** The state of this home's choird. */
export const daemonState = Effect.fn("daemon.state")(function* (home: string) {
  const { held, pid } = yield* homeHolder(yield* realHome(home))
  const unit = existsSync(unitPath()) ? unitPath() : null
  const status = held ? yield* Effect.option(choirdStatus(home)) : Option.none()
  if (Option.isNone(status)) return { running: held, ready: false, pid, version: null, uptime_ms: null, unit }
  const { choird } = status.value
  const { uptime_ms, version } = choird
  return { running: true, ready: true, pid: choird.pid, version, uptime_ms, unit } satisfies DaemonState
})

const untilReady = (home: string) =>
  Effect.repeat(choirdAnswers(home), { until: (answers) => answers, schedule: Schedule.spaced(DAEMON_LOOK_MS) })

/** The file that takes what choird prints before it has a log, emptied at each start. */
const wordsFile = (home: string) => join(home, "logs", "choird.err")
const WORDS = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW

/** A core of choird would hold every secret. */
const WITHOUT_CORES = 'ulimit -c 0; exec "$@"'

const spawnDaemon = Effect.fnUntraced(function* (home: string) {
  const program = yield* ChoirdProgram
  return yield* Effect.try({
    try: () => {
      mkdirSync(join(home, "logs"), { recursive: true, mode: 0o700 })
      const words = openSync(wordsFile(home), WORDS, 0o600)
      const command = [process.execPath, ...CHOIRD_NODE_FLAGS, program, "--home", home]
      const child = spawn("/bin/sh", ["-c", WITHOUT_CORES, "sh", ...command], {
        cwd: home,
        env: { ...process.env, ...CHOIRD_ENVIRONMENT },
        detached: true,
        stdio: ["ignore", words, words]
      })
      closeSync(words)
      return child
    },
    catch: (cause) =>
      configError(
        `choird cannot be started: its log, ${wordsFile(home)}, ${folderWords(cause)}`,
        "give the whole home to the user that runs choird, on a disk with free space that may be written to"
      )
  })
})

const ending = (child: ChildProcess) =>
  Effect.callback<number>((resume) => {
    child.once("error", () => resume(Effect.succeed(EXIT.failed)))
    child.once("exit", (code) => resume(Effect.succeed(code ?? EXIT.failed)))
  })

/** The failure of a choird that exited while it started, with its last output. */
const endedEarly = (home: string, code: number) => {
  const words = readFileSync(wordsFile(home), "utf8").trim().slice(-DAEMON_WORDS_CHARS_MAX)
  return new CommandFailed({
    type: "CHOIRD_ENDED",
    problem: `choird exited with code ${code} (${MEANINGS[code] ?? "see choirctl logs choird"})${words === "" ? "" : `:\n${words}`}`,
    hint: "choirctl logs choird",
    exit_code: code === EXIT.again || code === EXIT.config ? code : EXIT.failed
  })
}

const stillStarting = () =>
  new CommandFailed({
    type: "STILL_STARTING",
    problem: `choird is not ready after ${DAEMON_START_MS_MAX / 1000} s and is still starting`,
    hint: "choirctl logs choird",
    exit_code: EXIT.again
  })

/** Starts choird unless one holds the home, and waits until it takes commands. It outlives this program. */
export const startDaemon = Effect.fn("daemon.start")(function* (home: string) {
  const { held } = yield* homeHolder(yield* realHome(home))
  const child = held ? undefined : yield* spawnDaemon(home)
  const ended =
    child === undefined ? Effect.never : Effect.flatMap(ending(child), (code) => Effect.fail(endedEarly(home, code)))
  yield* Effect.raceFirst(untilReady(home), ended).pipe(
    Effect.timeoutOrElse({ duration: DAEMON_START_MS_MAX, orElse: () => Effect.fail(stillStarting()) }),
    Effect.ensuring(Effect.sync(() => child?.unref()))
  )
  return { started: child !== undefined, ...(yield* daemonState(home)) }
})

/** Whether a pid is a choird of this user: the kernel may have given it to another program since the lock was read. */
const isChoird = (pid: number) => {
  const folder = `/proc/${pid}`
  if (!existsSync(folder) || statSync(folder).uid !== process.getuid?.()) return false
  const words = readFileSync(`${folder}/cmdline`, "utf8").split("\0")
  return words.some((text) => /(^|\/)choird(\.js)?$|src\/choird\/main\.ts$/u.test(text))
}

/**
 * Asks by the operator's socket, else by a signal to one that is still starting. Returns whether it could: choird writes its pid only after it
 * has the lock, so one that starts at this moment has no name yet.
 */
const askToStop = Effect.fnUntraced(function* (home: string, { pid }: LockHolder) {
  const asked = yield* askChoird(home, "system", (choird) => choird.shutdown()).pipe(
    Effect.timeout(DAEMON_ASKED_MS_MAX),
    Effect.option
  )
  if (Option.isSome(asked)) return true
  return yield* Effect.orElseSucceed(
    Effect.try(() => pid !== null && isChoird(pid) && process.kill(pid, "SIGTERM")),
    () => false
  )
})

const stillStopping = (pid: number | null) =>
  new CommandFailed({
    type: "STILL_STOPPING",
    problem: `choird${pid === null ? "" : ` (pid ${pid})`} has not exited`,
    hint: pid === null ? "choirctl logs choird" : `kill -9 ${pid}`,
    exit_code: EXIT.again
  })

/** Asks choird to stop and waits until it has; its agents' sessions stay active, for the next start to resume. */
export const stopDaemon = Effect.fn("daemon.stop")(function* (home: string) {
  const real = yield* realHome(home)
  const first = yield* homeHolder(real)
  if (!first.held) return { stopped: false, pid: null }
  let { pid } = first
  let asked = yield* askToStop(home, first)
  // A second signal would end choird at once, so one that was asked is left to stop.
  const gone = Effect.gen(function* () {
    const holder = yield* homeHolder(real)
    if (holder.held) pid ??= holder.pid
    if (holder.held && !asked) asked = yield* askToStop(home, holder)
    return !holder.held && (pid === null || !existsSync(`/proc/${pid}`))
  })
  yield* Effect.repeat(gone, { until: (is) => is, schedule: Schedule.spaced(DAEMON_LOOK_MS) }).pipe(
    Effect.timeoutOrElse({
      duration: CHOIRD_STOP_MS_MAX + DAEMON_STOP_GRACE_MS,
      orElse: () => Effect.fail(stillStopping(pid))
    })
  )
  return { stopped: true, pid }
})
