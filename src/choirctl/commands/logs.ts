/** choirctl logs: what choird and the agents write down. */
import { join } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AgentId } from "#schema/Ids.ts"
import { endWithReader } from "#src/choirctl/terminal/closedPipe.ts"
import { jsonLogLine, peopleLogLine } from "#src/choirctl/render/logLine.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"

export const logs = Command.make(
  "logs",
  {
    // choird's own log is named as an agent's is, and no agent could be confused with it in a folder of logs.
    source: Argument.String("agent-id|choird").pipe(
      Argument.withDescription("Whose log"),
      Argument.withSchema(AgentId)
    ),
    follow: Flag.Boolean("follow").pipe(
      Flag.withDescription("Go on as lines are written, as on a terminal; --no-follow ends with the last one"),
      Flag.optional
    ),
    last: Flag.Int("last").pipe(
      Flag.filter(
        (value) => value >= 0,
        () => "--last is a whole number from 0"
      ),
      Flag.withDescription("Begin with this many of the newest lines"),
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
).pipe(
  Command.withDescription("Print a log; a terminal shows it for people and as it grows, all else gets JSON lines"),
  Command.withExamples([{ command: "choirctl logs choird --last 50" }])
)
