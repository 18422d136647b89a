/** The commands of a chat, read from what a person typed. All of them are about the agent at the person's own DM (R46). */
import { Option, Schema } from "effect"
import { ApprovalId, JobName, ResourceName } from "#schema/Ids.ts"
import { MEMORY_QUERY_CHARS_MAX } from "#schema/Memory.ts"

/** A person's yes or no. Without an id the only approval that waits is meant. */
export interface Decide {
  readonly type: "decide"
  readonly resolution: "approved" | "rejected"
  readonly approval_id: ApprovalId | undefined
  readonly reason: string | null
}

export type Command =
  | Decide
  | { readonly type: "status" }
  | { readonly type: "cores" }
  | { readonly type: "context" }
  | { readonly type: "stop" }
  | { readonly type: "cancel"; readonly job_name: JobName | undefined }
  | { readonly type: "compact" }
  | { readonly type: "inject"; readonly content: string }
  | { readonly type: "answer"; readonly content: string; readonly job_name?: JobName }
  | { readonly type: "memory"; readonly query: string | undefined }
  | { readonly type: "forget"; readonly text: string }
  | { readonly type: "model" }
  | { readonly type: "set model"; readonly llm: ResourceName }

/** `say` is a command that needs only this answer: a greeting, the usage of a command, or the list of commands. */
export type Read =
  | { readonly type: "command"; readonly command: Command }
  | { readonly type: "say"; readonly text: string }

interface Entry {
  readonly usage: string
  readonly description: string
  /** Undefined for an invalid use of this command. */
  readonly read: (rest: string) => Command | undefined
}

const jobName = Schema.decodeUnknownOption(JobName)
const resourceName = Schema.decodeUnknownOption(ResourceName)

/** `7`, `#7` or `7.`, with what follows it. */
const NUMBERED = /^#?([1-9]\d{0,17})\b[.:,]?\s*(.*)$/su

const decide = (resolution: Decide["resolution"], rest: string): Decide => {
  const [, id, text = rest] = NUMBERED.exec(rest) ?? []
  const approval_id = id === undefined ? undefined : ApprovalId.make(id)
  return { type: "decide", resolution, approval_id, reason: text === "" ? null : text }
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  status: { usage: "", description: "What the agent is doing", read: () => ({ type: "status" }) },
  cores: { usage: "", description: "The jobs that run", read: () => ({ type: "cores" }) },
  context: {
    usage: "",
    description: "What the agent has in mind, and how much room is left",
    read: () => ({ type: "context" })
  },
  stop: {
    usage: "",
    description: "Stop what the agent is doing for you now; jobs continue",
    read: (rest) => (rest === "" ? { type: "stop" } : undefined)
  },
  cancel: {
    usage: " [job]",
    description: "End a job; without a name the only one, or what /stop ends when no job runs",
    read: (rest) => {
      if (rest === "") return { type: "cancel", job_name: undefined }
      const job_name = Option.getOrUndefined(jobName(rest))
      return job_name === undefined ? undefined : { type: "cancel", job_name }
    }
  },
  approve: {
    usage: " [number]",
    description: "Approve what the agent asks for; without a number the only request",
    read: (rest) => {
      const command = decide("approved", rest)
      return command.reason === null ? command : undefined
    }
  },
  reject: {
    usage: " [number] [reason]",
    description: "Reject what the agent asks for; without a number the only request",
    read: (rest) => decide("rejected", rest)
  },
  inject: {
    usage: " <message>",
    description: "Tell the agent something in the middle of its work",
    read: (rest) => (rest === "" ? undefined : { type: "inject", content: rest })
  },
  answer: {
    usage: " [job] <answer>",
    description: "Answer a job's question; without a name the only job that asks",
    read: (rest) => (rest === "" ? undefined : { type: "answer", content: rest })
  },
  compact: {
    usage: "",
    description: "Summarise the older part of the conversation",
    read: () => ({ type: "compact" })
  },
  memory: {
    usage: " [words]",
    description: "What the agent knows, or what it remembers of some words",
    read: (rest) => ({ type: "memory", query: rest === "" ? undefined : rest.slice(0, MEMORY_QUERY_CHARS_MAX) })
  },
  forget: {
    usage: " <words>",
    description: "Forget a fact, or everything that holds these words; asks first",
    read: (rest) => (rest === "" ? undefined : { type: "forget", text: rest })
  },
  model: {
    usage: " [llm <name>]",
    description: "Which model answers, or switch to another",
    read: (rest) => {
      if (rest === "") return { type: "model" }
      const [what, name, ...more] = rest.split(/\s+/u)
      const llm = what === "llm" && more.length === 0 ? Option.getOrUndefined(resourceName(name)) : undefined
      return llm === undefined ? undefined : { type: "set model", llm }
    }
  }
}

/** Answered with the list of the others. */
const HELP_COMMAND = "help"

/** The commands that a bot's menu shows. */
export const MENU: ReadonlyArray<{ readonly command: string; readonly description: string }> = [
  ...Object.entries(COMMANDS).map(([command, { description }]) => ({ command, description })),
  { command: HELP_COMMAND, description: "The commands of this chat" }
]

/** The commands and what they do, which /help and every unknown command show. */
const HELP = Object.entries(COMMANDS)
  .map(([name, { description, usage }]) => `/${name}${usage}: ${description}`)
  .join("\n")

/** `/name@bot rest`: Telegram adds the bot's name in its menus. */
const COMMAND = /^\/([A-Za-z0-9_]{1,32})(?:@[A-Za-z0-9_]{1,64})?(?:\s|$)/u

/** Undefined for a text that is not a command, and thus meant for the agent. */
export const readCommand = (text: string): Read | undefined => {
  const [matched, typed] = COMMAND.exec(text) ?? []
  if (matched === undefined || typed === undefined) return undefined
  const name = typed.toLowerCase()
  const rest = text.slice(matched.length).trim()
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (entry !== undefined) {
    const command = entry.read(rest)
    return command === undefined ? { type: "say", text: `Usage: /${name}${entry.usage}` } : { type: "command", command }
  }
  if (name === HELP_COMMAND) return { type: "say", text: HELP }
  // A bare /start is what a messenger sends for a person who opens the chat; it never starts an agent (E6).
  if (name === "start" && rest === "") return { type: "say", text: `Hello! Write to me in plain words.\n${HELP}` }
  return { type: "say", text: `I do not know the command /${name}.\n${HELP}` }
}
