/** The files `logs/choird.log` and `logs/<agent>.log` of a home, appended line by line, readable by their owner alone. */
import { Clock, Context, Effect, Layer, Logger, Option, Queue, Result, Schema, type Scope, Stream } from "effect"
import { AgentId, LaneId, type SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { isDeeperThan } from "#src/shared/text/canonicalJson.ts"
import { humanText, type LogLine, logLine, logText } from "#src/shared/text/logs.ts"
import { CHOIRD, type LogArchive, makeLogArchive } from "./LogArchive.ts"
import { type LogFile, type LogFileLimits, makeLogFile } from "./LogFile.ts"
import { DAY_MS } from "#src/shared/days.ts"

/** The size at which a log file is archived, however many lines it has: choird's, and an agent's (R50). */
const LOG_FILE_BYTES_MAX = 64 * 1024 * 1024
const AGENT_LOG_BYTES_MAX = 4 * 1024 * 1024
/** All logs of a home, the archived ones included, until config.json is read (`retention.logs_mb`), and the number of archives (R50). */
const LOGS_BYTES_MAX = 1024 * 1024 * 1024
/** The pause after each batch of an agent's output, which bounds what a flood of it costs choird. */
const AGENT_OUTPUT_PAUSE_MS = 100

/** A line of an agent's own logger; anything else is text of some program in its container. */
const AgentLine = Schema.fromJsonString(
  Schema.Struct({
    level: Schema.Literals(["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]),
    message: Schema.Unknown,
    annotations: Schema.optionalKey(Schema.Struct({ lane: Schema.optionalKey(LaneId) })),
    cause: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
)
const decodeAgentLine = Schema.decodeUnknownOption(AgentLine)

/** How deep a message may nest whose parts are read; a deeper one is logged as its line has it. */
const MESSAGE_DEPTH_MAX = 20

const words = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part: unknown) => (typeof part === "string" ? part : JSON.stringify(part)))
    .join(" ")

/** A line of an agent's output as a line of its log. choird sets its time and its source, and never takes them from the agent. */
export const agentLine = (agent_id: AgentId, session_id: SessionId, timestamp: string, text: string): LogLine => {
  const fixed = { timestamp, source: agent_id, session_id }
  const plain = { ...fixed, level: "INFO", message: text }
  // No line may end the fiber that follows the output, whatever is in it.
  const read = Result.try(() =>
    Option.map(decodeAgentLine(text), ({ annotations, cause, level, message }) => ({
      ...fixed,
      level,
      ...(annotations?.lane === undefined ? {} : { lane: annotations.lane }),
      message: isDeeperThan(message, MESSAGE_DEPTH_MAX) ? text : words(message),
      ...(typeof cause === "string" ? { cause } : {})
    }))
  )
  return Result.isSuccess(read) ? Option.getOrElse(read.success, () => plain) : plain
}

/** Time that a choird that stops waits for its last lines to be on the disk. */
const LAST_WRITE_MS_MAX = 2000

export class LogFiles extends Context.Service<
  LogFiles,
  {
    /**
     * Writes an agent's output to its log until it ends. A flood of lines is slowed down here and cut by the container. Returns the last
     * message of level FATAL, the agent's own reason for its exit, which may hold anything.
     */
    follow(agent_id: AgentId, session_id: SessionId, output: Stream.Stream<string>): Effect.Effect<string | undefined>
    /** Writes this program's log lines to choird.log, and those about an agent to the agent's log as well, or alone with `log: "agent"`. */
    readonly logger: Logger.Logger<unknown, void>
    /** Archives choird.log beyond this many lines (`log_archive_threshold_lines`). Before that, no file is archived for its size. */
    archiveAfter(lines_max: number): Effect.Effect<void>
    /** Keeps archived logs up to a size, and for some days where there is a limit (`retention`). */
    keep(limits: KeptLogs): Effect.Effect<void>
    /** Removes the archived logs beyond the limits, and reports what it removed or, with `dry_run`, would remove. */
    trim(dry_run: boolean): Effect.Effect<{ readonly removed: number; readonly bytes: number }>
    /** Compresses archived logs in the background, those of an earlier choird too, until the scope closes. For the holder of the home. */
    readonly archiving: Effect.Effect<void, never, Scope.Scope>
    /** Waits until every line so far is in its file. */
    readonly written: Effect.Effect<void>
    /** Archives an agent's log as it is: its session has ended. */
    archive(agent_id: AgentId): Effect.Effect<void>
  }
>()("choir/choird/LogFiles") {
  /** @param home need not exist yet, or at all. @param print takes each of choird's lines for a person as well. */
  static readonly layer = (home: string, print: ((line: string) => void) | undefined) =>
    Layer.effect(
      LogFiles,
      Effect.suspend(() => make(home, print))
    )
}

/** The limits of all logs of a home. */
export interface KeptLogs {
  readonly bytes_max: number
  readonly days_max: number | null
}

const lostLine = (now_ms: number, lines: number) => {
  const message = `${lines} lines of this log were lost: the disk is full or too slow`
  return `${logText({ timestamp: new Date(now_ms).toISOString(), source: CHOIRD, level: "WARN", message })}\n`
}

/** The open files of a home by name, and their rotation into the archive. */
const makeRotatedFiles = Effect.fnUntraced(function* (home: string, archive: LogArchive, rotated: () => void) {
  const clock = yield* Clock.Clock
  const files = new Map<string, LogFile>()
  let lines_max: number | undefined

  const file = (name: string) => {
    const found =
      files.get(name) ??
      makeLogFile(home, name, {
        lost: (lines) => lostLine(clock.currentTimeMillisUnsafe(), lines),
        onWritten: () => rotateIfFull(name)
      })
    files.set(name, found)
    return found
  }

  /** Takes no longer than a rename. A file that cannot be moved stays in use. */
  const rotate = (name: string) => {
    const moved = Result.try(() => archive.take(name, clock.currentTimeMillisUnsafe(), file(name).moveTo))
    if (Result.isFailure(moved)) file(name).later()
    rotated()
  }
  const limitsOf = (name: string): LogFileLimits =>
    name === CHOIRD
      ? { lines_max: lines_max ?? Infinity, bytes_max: LOG_FILE_BYTES_MAX }
      : { lines_max: Infinity, bytes_max: AGENT_LOG_BYTES_MAX }
  const rotateIfFull = (name: string) => {
    if (lines_max !== undefined && file(name).isFull(limitsOf(name))) rotate(name)
  }

  const written = Effect.suspend(() =>
    Effect.forEach(
      [...files.keys()],
      (name) => Effect.callback<void>((resume) => file(name).whenWritten(() => resume(Effect.void))),
      { discard: true }
    )
  )
  const writeNow = () => files.forEach((each) => each.writeNow())
  // However the program ends, by a bug or a second signal.
  process.on("exit", writeNow)
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      yield* Effect.timeoutOption(written, LAST_WRITE_MS_MAX)
      writeNow()
      process.off("exit", writeNow)
      for (const { close } of files.values()) close()
    })
  )

  return {
    write: (name: string, texts: ReadonlyArray<string>) => file(name).append(texts.join(""), texts.length),
    written,
    archiveAfter: (lines: number) => Effect.sync(() => void (lines_max = lines)),
    archive: (name: string) =>
      Effect.callback<void>((resume) =>
        file(name).whenWritten(() => {
          rotate(name)
          resume(Effect.void)
        })
      ),
    bytes: () => [...files.values()].reduce((sum, { bytes }) => sum + bytes(), 0)
  }
})

