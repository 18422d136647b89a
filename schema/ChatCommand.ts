/**
 * The one table of a chat's commands: who may give one, what follows it, and what it does. Parsing, help, the bot's menu, choirctl's words
 * for steering and the test of permissions are made of it.
 */

/** The things that a number chooses from where an argument is missing. */
export type ChoiceKind = "agent" | "approval" | "job" | "model" | "workspace"

/** The topics of help, each a screen of a phone. */
export const HELP_TOPICS = {
  day: "Every day",
  work: "Jobs and the conversation",
  chat: "This chat",
  agents: "Agents and the configuration"
} as const
export type HelpTopic = keyof typeof HELP_TOPICS

export interface ChatCommand {
  /** The topic of help that lists it; `day` where it names none. */
  readonly topic?: HelpTopic
  /** Commands for everybody are about the agent at the sender's own DM; an admin may name another one. */
  readonly who: "everybody" | "admin"
  /** The arguments as help shows it. */
  readonly usage: string
  readonly help: string
  /** A missing argument is asked for with a numbered list of these. */
  readonly choose?: ChoiceKind
  /** Works in a chat where no agent is. */
  readonly alone?: true
  /** Shows what the agent knows or heard. In a group the answer goes to the sender's private chat alone. */
  readonly in_private?: true
  /** Decides by the rights of the sender's own DM, which an admin has in every group. */
  readonly by_own_rights?: true
  /** The verb of `choirctl session` that gives a running session the same order, with its help. */
  readonly steers?: { readonly verb: string; readonly help: string }
}

