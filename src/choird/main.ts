/** The program choird: in the foreground, until it is told to stop. */
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { Cause, Effect, Exit, Fiber, Layer, Logger, References, Result, Runtime, Schema } from "effect"
import { CHOIRD_STOP_MS_MAX } from "#src/shared/limits.ts"
import { nodeTooOld } from "#src/shared/nodeVersion.ts"
import { LogFiles } from "./logs/LogFiles.ts"
import { startup } from "./Startup.ts"

const VERSION = "0.1.0"

const HELP = `choird ${VERSION}: runs the agents of a home in the foreground; SIGTERM stops it

  choird [--home FOLDER]

  --home FOLDER  the home; else CHOIR_HOME, else ~/.choir.d. choirctl init makes one
  CHOIR_LOG=stderr prints the log where standard error is no terminal, too
`

class BadUsage extends Schema.TaggedError<BadUsage>()("BadUsage", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
  override get message() {
    return `${this.problem}\n\n${HELP}`
  }
}

const print = (text: string) => process.stderr.write(`${text}\n`)

/** Lines for people are for a terminal, or for whoever asks for them; the log files have all of it. */
const printed = process.stderr.isTTY || process.env["CHOIR_LOG"] === "stderr" ? print : undefined

/** Failures that no second try mends. */
const LASTING = new Set(["DatabaseRefused", "DatabaseUrlInvalid", "HomeLockFailed", "HomeNotWritable", "SchemaTooNew"])

/** The code that an error asks for. Without one the failure may pass, so that a supervisor tries again. */
const codeOf = (error: unknown): number => {
  const code: unknown = Reflect.get(Object(error), Runtime.errorExitCode)
  if (typeof code === "number") return code
  return LASTING.has(String(Reflect.get(Object(error), "_tag"))) ? 78 : 75
}

/** Says once why choird ends. An expected failure is its message and nothing more; a bug shows where it is. */
const farewell = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>) {
  if (Cause.hasInterruptsOnly(cause)) return 0
  const failure = Cause.findError(cause)
  if (Result.isFailure(failure)) {
    yield* Effect.logError("choird broke", cause)
    if (printed === undefined) print(`choird: ${Cause.pretty(cause)}`)
    return 70
  }
  const { success: error } = failure
  const message = error instanceof Error ? error.message : String(error)
  yield* Effect.logError(message)
  if (printed === undefined) print(`choird: ${message}`)
  return codeOf(error)
})

const choird = (home: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ended } = yield* startup({ home, version: VERSION })
      yield* ended
      yield* Effect.logInfo("stopping, as the operator asked")
    })
  ).pipe(
    Effect.as(0),
    Effect.onInterrupt(() => Effect.logInfo("stopped by a signal")),
    Effect.catchCause(farewell),
    Effect.provide(
      Layer.mergeAll(
        Layer.unwrap(Effect.map(LogFiles, ({ logger }) => Logger.layer([logger]))),
        Layer.succeed(References.MinimumLogLevel, "Info")
      ).pipe(Layer.provideMerge(LogFiles.layer(home, printed)))
    )
  )

const options = () => {
  const tooOld = nodeTooOld(process.versions.node)
  if (tooOld !== undefined) return { usage: `choird: ${tooOld}`, code: 78 }
  const parsed = Result.try(() =>
    parseArgs({ options: { home: { type: "string" }, help: { type: "boolean" }, version: { type: "boolean" } } })
  )
  if (Result.isFailure(parsed)) return { usage: new BadUsage({ problem: String(parsed.failure) }).message, code: 2 }
  const { help, home, version } = parsed.success.values
  if (help === true) return { usage: HELP, code: 0 }
  if (version === true) return { usage: VERSION, code: 0 }
  return { home: resolve(home ?? process.env["CHOIR_HOME"] ?? join(homedir(), ".choir.d")) }
}

const main = () => {
  const chosen = options()
  if (chosen.home === undefined) {
    print(chosen.usage)
    process.exitCode = chosen.code
    return
  }
  const fiber = Effect.runFork(choird(chosen.home))
  fiber.addObserver((exit) => process.exit(Exit.isSuccess(exit) ? exit.value : 0))
  let asked = false
  const stop = () => {
    // Who asks twice does not want to wait, and what is not finished is taken up by the next start.
    if (asked) process.exit(130)
    asked = true
    setTimeout(() => process.exit(75), CHOIRD_STOP_MS_MAX).unref()
    Effect.runFork(Fiber.interrupt(fiber))
  }
  process.on("SIGTERM", stop).on("SIGINT", stop)
}

main()
