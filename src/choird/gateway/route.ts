/** The route of a message from outside, from the configuration and the agents' views alone (R46). */
import type { Config } from "#schema/Config.ts"
import { Option, Schema } from "effect"
import { CHAT_COMMANDS, type CommandWords } from "#schema/ChatCommand.ts"
import { AgentId, JobName, ResourceName } from "#schema/Ids.ts"
import { boundDms, dmList } from "#schema/ResourceBindings.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { hasSeveralPeople, isGroup } from "#src/shared/config/people.ts"
import { askedJob } from "#src/shared/session/jobText.ts"
import { isTooLong } from "#src/choird/queues/chatTextLimit.ts"
import type { Arrival } from "./Arrival.ts"
import { arrivalText, isForeign } from "./arrivalText.ts"
import { type Command, type Read, readCommand } from "#src/choird/chatcommands/readCommand.ts"

const jobName = Schema.decodeUnknownOption(JobName)

interface Place {
  readonly dm: ResourceName
  /** The agent at the DM, or the one that would be. */
  readonly agent_id: AgentId
}

export type Route =
  /** From a sender without a configured DM: no reply, so that a bot reveals nothing to strangers. */
  | { readonly type: "stranger" }
  /** Of a group's talk that is not for the bot. */
  | { readonly type: "ignore" }
  | ({
      readonly type: "refuse"
      readonly kind: "NO_AGENT" | "NO_TEXT" | "TOO_LARGE" | "NOT_ADMIN" | "NOT_MEMBER"
      readonly text: string
      /** The name of an answer that is given once and no more. */
      readonly once?: string
    } & Place)
  | ({ readonly type: "say"; readonly text: string } & Place)
  | ({
      readonly type: "command"
      readonly command: Command
      readonly admin: boolean
      readonly writer: ResourceName
      /** Written in a group, and answered in the writer's private chat. */
      readonly in_private?: true
    } & Place)
  | ({
      readonly type: "message"
      readonly text: string
      readonly forwarded?: boolean
      /** The line for the sender where the agent takes the message only when it runs again. */
      readonly kept?: string
    } & Place)

/** The speaker in a DM without an agent, and the agent of notices that are about no agent. */
export const NOBODY = AgentId.make("choird")

/** Whether an agent takes commands. Counts a paused agent, which will answer later by itself. */
const isThere = ({ status }: AgentView) => status === "starting" || status === "running" || status === "paused"

/** The agent that would answer at a DM: one whose defaults name it. */
const usualAgent = (config: Config, dm: ResourceName) =>
  Object.entries(config.agents).find(([, { defaults }]) => dmList(defaults.dm).includes(dm))?.[0]

/** How somebody at a DM gets an agent started. */
const startHelp = (config: Config, dm: ResourceName, name: string | undefined): string => {
  if (name === undefined) {
    const [first, ...others] = Object.keys(config.agents)
    if (first === undefined) return "There is no agent yet. To add one on the host: choirctl agent init <name>"
    const order = (agent: string) => `To start one on the host: choirctl agent start ${agent} --dm ${dm}`
    return others.length === 0 ? order(first) : `${order("<agent>")} (${[first, ...others].join(" or ")})`
  }
  const place = config.dms[dm]
  if (place !== undefined && traitsOf(config, place.gateway).is_local)
    return `To start it: choirctl agent start ${name}`
  return `${place?.admin === true ? "To start it" : "An admin can start it"}: /start ${name}`
}

/** The name of the agent that would answer at a DM, and why it does not. */
const away = (
  config: Config,
  dm: ResourceName,
  last: AgentView | undefined,
  undone = "Your message was not delivered."
) => {
  const name = last?.agent_id ?? usualAgent(config, dm)
  const who = name === undefined ? "No agent is running here." : `${name} is not running at the moment.`
  const text = `${who} ${undone} ${startHelp(config, dm, name)}`
  return { agent_id: AgentId.make(name ?? NOBODY), text }
}

