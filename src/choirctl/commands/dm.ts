/** choirctl dm: the people who may talk to agents. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { DmSummary, PairingCode } from "#schema/DmsApi.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { print, printAdvice } from "#src/choirctl/terminal/print.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { removeEntry } from "./removeEntry.ts"

const pairText = ({ agent_id, bot, code, name, warning }: PairingCode): string =>
  [
    ...(warning === undefined ? [] : [`Warning: ${safeLine(warning)}.`]),
    `Send this to ${bot === null ? "the bot" : `@${bot}`} within ten minutes: ${code}`,
    ...(bot === null ? [] : [`or open https://t.me/${bot}?start=${code.replace("-", "")}`]),
    agent_id === null
      ? `There is more than one agent: bind one with choirctl agent restart <agent-id> --dm ${name}`
      : `The person who sends it becomes the DM ${name} and talks to ${agent_id}, which restarts to let them in and ends any running turn.`
  ].join("\n")

const pair = Command.make(
  "pair",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("Name of the new DM in config.json, such as phone"),
      Argument.withSchema(ResourceName)
    ),
    gateway: Flag.String("gateway").pipe(
      Flag.withDescription("Bot from config.json that the person will write to"),
      Flag.withMetavar("<name>"),
      Flag.withSchema(ResourceName)
    ),
    admin: Flag.Boolean("admin").pipe(
      Flag.withDescription("Let this person decide approvals and give every command, for all agents"),
      Flag.withDefault(false)
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Agent that the person will talk to; default: the only one"),
      Flag.withMetavar("<agent-id>"),
      Flag.withSchema(AgentId),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ admin, agent, gateway, name }) {
    const payload = { name, gateway, admin, ...(Option.isSome(agent) ? { agent_id: agent.value } : {}) }
    yield* printAdvice(yield* ask("dms", (choird) => choird.pair({ payload })), pairText)
  })
).pipe(
  Command.withDescription("Let a person in: print a code that they send to the bot within ten minutes"),
  Command.withExamples([{ command: "choirctl dm pair phone --gateway telegram --admin" }])
)

const dmTable = (rows: ReadonlyArray<DmSummary>, color: boolean): string =>
  rows.length === 0
    ? "config.json has no DM"
    : table(
        ["NAME", "GATEWAY", "USER", "ADMIN", "AGENT"],
        rows.map(({ admin, agent_id, gateway, name, user_id }) => [
          name,
          gateway,
          safeLine(user_id),
          admin ? "yes" : "no",
          agent_id ?? "-"
        ]),
        color
      )

const list = Command.make(
  "list",
  {},
  Effect.fnUntraced(function* () {
    yield* print(yield* ask("dms", (choird) => choird.list()), dmTable)
  })
).pipe(
  Command.withDescription("List the people and groups that may talk to agents, and the agent that each talks to"),
  Command.withExamples([{ command: "choirctl dm list" }])
)

const remove = Command.make(
  "remove",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription("DM from config.json"),
      Argument.withSchema(ResourceName)
    ),
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ name, yes }) {
    const { dmRemoval } = yield* Effect.promise(() => import("#src/choirctl/home/removedEntries.ts"))
    yield* removeEntry({ noun: "dm", name, yes }, (home) => dmRemoval(home, name))
  }, onHost)
).pipe(
  Command.withDescription("Stop letting a person or a group talk to agents"),
  Command.withExamples([{ command: "choirctl dm remove phone" }])
)

export const dm = Command.make("dm").pipe(Command.withSubcommands([list, pair, remove]))