/** Writes each line of choird's to its log and, where it is about an agent, to that agent's. */
const makeLogger = (
  write: (name: string, texts: ReadonlyArray<string>) => void,
  print: ((line: string) => void) | undefined
) =>
  Logger.make((options) => {
    const line = logLine(CHOIRD, options)
    const { log, ...rest } = line
    const texts = [`${logText(rest)}\n`]
    const agent = Schema.decodeUnknownOption(AgentId)(line["agent_id"])
    // An agent's telemetry is for its own log: choird.log and the terminal are about all of them.
    if (log === "agent" && Option.isSome(agent)) return write(agent.value, texts)
    write(CHOIRD, texts)
    // An agent of choird's own name would get each of choird's lines about it twice.
    if (Option.isSome(agent) && agent.value !== CHOIRD) write(agent.value, texts)
    print?.(humanText(line))
  })

const make = Effect.fnUntraced(function* (home: string, print: ((line: string) => void) | undefined) {
  const archive = makeLogArchive(home)
  // One waiting notification is enough: each run looks for all the work that there is.
  const notifier = yield* Queue.sliding<void>(1)
  const files = yield* makeRotatedFiles(home, archive, () => Queue.offerUnsafe(notifier, undefined))
  const { write } = files
  let kept: KeptLogs = { bytes_max: LOGS_BYTES_MAX, days_max: null }

  const trim = Effect.fnUntraced(function* (dry_run: boolean) {
    const { bytes_max, days_max } = kept
    const now_ms = yield* Clock.currentTimeMillis
    const oldest_ms = days_max === null ? 0 : Math.max(0, now_ms - days_max * DAY_MS)
    return yield* Effect.try(() => archive.trim(files.bytes(), { bytes_max, oldest_ms }, dry_run)).pipe(
      Effect.catch((error) =>
        Effect.as(Effect.logWarning("could not remove old logs", error), { removed: 0, bytes: 0 })
      )
    )
  })
  const tidy = Effect.andThen(trim(false), archive.compressNext)

  return LogFiles.of({
    follow: Effect.fnUntraced(function* (agent_id, session_id, output) {
      let last: string | undefined
      yield* Stream.runForEachArray(output, (lines) =>
        Clock.currentTimeMillis.pipe(
          Effect.map((now_ms) => {
            const timestamp = new Date(now_ms).toISOString()
            const entries = lines.map((text) => agentLine(agent_id, session_id, timestamp, text))
            const fatal = entries.findLast(({ level }) => level === "FATAL")?.message
            if (typeof fatal === "string") last = fatal
            write(
              agent_id,
              entries.map((entry) => `${logText(entry)}\n`)
            )
          }),
          Effect.andThen(Effect.sleep(AGENT_OUTPUT_PAUSE_MS))
        )
      )
      return last
    }),
    logger: makeLogger(write, print),
    archiveAfter: files.archiveAfter,
    keep: (limits) =>
      Effect.sync(() => {
        kept = limits
        Queue.offerUnsafe(notifier, undefined)
      }),
    trim,
    archiving: Effect.try(() => archive.scan()).pipe(
      Effect.catch((error) => Effect.logWarning("could not read the archived logs", error)),
      // The leftovers of an earlier choird are work without a notification.
      Effect.andThen(
        Effect.forever(Effect.andThen(Effect.repeat(tidy, { while: (more) => more }), Queue.take(notifier)))
      ),
      restarted("the archive of logs"),
      Effect.forkScoped,
      Effect.asVoid
    ),
    written: files.written,
    archive: files.archive
  })
})
