/** The route of a message from outside, from the configuration and the agents' views alone (R46). */
import type { Config } from "#schema/Config.ts"
import { Option, Schema } from "effect"
import { AgentId, JobName, ResourceName } from "#schema/Ids.ts"
import { boundDms, dmList } from "#schema/ResourceBindings.ts"
import type { AgentView } from "#src/choird/agents/Lifecycle.ts"
import { askedJob } from "#src/shared/session/jobText.ts"
import { isTooLong } from "#src/shared/text/chatText.ts"
import { type Command, readCommand } from "./readCommand.ts"

const jobName = Schema.decodeUnknownOption(JobName)

/** A message of a person, as far as it could be read. */
export interface Arrival {
  /** Its id, unique within the gateway. */
  readonly id: string
  readonly user_id: string
  /** Absent if it is not text. */
  readonly text: string | undefined
  /** True if somebody else wrote it: it was forwarded, or another bot made it. */
  readonly forwarded?: boolean
  /** The message of the bot's own that it replies to. */
  readonly replies_to?: string
}

/** The line before a text that is not the person's own. */
const FORWARDED = "[Forwarded by the user; these are somebody else's words:]"

interface Place {
  readonly dm: ResourceName
  /** The agent at the DM, or the one that would be. */
  readonly agent_id: AgentId
}

export type Route =
  /** From a sender without a configured DM: no reply, so that a bot reveals nothing to strangers. */
  | { readonly type: "stranger" }
  | ({ readonly type: "refuse"; readonly kind: "NO_AGENT" | "NO_TEXT" | "TOO_LARGE"; readonly text: string } & Place)
  | ({ readonly type: "say"; readonly text: string } & Place)
  | ({ readonly type: "command"; readonly command: Command } & Place)
  | ({ readonly type: "message"; readonly text: string; readonly forwarded?: boolean } & Place)

/** The speaker in a DM without an agent. */
const NOBODY = AgentId.make("choird")

/** Counts a paused agent, which will answer later by itself. */
const isThere = ({ status }: AgentView) => status === "starting" || status === "running" || status === "paused"

/** The agent that would answer at a DM: one whose defaults name it. */
const usualAgent = (config: Config, dm: ResourceName) =>
  Object.entries(config.agents).find(([, { defaults }]) => dmList(defaults.dm).includes(dm))?.[0]

const away = (config: Config, dm: ResourceName, last: AgentView | undefined) => {
  const usual = usualAgent(config, dm)
  const name = last?.agent_id ?? usual
  const who = name === undefined ? "No agent runs here." : `${name} does not run at the moment.`
  const help = name === undefined ? `choirctl agent start <agent> --dm ${dm}` : `choirctl agent start ${name}`
  return { agent_id: AgentId.make(name ?? NOBODY), text: `${who} Your message was not delivered. To start it: ${help}` }
}

export const route = (
  config: Config,
  views: ReadonlyArray<AgentView>,
  gateway: ResourceName,
  { forwarded = false, replies_to, text, user_id }: Omit<Arrival, "id">
): Route => {
  const found = Object.entries(config.dms).find(([, dm]) => dm.gateway === gateway && dm.user_id === user_id)
  if (found === undefined) return { type: "stranger" }
  const dm = ResourceName.make(found[0])
  const bound = views.find((view) => view.bindings !== null && boundDms(view.bindings).includes(dm))
  if (bound === undefined || !isThere(bound))
    return { type: "refuse", kind: "NO_AGENT", dm, ...away(config, dm, bound) }
  const place = { dm, agent_id: bound.agent_id }
  if (text === undefined) return { type: "refuse", kind: "NO_TEXT", ...place, text: "I can only read text messages." }
  if (isTooLong(text)) return { type: "refuse", kind: "TOO_LARGE", ...place, text: "That message is too long for me." }
  // A stranger's words are never commands, even if forwarded by a person whom the agent knows.
  if (forwarded) return { type: "message", ...place, text: `${FORWARDED}\n${text}`, forwarded }
  const read = readCommand(text)
  const asked = replies_to === undefined ? undefined : Option.getOrUndefined(jobName(askedJob(replies_to)))
  // A reply to a job's question is its answer, as long as the job asks.
  if (read === undefined && asked !== undefined)
    return { type: "command", ...place, command: { type: "answer", content: text, job_name: asked } }
  if (read === undefined) return { type: "message", ...place, text }
  return read.type === "say" ? { type: "say", ...place, text: read.text } : { ...read, ...place }
}
