/** One run of choird, from its command line to its exit code. */
import { resolve } from "node:path"
import { parseArgs } from "node:util"
import { Cause, Effect, Exit, Fiber, Layer, Logger, References, Result, Runtime, Schema } from "effect"
import { CHOIRD_STOP_MS_MAX } from "#src/shared/limits.ts"
import { homeFolder } from "#src/shared/files/homeFolder.ts"
import type { Move } from "#src/shared/files/movedPaths.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { withoutCoreFiles } from "./coreFiles.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { TRANSPORT_OPTIONS, transportFlags, type TransportFlags } from "#src/choird/config/AgentTransport.ts"
import { maintain, type Outside, OutputRefused, type Report, type Task } from "./maintenance.ts"
import { startup } from "./Startup.ts"

const HELP = `choird ${VERSION}: runs the agents of a home in the foreground; SIGTERM stops it

  choird [--home FOLDER] [--last-good] [--transport uds|http|both] [--listen PLACE] [--tls-cert FILE --tls-key FILE]
  choird [--home FOLDER] migrate | backup | restore FILE [--force] [--moved-from FOLDER]... [--moved-to FOLDER]

  --home FOLDER     the home; else CHOIR_HOME, else ~/.choir.d. choirctl init makes one
  --last-good       starts with the last configuration that worked instead of config.json
  --transport WAYS  uds: agents use their Unix sockets. both: the agents' API also listens on TCP. http: it listens on TCP,
                    and agents use that. --transport, --listen and --tls-* override transport.http of config.json
  --listen PLACE    HOST:PORT, [IPv6]:PORT or :PORT; 127.0.0.1:9400 by default. Beyond loopback it needs TLS
  --tls-cert FILE   the certificate, as PEM, followed by those that lead to its authority
  --tls-key FILE    its key
  migrate, backup, restore
                    what choirctl db does while no choird runs; a backup goes to standard output, reports to standard error
  --moved-from, --moved-to
                    with restore: rewrite paths below the home that the backup was taken from, to this home or another
  CHOIR_LOG=stderr prints the log even if standard error is not a terminal
`

const INTERRUPTED = 130

class BadUsage extends Schema.TaggedError<BadUsage>()("BadUsage", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
  override get message() {
    return `${this.problem}\n\n${HELP}`
  }
}

const print = (text: string) => process.stderr.write(`${text}\n`)

/** Lines for people go to a terminal, or on request; the log files have everything. */
const printed = process.stderr.isTTY || process.env["CHOIR_LOG"] === "stderr" ? print : undefined

/** Failures that a retry cannot fix. */
const LASTING = new Set(["DatabaseRefused", "DatabaseUrlInvalid", "HomeLockFailed", "HomeNotWritable", "SchemaTooNew"])

/** The exit code of an error. Without one of its own the failure may be temporary, so a supervisor tries again. */
const codeOf = (error: unknown): number => {
  const code: unknown = Reflect.get(Object(error), Runtime.errorExitCode)
  if (typeof code === "number") return code
  return LASTING.has(String(Reflect.get(Object(error), "_tag"))) ? 78 : 75
}

/** The exit code of a failed run, whose reason goes to `say`. An expected failure is its message alone; a bug shows where it is. */
const exitCodeFor = (interrupted: number, say: (type: string, message: string) => void) =>
  Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
    if (Cause.hasInterruptsOnly(cause)) return interrupted
    const failure = Cause.findError(cause)
    if (Result.isFailure(failure)) {
      yield* Effect.logError("choird failed", cause)
      say("INTERNAL", Cause.pretty(cause))
      return 70
    }
    const { success: error } = failure
    const message = error instanceof Error ? error.message : String(error)
    yield* Effect.logError(message)
    say(String(Reflect.get(Object(error), "_tag")), message)
    return codeOf(error)
  })

const report = (line: Report) => print(JSON.stringify(line))

const run = (home: string, last_good: boolean, transport: TransportFlags) =>
  Effect.gen(function* () {
    const { ended } = yield* startup({ home, version: VERSION, last_good, transport })
    yield* ended
    yield* Effect.logInfo("stopping, as the operator asked")
  }).pipe(
    Effect.scoped,
    Effect.as(0),
    Effect.onInterrupt(() => Effect.logInfo("stopped by a signal")),
    Effect.catchCause(
      exitCodeFor(0, (_, message) => {
        if (printed === undefined) print(`choird: ${message}`)
      })
    )
  )

const outside: Outside = {
  version: VERSION,
  step: (text) => Effect.sync(() => report({ type: "step", text })),
  write: (bytes) =>
    Effect.callback((resume) => {
      process.stdout.write(bytes, (error) =>
        resume(error ? Effect.fail(new OutputRefused({ problem: error.message })) : Effect.void)
      )
    })
}

