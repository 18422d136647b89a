/** The commands of a chat, read from what a person typed by the table of `schema/ChatCommand.ts` (R46). */
import { Option, Schema } from "effect"
import { RestartAgent } from "#schema/AgentsApi.ts"
import {
  CHAT_COMMANDS,
  type ChatCommand,
  chatCommands,
  type ChoiceKind,
  type CommandWords,
  HELP_TOPICS,
  type HelpTopic,
  mayGive
} from "#schema/ChatCommand.ts"
import { AgentId, ApprovalId, GrantId, JobName, ResourceName } from "#schema/Ids.ts"
import { MEMORY_QUERY_CHARS_MAX } from "#schema/Memory.ts"
import { PlanId } from "#schema/Plan.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { SLASH } from "#src/choird/queues/chatText.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { plainWord, SENTENCE_END, withPlainDigits } from "#src/shared/text/typedText.ts"
import type { VoiceMode } from "./ChatSettings.ts"

/** A person's yes or no. Without an id the only approval that waits is meant, or the one that the message replied to is about. */
export interface Decide {
  readonly type: "decide"
  readonly resolution: "approved" | "rejected"
  readonly approval_id: ApprovalId | undefined
  /** It names no approval and replies to a message that is about none. */
  readonly astray?: true
  /** By a button of the card, which nobody has but those in its chat. */
  readonly on_card?: true
  readonly reason: string | null
}

/** Orders about an agent as a whole, or about all of Choir. */
export type AgentCommand =
  | { readonly type: "start agent"; readonly agent_id: AgentId; readonly options: RestartAgent }
  | { readonly type: "stop agent" | "restart agent" | "update agent"; readonly agent_id?: AgentId }
  | { readonly type: "build agent"; readonly agent_id: AgentId }
  | { readonly type: "update all" | "list agents" | "list workspaces" | "list secrets" }
  | { readonly type: "load config" | "diff config" | "apply config" }
  | { readonly type: "reset workspace"; readonly name: ResourceName; readonly sure: boolean }
  | { readonly type: "default model"; readonly llm: ResourceName }

export type Command =
  | Decide
  | AgentCommand
  | { readonly type: "status" }
  | { readonly type: "cores" }
  | { readonly type: "context" }
  | { readonly type: "events"; readonly count: number }
  | { readonly type: "approvals" }
  | { readonly type: "grants" }
  | { readonly type: "revoke grant"; readonly grant_id: GrantId }
  | { readonly type: "stop" }
  | { readonly type: "cancel"; readonly job_name: JobName | undefined }
  | { readonly type: "compact" }
  | { readonly type: "new"; readonly end_jobs: boolean }
  | { readonly type: "trust"; readonly rev: number | undefined }
  | { readonly type: "inject"; readonly content: string }
  | { readonly type: "answer"; readonly content: string; readonly job_name?: JobName }
  | { readonly type: "memory"; readonly query: string | undefined }
  | { readonly type: "forget"; readonly text: string }
  | { readonly type: "remind"; readonly words: string }
  | { readonly type: "next" }
  /** A reply to a reminder with a time alone. */
  | { readonly type: "again"; readonly plan_id: PlanId; readonly words: string }
  | { readonly type: "order plan"; readonly order: "skip" | "remove"; readonly plan_id: PlanId }
  | { readonly type: "model" }
  | { readonly type: "set model"; readonly llm: ResourceName; readonly keep: boolean }
  | { readonly type: "rich" | "reactions"; readonly on: boolean }
  | { readonly type: "voice" }
  | { readonly type: "voice mode"; readonly mode: VoiceMode }
  | { readonly type: "set voice"; readonly voice_profile: ResourceName }
  /** The argument is missing: the person gets a numbered list of what it may be. */
  | { readonly type: "choose"; readonly words: CommandWords; readonly from: ChoiceKind }

/**
 * `say` is a command that needs only this answer: a greeting, the usage of a command, or the list of commands. `forbidden` is one that
 * only an admin may give.
 */
export type Read =
  | { readonly type: "command"; readonly words: CommandWords; readonly command: Command }
  | { readonly type: "say"; readonly text: string }
  | { readonly type: "forbidden"; readonly words: CommandWords }

/** Events of one answer, and of one that names no number. */
const EVENTS_SHOWN_MAX = 30
const EVENTS_SHOWN = 10