/** The line about a message that waits for its agent; undefined where no agent would ever take it. */
const keptText = (config: Config, dm: ResourceName, views: ReadonlyArray<AgentView>, last: AgentView | undefined) => {
  const name = last?.agent_id ?? usualAgent(config, dm)
  if (name === undefined) return undefined
  const status = (last ?? views.find(({ agent_id }) => agent_id === name))?.status ?? "stopped"
  if (status === "paused") return `${name} is paused. Your message is kept, and it is answered when ${name} continues.`
  // It runs in other chats: what is kept for it would be taken at once.
  if (status === "running" || status === "starting") return undefined
  return `${name} is not running at the moment. Your message is kept, and it is answered when ${name} runs again. ${startHelp(config, dm, name)}`
}

const dmOf = (config: Config, gateway: ResourceName, id: string) =>
  Object.entries(config.dms).find(([, dm]) => dm.gateway === gateway && dm.user_id === id)

/** The DM of a person or a group at a bot. */
export const dmNamed = (config: Config, gateway: ResourceName, id: string): ResourceName | undefined => {
  const found = dmOf(config, gateway, id)
  return found && ResourceName.make(found[0])
}

/** The agent that a command names, if it names one. */
const namedAgent = (command: Command) => ("agent_id" in command ? command.agent_id : undefined)

/** A command that needs no agent in the chat: an admin's, or one that names its agent. */
const isAlone = (words: CommandWords, command: Command) =>
  CHAT_COMMANDS[words].alone === true || namedAgent(command) !== undefined

/** The DMs that an agent talks to: those of its run, else of its defaults. */
const dmsOf = (config: Config, { agent_id }: Place, last: AgentView | undefined): ReadonlyArray<ResourceName> => {
  if (last !== undefined && last.bindings !== null) return boundDms(last.bindings)
  return Object.hasOwn(config.agents, agent_id) ? dmList(config.agents[agent_id]?.defaults.dm) : []
}

/** Whether an agent talks in groups alone. */
const isOfGroups = (config: Config, place: Place, last: AgentView | undefined): boolean =>
  dmsOf(config, place, last).every((name) => isGroup(config, name))

/** The line in a group whose agent talks in private, too, for those who do not. */
const NOT_MEMBER =
  "Here I answer only those who also talk with me in private: what is said to me in this group becomes part of that conversation. To have me answer everybody, give this group an agent of its own (choirctl dm pair --group)."

/**
 * Whether somebody in a group may command its agent: anyone who talks with that agent in a chat of their own, and an admin where the agent talks in groups
 * alone. Anybody else is a stranger there, whatever other agent they talk to. An admin decides by rights of their own, and hears where their other
 * commands belong.
 */
const mayCommandHere = (
  config: Config,
  read: Read,
  place: Place & { readonly admin: boolean; readonly last: AgentView | undefined; readonly writer: ResourceName }
): boolean =>
  place.agent_id === NOBODY ||
  (place.admin && isOfGroups(config, place, place.last)) ||
  dmsOf(config, place, place.last).includes(place.writer) ||
  (read.type !== "say" &&
    place.admin &&
    (CHAT_COMMANDS[read.words].by_own_rights === true || CHAT_COMMANDS[read.words].who === "admin"))

/** Why a command is not for this sender, in words for them; undefined if it is. */
const forbidden = (read: Read, { admin, agent_id, group }: { admin: boolean; agent_id: AgentId; group: boolean }) => {
  if (read.type === "say") return undefined
  const name = `/${read.words}`
  if (admin && group && CHAT_COMMANDS[read.words].who === "admin") return `Send ${name} in your private chat with me.`
  if (read.type === "forbidden") return `Only an admin may use ${name}.`
  const other = namedAgent(read.command)
  const isOther = other !== undefined && other !== agent_id
  if (!isOther || (admin && !group)) return undefined
  const job = read.words === "stop" ? ` To end a job: /cancel ${other}; /cores lists the jobs.` : ""
  return `Only an admin may do this to another agent, and only in a private chat.${job}`
}