/** Standard error carries only the reports of a task. */
const doTask = (home: string, task: Task) => {
  // Each write reports its own failure; without a listener the process would still die of it.
  process.stdout.on("error", () => undefined)
  return maintain(home, task, outside).pipe(
    Effect.scoped,
    Effect.map((result) => {
      report({ type: "done", result })
      return 0
    }),
    Effect.catchCause(exitCodeFor(INTERRUPTED, (type, message) => report({ type: "failed", error: { type, message } })))
  )
}

const choird = ({ home, last_good, task, transport }: Chosen) =>
  Effect.andThen(withoutCoreFiles, task === undefined ? run(home, last_good, transport) : doTask(home, task)).pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.unwrap(Effect.map(LogFiles, ({ logger }) => Logger.layer([logger]))),
        Layer.succeed(References.MinimumLogLevel, "Info"),
        // Only a collector asks for spans. Each request and each statement would be one.
        Layer.succeed(References.TracerEnabled, false)
      ).pipe(Layer.provideMerge(LogFiles.layer(home, task === undefined ? printed : undefined)))
    )
  )

const badUsage = (problem: string) => ({ usage: new BadUsage({ problem }).message, code: 2 })

/** Undefined to run choird; null for unknown words. */
const taskOf = (
  [name, file, ...more]: ReadonlyArray<string>,
  force: boolean,
  move: Move | undefined
): Task | undefined | null => {
  const flagged = force || move !== undefined
  if (name === undefined) return flagged ? null : undefined
  if (name === "restore" && file !== undefined && more.length === 0) return { name, file: resolve(file), force, move }
  return (name === "migrate" || name === "backup") && file === undefined && !flagged ? { name } : null
}

/** The home has not moved unless the flags say so. */
const moveOf = (from: ReadonlyArray<string>, to: string | undefined, home: string): Move | undefined =>
  from.length === 0 && to === undefined
    ? undefined
    : { from: from.map((path) => resolve(path)), to: resolve(to ?? home) }

interface Chosen {
  readonly last_good: boolean
  readonly home: string
  readonly task: Task | undefined
  readonly transport: TransportFlags
}

const messageOf = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure))

/** The problem of a command line in one sentence; Node adds advice of its own. */
const parseProblem = (failure: unknown): string => {
  const text = messageOf(failure)
  const [, unknown] = /^Unknown option '([^']+)'/u.exec(text) ?? []
  return unknown === undefined ? (text.split(". ", 1)[0] ?? text) : `there is no option ${unknown}`
}

/** The task on the command line, or the reason why there is none. */
const options = (): Chosen | { readonly home?: never; readonly usage: string; readonly code: number } => {
  const parsed = Result.try(() =>
    parseArgs({
      options: {
        home: { type: "string" },
        "last-good": { type: "boolean", default: false },
        help: { type: "boolean" },
        version: { type: "boolean" },
        force: { type: "boolean" },
        "moved-from": { type: "string", multiple: true, default: [] },
        "moved-to": { type: "string" },
        ...TRANSPORT_OPTIONS
      },
      allowPositionals: true
    })
  )
  if (Result.isFailure(parsed)) return badUsage(parseProblem(parsed.failure))
  const { positionals, values } = parsed.success
  const { help, home, version } = values
  if (help === true) return { usage: HELP, code: 0 }
  if (version === true) return { usage: VERSION, code: 0 }
  const named = Result.try(() => homeFolder(home))
  if (Result.isFailure(named)) return { usage: `choird: ${messageOf(named.failure)}`, code: 78 }
  const folder = named.success
  const move = moveOf(values["moved-from"], values["moved-to"], folder)
  const task = taskOf(positionals, values.force === true, move)
  if (task === null) return badUsage(`there is no task "${positionals.join(" ")}"`)
  const transport = transportFlags(values)
  if (transport === undefined) return badUsage("--transport must be uds, http or both")
  return { home: folder, task, transport, last_good: values["last-good"] }
}

export const main = (): void => {
  const chosen = options()
  if (chosen.home === undefined) {
    print(chosen.usage)
    process.exitCode = chosen.code
    return
  }
  const fiber = Effect.runFork(choird(chosen))
  // A stopped choird has done its work; a stopped task has not.
  const interrupted = chosen.task === undefined ? 0 : INTERRUPTED
  fiber.addObserver((exit) => {
    if (Exit.isSuccess(exit)) process.exit(exit.value)
    if (Cause.hasInterruptsOnly(exit.cause)) process.exit(interrupted)
    print(`choird: ${Cause.pretty(exit.cause)}`)
    process.exit(70)
  })
  let asked = false
  const stop = () => {
    // A second signal means not to wait; the next start resumes what is unfinished.
    if (asked) process.exit(INTERRUPTED)
    asked = true
    setTimeout(() => process.exit(75), CHOIRD_STOP_MS_MAX).unref()
    Effect.runFork(Fiber.interrupt(fiber))
  }
  process.on("SIGTERM", stop).on("SIGINT", stop)
}