const table = {
  status: { who: "everybody", usage: "", help: "Show what the agent is doing" },
  stop: {
    who: "everybody",
    usage: " [agent]",
    help: "Stop what the agent is doing for you now; with its name, stop the agent",
    steers: { verb: "stop", help: "Stop the running turn; the session, its jobs and queued messages continue" }
  },
  new: {
    who: "everybody",
    usage: " [yes]",
    help: "Begin a new conversation; what the agent remembers stays. With yes, end the jobs that run",
    steers: { verb: "new", help: "End an agent's conversation with a summary, and begin a new one" }
  },
  remind: { who: "everybody", usage: " <when> <text>", help: "Set a reminder: /remind tomorrow 9:00 call Bob" },
  next: { who: "everybody", usage: "", help: "List the reminders that are to come" },
  skip: { topic: "work", who: "everybody", usage: " <number>", help: "Leave out the next time of a reminder" },
  restart: { topic: "work", who: "everybody", usage: " [agent]", help: "Restart the agent" },
  cores: { topic: "work", who: "everybody", usage: "", help: "List the running jobs" },
  cancel: {
    topic: "work",
    who: "everybody",
    usage: " [job]",
    help: "Cancel a job; without a name, the only one, or with no job running the same as /stop",
    choose: "job",
    steers: { verb: "cancel", help: "Cancel a core job; if only one is running, its name can be omitted" }
  },
  "cancel plan": { topic: "work", who: "everybody", usage: " <number>", help: "Remove a reminder" },
  compact: {
    topic: "work",
    who: "everybody",
    usage: "",
    help: "Summarise the older part of the conversation",
    steers: { verb: "compact", help: "Summarise the older part of a lane's working memory" }
  },
  events: {
    topic: "work",
    who: "everybody",
    usage: " [count]",
    help: "List the latest events of the session",
    in_private: true
  },
  context: {
    topic: "work",
    who: "everybody",
    usage: "",
    help: "Show what fills the model's context, and how much room is left",
    in_private: true
  },
  trust: {
    topic: "work",
    who: "admin",
    usage: " [number]",
    help: "Show which text from outside this conversation has read; with its number, take it for trusted",
    in_private: true
  },
  model: { who: "everybody", usage: "", help: "Show which model is in use" },
  "model llm": {
    who: "everybody",
    usage: " <name> [default]",
    help: "Switch to another model until the next restart; an admin may make it the default",
    choose: "model"
  },
  rich: {
    topic: "chat",
    who: "everybody",
    usage: " <on or off>",
    help: "Send tables and long answers as rich messages, which only recent apps display"
  },
  reactions: {
    topic: "chat",
    who: "everybody",
    usage: " <on or off>",
    help: "React with 👀 to each message that has arrived, until it is answered"
  },
  voice: {
    topic: "chat",
    who: "everybody",
    usage: " [on, off, mirror or a profile]",
    help: "Get all answers as voice notes, none, or only those to voice messages; or switch to another voice"
  },
  inject: {
    topic: "work",
    who: "everybody",
    usage: " <message>",
    help: "Tell the agent something in the middle of its work",
    steers: {
      verb: "inject",
      help: "Give edge an instruction at its next safe point, without waiting for its turn to end"
    }
  },
  answer: {
    topic: "work",
    who: "everybody",
    usage: " [job] <answer>",
    help: "Answer a job's question; without a name, that of the only job that asks",
    steers: { verb: "answer", help: "Answer a job's question; if only one job asks, its name can be omitted" }
  },
  approvals: { who: "everybody", usage: "", help: "List what waits for approval" },
  approve: {
    who: "everybody",
    usage: " [number]",
    help: "Approve what the agent asks for; without a number the only request",
    choose: "approval",
    by_own_rights: true
  },
  reject: {
    who: "everybody",
    usage: " [number] [reason]",
    help: "Reject what the agent asks for; without a number the only request",
    choose: "approval",
    by_own_rights: true
  },
  grants: { topic: "chat", who: "everybody", usage: "", help: "List what the agent may do without asking" },
  "grants revoke": {
    topic: "chat",
    who: "everybody",
    usage: " <number>",
    help: "Revoke one of these; the agent asks again"
  },
  memory: {
    who: "everybody",
    usage: " [words]",
    help: "Show what the agent knows, or search what it remembers",
    in_private: true
  },
  forget: {
    who: "everybody",
    usage: " <words>",
    help: "Remove a fact, or everything with these words; asks first",
    in_private: true
  },
  start: {
    topic: "agents",
    who: "admin",
    usage: " <agent> [key=value …]",
    help: "Start an agent in this chat; the keys are those of choirctl agent start, such as llm=large",
    alone: true
  },
  update: {
    topic: "agents",
    who: "admin",
    usage: " [agent]",
    help: "Build an agent's image, and restart the agent if it runs",
    choose: "agent",
    alone: true
  },
  update_all: { topic: "agents", who: "admin", usage: "", help: "Update all agents, one after the other", alone: true },
  "agent list": { topic: "agents", who: "admin", usage: "", help: "List all agents and their status", alone: true },
  "agent build": {
    topic: "agents",
    who: "admin",
    usage: " <agent>",
    help: "Build an agent's image",
    choose: "agent",
    alone: true
  },
  "config load": {
    topic: "agents",
    who: "admin",
    usage: "",
    help: "Read config.json and secrets.json, and show the changes",
    alone: true
  },
  "config diff": {
    topic: "agents",
    who: "admin",
    usage: "",
    help: "Show the changes that are loaded but not applied",
    alone: true
  },
  "config apply": { topic: "agents", who: "admin", usage: "", help: "Apply the loaded changes", alone: true },
  "workspace list": {
    topic: "agents",
    who: "admin",
    usage: "",
    help: "List the workspaces and who works in them",
    alone: true
  },
  "workspace reset": {
    topic: "agents",
    who: "admin",
    usage: " <name>",
    help: "Delete everything in a workspace; asks first",
    choose: "workspace",
    alone: true
  },
  "secret list": { topic: "agents", who: "admin", usage: "", help: "List the names of the secrets", alone: true },
  help: { who: "everybody", usage: " [topic]", help: "List the commands that you can use here", alone: true }
} as const satisfies Readonly<Record<string, ChatCommand>>

/** A command as it is typed after the slash: a word, or two. */
export type CommandWords = keyof typeof table

export const CHAT_COMMANDS: Readonly<Record<CommandWords, ChatCommand>> = table

/** The rows of the table in its order, which is the order of help. */
export const chatCommands: ReadonlyArray<ChatCommand & { readonly words: CommandWords }> = Object.entries(table).map(
  ([words, command]) => ({ words: words as CommandWords, ...(command as ChatCommand) })
)

/** Whether a person may give a command at all. */
export const mayGive = (words: CommandWords, admin: boolean): boolean =>
  admin || CHAT_COMMANDS[words].who === "everybody"

type Steering = {
  readonly [W in CommandWords]: (typeof table)[W] extends { readonly steers: object } ? W : never
}[CommandWords]

/** The verb and the help that choirctl has for a command which steers a session. */
export const steeringWords = (words: Steering) => table[words].steers
