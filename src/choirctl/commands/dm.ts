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

/** The conversation that the new person or group shares with those who already talk to the agent. */
const sharedText = ({ agent_id, gateway, group, name, shares = [] }: PairingCode): ReadonlyArray<string> => {
  if (agent_id === null) return []
  if (group === true)
    return [
      `Everybody in the group can talk with ${agent_id} there; admins alone can command it, and get its answers about memory in private.`
    ]
  return shares.length === 0
    ? []
    : [
        `${agent_id} also talks with ${shares.join(", ")}. If that is somebody else, they share one conversation: ${name} can learn what they told ${agent_id}, and they what ${name} tells it.`,
        `For a conversation of their own, make an agent first (choirctl agent init), then: choirctl dm pair ${name} --gateway ${gateway} --agent <agent-id>`
      ]
}

const linkText = ({ bot, code, group }: PairingCode): ReadonlyArray<string> =>
  bot === null
    ? []
    : [`or open https://t.me/${bot}?${group === true ? "startgroup" : "start"}=${code.replace("-", "")}`]

const pairText =
  (admin: boolean) =>
  (pairing: PairingCode): string => {
    const { agent_id, bot, code, gateway, group, name, warning } = pairing
    const at = bot === null ? "the bot" : `@${bot}`
    const told = group === true ? `the group becomes the DM ${name}` : `The person who sends it becomes the DM ${name}`
    return [
      ...(warning === undefined ? [] : [`Warning: ${safeLine(warning)}.`]),
      group === true
        ? `Add ${at} to the group and write there within ten minutes, as an admin of Choir: /start${bot === null ? "" : at} ${code}`
        : `Send this to ${at} within ten minutes: ${code}`,
      ...linkText(pairing),
      agent_id === null
        ? `There is more than one agent, and this code is for none of them. For a code that lets the person talk to one: choirctl dm pair ${name} --gateway ${gateway}${admin ? " --admin" : ""} --agent <agent-id>`
        : `${told.charAt(0).toUpperCase()}${told.slice(1)} and talks to ${agent_id}, which restarts to let them in and ends any running turn.`,
      ...sharedText(pairing)
    ].join("\n")
  }

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
    group: Flag.Boolean("group").pipe(
      Flag.withDescription("Let a group in instead of a person: an admin writes the code in the group"),
      Flag.withDefault(false)
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Agent that the person will talk to; default: the only one"),
      Flag.withMetavar("<agent-id>"),
      Flag.withSchema(AgentId),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ admin, agent, gateway, group, name }) {
    const payload = {
      name,
      gateway,
      admin,
      ...(group ? { group } : {}),
      ...(Option.isSome(agent) ? { agent_id: agent.value } : {})
    }
    yield* printAdvice(yield* ask("dms", (choird) => choird.pair({ payload })), pairText(admin))
  })
).pipe(
  Command.withDescription("Let a person in: print a code that they send to the bot within ten minutes"),
  Command.withExamples([
    { command: "choirctl dm pair phone --gateway telegram --admin" },
    { command: "choirctl dm pair family --gateway telegram --group --agent family-agent" }
  ])
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