/** A command as the chat's table has it for this sender. */
const routeCommand = (
  config: Config,
  read: Read,
  place: Place & {
    readonly admin: boolean
    readonly group: boolean
    readonly last: AgentView | undefined
    readonly writer: ResourceName
  }
): Route => {
  const { admin, agent_id, dm, group, last, writer } = place
  if (group && !mayCommandHere(config, read, place)) return { type: "stranger" }
  const reason = forbidden(read, place)
  if (reason !== undefined) return { type: "refuse", kind: "NOT_ADMIN", dm, agent_id, text: reason }
  if (read.type === "say") return { type: "say", dm, agent_id, text: read.text }
  if (read.type === "forbidden") return { type: "stranger" }
  if ((last === undefined || !isThere(last)) && !isAlone(read.words, read.command))
    return { type: "refuse", kind: "NO_AGENT", dm, ...away(config, dm, last, `/${read.words} was not carried out.`) }
  const aside = group && CHAT_COMMANDS[read.words].in_private === true ? ({ in_private: true } as const) : {}
  return { type: "command", dm, agent_id, admin, writer, command: read.command, ...aside }
}

export const route = (
  config: Config,
  views: ReadonlyArray<AgentView>,
  gateway: ResourceName,
  arrival: Omit<Arrival, "id">
): Route => {
  const { file, forwarded = false, group, quoted, text, user_id } = arrival
  if (group?.addressed === false) return { type: "ignore" }
  const found = dmOf(config, gateway, group?.chat_id ?? user_id)
  if (found === undefined) return { type: "stranger" }
  const dm = ResourceName.make(found[0])
  const sender = group === undefined ? found : dmOf(config, gateway, user_id)
  const last = views.find((view) => view.bindings !== null && boundDms(view.bindings).includes(dm))
  const agent_id = last !== undefined && isThere(last) ? last.agent_id : away(config, dm, last).agent_id
  const place = { dm, agent_id }
  // A stranger's words are never commands, even if forwarded by a person whom the agent knows.
  // In a group an admin has the commands of everybody, and everybody reads the answers.
  const hasAll = sender?.[1].admin === true && group === undefined
  const isShared = sender?.[1].admin !== true && hasSeveralPeople(config, dmsOf(config, place, last))
  const read = forwarded || text === undefined || file !== undefined ? undefined : readCommand(text, hasAll, isShared)
  if (read !== undefined) {
    if (sender === undefined) return { type: "stranger" }
    const admin = sender[1].admin
    const writer = ResourceName.make(sender[0])
    return routeCommand(config, read, { ...place, admin, group: group !== undefined, last, writer })
  }
  const isMember = sender !== undefined && dmsOf(config, place, last).includes(ResourceName.make(sender[0]))
  if (group !== undefined && !isMember && agent_id !== NOBODY && !isOfGroups(config, place, last))
    return { type: "refuse", kind: "NOT_MEMBER", ...place, text: NOT_MEMBER, once: `not-member/${dm}/${user_id}` }
  const isUp = last !== undefined && (last.status === "running" || last.status === "starting")
  const kept = isUp ? undefined : keptText(config, dm, views, last)
  if (!isUp && kept === undefined) return { type: "refuse", kind: "NO_AGENT", dm, ...away(config, dm, last) }
  const waits = kept === undefined ? {} : { kept }
  if (text === undefined) return { type: "refuse", kind: "NO_TEXT", ...place, text: "I can only read text and files." }
  const words = arrivalText(arrival)
  if (isTooLong(words)) return { type: "refuse", kind: "TOO_LARGE", ...place, text: "That message is too long for me." }
  if (isForeign(arrival)) return { type: "message", ...place, text: words, forwarded: true, ...waits }
  const asked =
    quoted?.by.kind !== "own" || quoted.text === undefined || file !== undefined || kept !== undefined
      ? undefined
      : Option.getOrUndefined(jobName(askedJob(quoted.text)))
  // A reply to a job's question is its answer, as long as the job asks.
  return asked === undefined
    ? { type: "message", ...place, text: words, ...waits }
    : {
        type: "command",
        ...place,
        admin: sender?.[1].admin === true,
        writer: dm,
        command: { type: "answer", content: text, job_name: asked }
      }
}
