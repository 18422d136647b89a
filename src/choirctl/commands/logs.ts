/** choirctl logs: what choird and the agents write down. */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AgentId } from "#schema/Ids.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { endWithReader, Screen } from "#src/choirctl/terminal/Screen.ts"
import { jsonText, paint, type Paint, safeLine } from "#src/choirctl/terminal/text.ts"
import { humanText, type LogLine } from "#src/shared/text/logs.ts"

/** The line's JSON; `undefined` for a line that a crash tore or another program wrote. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The line as one JSON object, whatever the file holds. */
const jsonLogLine = (text: string): string => {
  const value = parse(text)
  return jsonText(isRecord(value) ? value : { message: text })
}

const STYLES: Readonly<Record<string, Paint>> = {
  ERROR: "red",
  FATAL: "red",
  WARN: "yellow",
  DEBUG: "dim",
  TRACE: "dim"
}

const isLogLine = (value: unknown): value is LogLine =>
  isRecord(value) && ["timestamp", "level", "source", "message"].every((key) => typeof value[key] === "string")

/** The line for a person: time, level where it matters, lane, message. */
const peopleLogLine = (text: string, color: boolean): string => {
  const line = parse(text)
  if (!isLogLine(line)) return safeLine(text)
  const style = STYLES[line.level]
  const where = typeof line.lane === "string" && line.lane !== "edge" ? `${line.lane}: ` : ""
  const shown = humanText({ ...line, message: `${where}${line.message}` })
  return style === undefined ? shown : paint(color, style, shown)
}

export const logs = Command.make(
  "logs",
  {
    // choird's own log is named as an agent's is, and no agent could be confused with it in a folder of logs.
    source: Argument.String("agent-id|choird").pipe(
      Argument.withDescription("Agent id, or choird"),
      Argument.withSchema(AgentId)
    ),
    follow: Flag.Boolean("follow").pipe(
      Flag.withDescription(
        "Print new lines as they are written; the default on a terminal, where --no-follow turns it off"
      ),
      Flag.optional
    ),
    last: Flag.Int("last").pipe(
      Flag.filter(
        (value) => value >= 0,
        () => "--last must be a whole number from 0"
      ),
      Flag.withDescription("Start with this many of the newest lines"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ follow, last, source }) {
    const { home, json } = yield* root
    const screen = yield* Screen
    const { requireHome } = yield* Effect.promise(() => import("#src/choirctl/home/homeFiles.ts"))
    yield* requireHome(home)
    yield* endWithReader
    const { tailLog } = yield* Effect.promise(() => import("#src/choirctl/terminal/LogReader.ts"))
    const shown = json || !screen.terminal ? jsonLogLine : (text: string) => peopleLogLine(text, screen.color)
    yield* tailLog(
      {
        path: join(home, "logs", `${source}.log`),
        follow: Option.getOrElse(follow, () => screen.terminal),
        last: Option.getOrUndefined(last),
        hint: `choirctl agent list shows the agents; the logs of ended sessions are in ${join(home, "logs", "archive", source)}`
      },
      ({ text }) => screen.print(shown(text))
    )
  })
).pipe(Command.withExamples([{ command: "choirctl logs choird --last 50" }]))