const grantId = Schema.decodeUnknownOption(GrantId)
const agentId = Schema.decodeUnknownOption(AgentId)
const planId = Schema.decodeUnknownOption(PlanId)
const jobName = Schema.decodeUnknownOption(JobName)
const resourceName = Schema.decodeUnknownOption(ResourceName)
const overrides = Schema.decodeUnknownOption(RestartAgent, { onExcessProperty: "error" })

/** `7`, `#7` or `7.`, in the digits and with the signs of any script, with what follows it. */
const NUMBERED =
  /^[#\u{ff03}]?(\p{Nd}{1,18})(?![\p{L}\p{N}_])[.:,!\u{3001}\u{3002}\u{ff01}\u{ff0c}\u{ff0e}\u{ff1a}]?\s*(.*)$/su

const decide = (resolution: Decide["resolution"], rest: string): Decide => {
  const [, digits = "", after = rest] = NUMBERED.exec(rest) ?? []
  const id = withPlainDigits(digits)
  const isId = /^[1-9]/u.test(id)
  const text = isId ? after : rest
  const approval_id = isId ? ApprovalId.make(id) : undefined
  return { type: "decide", resolution, approval_id, reason: text === "" ? null : text }
}

/** An agent that may be left out; the one of the chat is meant then. */
const onAgent =
  (type: "stop agent" | "restart agent" | "update agent") =>
  (rest: string): Command | undefined => {
    if (rest === "") return { type }
    const agent_id = Option.getOrUndefined(agentId(rest))
    return agent_id === undefined ? undefined : { type, agent_id }
  }

const startOf = (rest: string): Command | undefined => {
  const [name, ...pairs] = rest.split(/\s+/u)
  const agent_id = Option.getOrUndefined(agentId(name))
  const entries = pairs.map((pair) => {
    const [, key = "", value = ""] = /^([a-z_-]+)=(\S+)$/u.exec(pair) ?? []
    return [key.replaceAll("-", "_"), value] as const
  })
  // The chat itself is the DM, whatever is typed.
  const options = entries.some(([key]) => key === "dm")
    ? undefined
    : Option.getOrUndefined(overrides(Object.fromEntries(entries)))
  return agent_id === undefined || options === undefined ? undefined : { type: "start agent", agent_id, options }
}

/** An order about a plan by its number. */
const onPlan =
  (order: "skip" | "remove") =>
  (rest: string): Command | undefined => {
    const plan_id = Option.getOrUndefined(planId(Number(withPlainDigits(rest.replace(/^#/u, "")) || Number.NaN)))
    return plan_id === undefined ? undefined : { type: "order plan", order, plan_id }
  }

/** A command without arguments. */
const alone =
  (command: Command) =>
  (rest: string): Command | undefined =>
    rest === "" ? command : undefined

const onOrOff =
  (type: "rich" | "reactions") =>
  (rest: string): Command | undefined =>
    /^(?:on|off)$/iu.test(rest) ? { type, on: rest.toLowerCase() === "on" } : undefined

/** A mode, else the name of a profile. */
const voiceOf = (rest: string): Command | undefined => {
  const mode = rest.toLowerCase()
  if (rest === "") return { type: "voice" }
  if (mode === "on" || mode === "off" || mode === "mirror") return { type: "voice mode", mode }
  const voice_profile = Option.getOrUndefined(resourceName(rest))
  return voice_profile === undefined ? undefined : { type: "set voice", voice_profile }
}

const modelOf = (rest: string): Command | undefined => {
  const [, name, keep] = /^(\S+)(\s+(?:--)?default)?$/iu.exec(rest) ?? []
  const llm = Option.getOrUndefined(resourceName(name))
  return llm === undefined ? undefined : { type: "set model", llm, keep: keep !== undefined }
}

/** The reader of the arguments of each command; undefined for an invalid use of it. A command without its required argument never comes here. */
const READERS: Readonly<Record<Exclude<CommandWords, "help">, (rest: string) => Command | undefined>> = {
  status: () => ({ type: "status" }),
  cores: () => ({ type: "cores" }),
  context: () => ({ type: "context" }),
  events: (rest) => {
    const count = rest === "" ? EVENTS_SHOWN : Number(withPlainDigits(rest))
    return Number.isInteger(count) && count > 0
      ? { type: "events", count: Math.min(count, EVENTS_SHOWN_MAX) }
      : undefined
  },
  stop: (rest) => (rest === "" ? { type: "stop" } : onAgent("stop agent")(rest)),
  restart: onAgent("restart agent"),
  cancel: (rest) => {
    if (rest === "") return { type: "cancel", job_name: undefined }
    const job_name = Option.getOrUndefined(jobName(rest))
    return job_name === undefined ? undefined : { type: "cancel", job_name }
  },
  remind: (rest) => (rest === "" ? undefined : { type: "remind", words: rest }),
  next: () => ({ type: "next" }),
  skip: onPlan("skip"),
  "cancel plan": onPlan("remove"),
  approvals: () => ({ type: "approvals" }),
  grants: alone({ type: "grants" }),
  "grants revoke": (rest) => {
    const grant_id = Option.getOrUndefined(grantId(rest.replace(/^#/u, "")))
    return grant_id === undefined ? undefined : { type: "revoke grant", grant_id }
  },
  approve: (rest) => {
    const command = decide("approved", rest)
    return command.reason === null ? command : undefined
  },
  reject: (rest) => decide("rejected", rest),
  inject: (rest) => (rest === "" ? undefined : { type: "inject", content: rest }),
  answer: (rest) => (rest === "" ? undefined : { type: "answer", content: rest }),
  compact: () => ({ type: "compact" }),
  trust: (rest) =>
    rest === ""
      ? { type: "trust", rev: undefined }
      : /^\d{1,9}$/u.test(rest)
        ? { type: "trust", rev: Number(rest) }
        : undefined,
  new: (rest) => (/^(?:yes)?$/iu.test(rest) ? { type: "new", end_jobs: rest !== "" } : undefined),
  memory: (rest) => ({ type: "memory", query: rest === "" ? undefined : rest.slice(0, MEMORY_QUERY_CHARS_MAX) }),
  forget: (rest) => (rest === "" ? undefined : { type: "forget", text: rest }),
  model: (rest) => (rest === "" ? { type: "model" } : modelOf(rest)),
  "model llm": modelOf,
  rich: onOrOff("rich"),
  reactions: onOrOff("reactions"),
  voice: voiceOf,
  start: startOf,
  update: onAgent("update agent"),
  update_all: alone({ type: "update all" }),
  "agent list": alone({ type: "list agents" }),
  "agent build": (rest) => {
    const agent_id = Option.getOrUndefined(agentId(rest))
    return agent_id === undefined ? undefined : { type: "build agent", agent_id }
  },
  "config load": alone({ type: "load config" }),
  "config diff": alone({ type: "diff config" }),
  "config apply": alone({ type: "apply config" }),
  "workspace list": alone({ type: "list workspaces" }),
  "workspace reset": (rest) => {
    const [, typed, yes] = /^(\S+)(?:\s+(yes))?$/iu.exec(rest) ?? []
    const name = Option.getOrUndefined(resourceName(typed))
    return name === undefined ? undefined : { type: "reset workspace", name, sure: yes !== undefined }
  },
  "secret list": alone({ type: "list secrets" })
}

/** Commands whose missing argument is asked for at once; of the others some mean something without it. */
const NEEDS_ARGUMENT: ReadonlySet<CommandWords> = new Set([
  "model llm",
  "grants revoke",
  "agent build",
  "workspace reset"
])

const isOf = (words: CommandWords, first: string) => words === first || words.startsWith(`${first} `)

/** The commands of a bot's menu: one for each first word, since a menu's names hold no blank. */
export const menuOf = (admin: boolean): ReadonlyArray<{ readonly command: string; readonly description: string }> => {
  const given = chatCommands.filter(({ words }) => mayGive(words, admin))
  const firsts = [...new Set(given.map(({ words }) => words.split(" ", 1)[0] ?? words))]
  return firsts.map((command) => {
    const rows = given.filter(({ words }) => isOf(words, command))
    const only = rows.find(({ words }) => words === command) ?? (rows.length === 1 ? rows[0] : undefined)
    const more = rows.map(({ words }) => words.slice(command.length + 1)).join(", ")
    return { command, description: only?.help ?? `Followed by one of: ${more}` }
  })
}

const topicOf = ({ topic = "day" }: Pick<ChatCommand, "topic">): HelpTopic => topic

/** The part of a topic that an answer repeats. */
const TOPIC_CHARS_MAX = 60

/** Commands that show or remove what anybody told the agent. Where several people talk with it, only an admin may give them. */
export const OF_ALL_WORDS: ReadonlySet<string> = new Set<CommandWords>(["memory", "forget", "events", "context"])

/** The commands of one topic and what they do; without one those of every day, and the names of the other topics. */
const helpOf = (admin: boolean, isShared: boolean, asked = ""): string => {
  const given = chatCommands.filter(({ words }) => mayGive(words, admin) && !(isShared && OF_ALL_WORDS.has(words)))
  const topics = [...new Set(given.map(topicOf))]
  const topic = topics.find((name) => name === asked.toLowerCase()) ?? "day"
  const lines = given
    .filter((row) => topicOf(row) === topic)
    .map(({ help, usage, words }) => `/${words}${usage}: ${help}`)
  const others = topics.flatMap((name) => (name === topic ? [] : [`/help ${name}: ${HELP_TOPICS[name]}`]))
  const unknown =
    asked === "" || topic === asked.toLowerCase() ? [] : [`There is no topic ${firstPart(asked, TOPIC_CHARS_MAX)}.`]
  return [...unknown, `${HELP_TOPICS[topic]}:`, ...lines, "", ...others].join("\n")
}

const SLASHED = new RegExp(String.raw`^[/\u{ff0f}${SLASH}]\S*`, "u")

/** `/name@bot rest`: Telegram adds the bot's name in its menus and in groups. */
const COMMAND = /^\/([A-Za-z0-9_-]{1,32})(?:@[A-Za-z0-9_]{1,64})?$/u

/**
 * A word behind a slash that names no command: alone it is a mistyped one, and so it is with one word more where a command has nearly that name. A longer text
 * begins with a path or a fraction ("/home is full"), and is for the agent.
 */
const unknown = (typed: string, rest: string, admin: boolean): Read | undefined => {
  const given = chatCommands.filter(({ words }) => mayGive(words, admin))
  const near = nearestWord(typed, [...new Set(given.map(({ words }) => words.split(" ", 1)[0] ?? words))])
  const isSentence = /\s/u.test(rest) || (rest !== "" && near === undefined)
  if (isSentence) return undefined
  const meant = near === undefined ? "" : ` Did you mean /${near}?`
  return { type: "say", text: `Unknown command /${typed}.${meant} /help lists the commands.` }
}

const isWords = (text: string): text is CommandWords => Object.hasOwn(CHAT_COMMANDS, text)

/**
 * Undefined for a text that is not a command, and thus meant for the agent. `isShared`: several people talk with the agent, and this one is no
 * admin of it.
 */
export const readCommand = (text: string, admin: boolean, isShared = false): Read | undefined => {
  const [typedAs = ""] = SLASHED.exec(text) ?? []
  const begun = typedAs.replace(SLASH, "/")
  const rest = text.slice(typedAs.length).trim()
  const [, typed] = COMMAND.exec(rest === "" ? plainWord(begun).replace(SENTENCE_END, "") : plainWord(begun)) ?? []
  if (typed === undefined) return undefined
  const first = typed.toLowerCase().replaceAll("-", "_")
  // `/update-all` is choirctl's spelling of a command; every other word with a hyphen is a text.
  if (typed.includes("-") && !isWords(first)) return undefined
  const [second = ""] = rest.split(/\s/u, 1)
  const two = `${first} ${plainWord(second).toLowerCase()}`
  const words = second !== "" && isWords(two) ? two : isWords(first) ? first : undefined
  // A bare /start is what a messenger sends for a person who opens the chat; it never starts an agent (E6).
  if (words === "start" && rest === "")
    return { type: "say", text: `Hello! Write to me in plain words.\n${helpOf(admin, isShared)}` }
  if (words === "help") return { type: "say", text: helpOf(admin, isShared, rest) }
  if (words !== undefined) {
    if (!mayGive(words, admin)) return { type: "forbidden", words }
    return readArguments(words, words === two ? rest.slice(second.length).trim() : rest)
  }
  const subs = chatCommands.filter((row) => row.words.startsWith(`${first} `) && mayGive(row.words, admin))
  return subs.length === 0
    ? unknown(first, rest, admin)
    : { type: "say", text: `Usage: ${subs.map(usageOf).join(", or ")}` }
}

const usageOf = ({ words }: { readonly words: CommandWords }) => `/${words}${CHAT_COMMANDS[words].usage}`

const readArguments = (words: Exclude<CommandWords, "help">, rest: string): Read => {
  const { choose } = CHAT_COMMANDS[words]
  if (rest === "" && choose !== undefined && NEEDS_ARGUMENT.has(words))
    return { type: "command", words, command: { type: "choose", words, from: choose } }
  const command = READERS[words](rest)
  if (command !== undefined) return { type: "command", words, command }
  const others = chatCommands.filter(
    (row) => isOf(row.words, words) || isOf(row.words, words.split(" ", 1)[0] ?? words)
  )
  return { type: "say", text: `Usage: ${others.map(usageOf).join(", or ")}` }
}
