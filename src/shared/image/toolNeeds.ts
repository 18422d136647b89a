/**
 * The needs of built-in tools: the one table from which an agent knows which tools it lacks and why, choird which secrets an agent and a
 * trial are given, and people what to change in config.json. Pure.
 */
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { AgentId, SecretName } from "#schema/Ids.ts"
import type { NamedBinding } from "#schema/Resources.ts"

/** The agent that a reason is about and its setting of the web, in the words of the reason. */
interface Subject {
  readonly agent: string
  readonly web: string
}

/** Something of an agent's share of the configuration that a tool uses. */
export interface ToolNeed {
  /** Whether the tool is of no use without it; commands work without an identity of git. */
  readonly required: boolean
  /** The binding that gives it to an agent; absent where no binding does. */
  readonly binding?: NamedBinding
  /** The secret that a call uses. */
  readonly secret: (share: AgentConfig) => SecretName | undefined
  /** Why the agent lacks it, as the end of a sentence; `undefined` where it has it. */
  readonly lack: (share: AgentConfig, who: Subject) => string | undefined
  /** The change of config.json that gives it to this agent. */
  readonly fix: (agent_id: AgentId) => string
}

const named = (binding: NamedBinding) => (agent_id: AgentId) => `name one in agents.${agent_id}.defaults.${binding}`
const noSecret = () => undefined

const GIT: ToolNeed = {
  required: false,
  binding: "git_identity",
  secret: ({ git_identity }) => git_identity?.secret,
  lack: ({ git_identity }, { agent }) => (git_identity === undefined ? `${agent} has no git identity` : undefined),
  fix: named("git_identity")
}
const SEARCH: ToolNeed = {
  required: true,
  binding: "search",
  secret: ({ search }) => search?.secret,
  lack: ({ search }, { agent }) => (search === undefined ? `${agent} has no search engine` : undefined),
  fix: () => "add one to search in config.json"
}
const NOTION: ToolNeed = {
  required: true,
  binding: "notion",
  secret: ({ notion }) => notion?.secret,
  lack: ({ notion }, { agent }) => (notion === undefined ? `${agent} is bound to no Notion integration` : undefined),
  fix: named("notion")
}
const EMAIL: ToolNeed = {
  required: true,
  binding: "email",
  secret: ({ email }) => email?.secret,
  lack: ({ email }, { agent }) => (email === undefined ? `${agent} is bound to no e-mail account` : undefined),
  fix: named("email")
}
const VOICE: ToolNeed = {
  required: true,
  binding: "voice_profile",
  secret: ({ voice }) => voice?.tts.secret,
  lack: ({ voice }, { agent }) => (voice === undefined ? `${agent} is bound to no voice profile` : undefined),
  fix: named("voice_profile")
}
const FETCH: ToolNeed = {
  required: true,
  secret: noSecret,
  lack: ({ web = "off" }, who) => (web === "off" ? `${who.web} is off` : undefined),
  fix: (agent_id) => `set agents.${agent_id}.web to "fetch" or "browse"`
}
const BROWSE: ToolNeed = {
  required: true,
  secret: noSecret,
  lack: ({ web = "off" }, who) => (web === "browse" ? undefined : `${who.web} is ${web}, without a browser`),
  fix: (agent_id) => `set agents.${agent_id}.web to "browse"`
}

/** By the tool's name. A tool without a row needs nothing. */
export const TOOL_NEEDS: ReadonlyMap<string, ToolNeed> = new Map([
  ["choir.exec", GIT],
  ["choir.web.search", SEARCH],
  ["choir.web.fetch", FETCH],
  ["choir.web.browse", BROWSE],
  ["choir.notion.query", NOTION],
  ["choir.email.send", EMAIL],
  ["choir.email.receive", EMAIL],
  ["choir.email.check", EMAIL],
  ["choir.tts.speak", VOICE]
])

/** As an agent speaks of itself. */
const ITSELF: Subject = { agent: "it", web: "its web" }

/** The reason why an agent is not offered a tool; `undefined` where it is, as far as the configuration says. */
export const lackOf = (name: string, share: AgentConfig, who: Subject = ITSELF): string | undefined => {
  const need = TOOL_NEEDS.get(name)
  return need?.required === true ? need.lack(share, who) : undefined
}

/** The tools that an agent lacks because of its configuration, with the reasons. */
export const lackingTools = (share: AgentConfig): ReadonlyMap<string, string> =>
  new Map(
    [...TOOL_NEEDS.keys()].flatMap((name) => {
      const reason = lackOf(name, share)
      return reason === undefined ? [] : [[name, reason] as const]
    })
  )

/** The secrets that a call of this tool uses; none for a tool without a row. */
export const secretsOfTool = (name: string, share: AgentConfig): ReadonlyArray<SecretName> => {
  const secret = TOOL_NEEDS.get(name)?.secret(share)
  return secret === undefined ? [] : [secret]
}

/** The secrets of all that an agent is bound to, its models apart. */
export const secretsOfTools = (share: AgentConfig): ReadonlyArray<SecretName> => [
  ...new Set([...TOOL_NEEDS.keys()].flatMap((name) => secretsOfTool(name, share)))
]
