/** The files `logs/choird.log` and `logs/<agent>.log` of a home (spec 22.2), appended line by line, readable by their owner alone. */
import { closeSync, constants, existsSync, mkdirSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Clock, Context, Effect, Layer, Logger, Option, Schema, Stream } from "effect"
import { AgentId, LaneId, type SessionId } from "#schema/Ids.ts"
import { AGENT_OUTPUT_PAUSE_MS } from "#src/shared/limits.ts"
import { humanText, type LogLine, logLine, logText } from "#src/shared/logs.ts"

/** What an agent's own logger prints; anything else is a text of somebody in its container. */
const AgentLine = Schema.fromJsonString(
  Schema.Struct({
    level: Schema.Literals(["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]),
    message: Schema.Unknown,
    annotations: Schema.optionalKey(Schema.Struct({ lane: Schema.optionalKey(LaneId) })),
    cause: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
)
const decodeAgentLine = Schema.decodeUnknownOption(AgentLine)

const words = (message: unknown): string =>
  Array.isArray(message)
    ? message.map(words).join(" ")
    : typeof message === "string"
      ? message
      : JSON.stringify(message)

/** A line of an agent's output as a line of its log. When and whose it is, choird says: the agent's word for it is not taken. */
export const agentLine = (agent_id: AgentId, session_id: SessionId, timestamp: string, text: string): LogLine => {
  const fixed = { timestamp, source: agent_id, session_id }
  return Option.match(decodeAgentLine(text), {
    onNone: () => ({ ...fixed, level: "INFO", message: text }),
    onSome: ({ annotations, cause, level, message }) => ({
      ...fixed,
      level,
      ...(annotations?.lane === undefined ? {} : { lane: annotations.lane }),
      message: words(message),
      ...(typeof cause === "string" ? { cause } : {})
    })
  })
}

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

/** Appends at once, so that the last line before a death is there. What cannot be written is lost: a full disk stops no agent. */
const makeFile = (home: string, name: string) => {
  const folder = join(home, "logs")
  let descriptor: number | undefined
  const append = (text: string) => {
    try {
      // A home that is not there is not made: that is what `choirctl init` is for.
      if (descriptor === undefined && existsSync(home)) mkdirSync(folder, { recursive: true, mode: 0o700 })
      descriptor ??= openSync(join(folder, `${name}.log`), FLAGS, 0o600)
      writeSync(descriptor, text)
    } catch {
      // There is nowhere left to tell it.
    }
  }
  const close = () => {
    if (descriptor !== undefined) closeSync(descriptor)
    descriptor = undefined
  }
  return { append, close }
}

export class LogFiles extends Context.Service<
  LogFiles,
  {
    /** Writes an agent's output to its log until it ends. A flood of lines is slowed down here and cut by the container. */
    follow(agent_id: AgentId, session_id: SessionId, output: Stream.Stream<string>): Effect.Effect<void>
    /** Writes what this program logs to choird.log, and what it logs of an agent to that agent's log as well. */
    readonly logger: Logger.Logger<unknown, void>
  }
>()("choir/choird/LogFiles") {
  /** @param home need not exist yet, or at all. @param print takes each of choird's lines for a person as well. */
  static readonly layer = (home: string, print: ((line: string) => void) | undefined) =>
    Layer.effect(
      LogFiles,
      Effect.gen(function* () {
        const files = new Map<string, ReturnType<typeof makeFile>>()
        const file = (name: string) => {
          const found = files.get(name) ?? makeFile(home, name)
          files.set(name, found)
          return found
        }
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            for (const { close } of files.values()) close()
          })
        )
        return LogFiles.of({
          follow: (agent_id, session_id, output) =>
            Stream.runForEachArray(output, (lines) =>
              Clock.currentTimeMillis.pipe(
                Effect.map((now_ms) => {
                  const timestamp = new Date(now_ms).toISOString()
                  const texts = lines.map((text) => `${logText(agentLine(agent_id, session_id, timestamp, text))}\n`)
                  file(agent_id).append(texts.join(""))
                }),
                Effect.andThen(Effect.sleep(AGENT_OUTPUT_PAUSE_MS))
              )
            ),
          logger: Logger.make((options) => {
            const line = logLine("choird", options)
            const written = `${logText(line)}\n`
            file("choird").append(written)
            const agent = Schema.decodeUnknownOption(AgentId)(line["agent_id"])
            if (Option.isSome(agent)) file(agent.value).append(written)
            print?.(humanText(line))
          })
        })
      })
    )
}
