/** Whether an agent has a tool that a trial can call, or why not and what would give it to it. Pure. */
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { CHROMIUM_FIX } from "#src/shared/web/chromium.ts"
import { TrialRefused } from "./TrialRefused.ts"

/** Tools whose effect is on a session. */
const OF_SESSIONS = /^choir\.(?:core|skill|memory|propose)\./u

const applied = (change: string) => `${change}, then: choirctl config apply`

type Agent = Config["agents"][AgentId]

/** Why an agent is not offered a built-in tool, with the fix. */
export const unbound = (
  name: string,
  agent_id: AgentId,
  agent: Agent | undefined,
  { email, notion, search, voice, web }: AgentConfig
): readonly [reason: string, hint: string] | undefined => {
  const of = `agents.${agent_id}`
  if (name === "choir.web.search" && search === undefined)
    return ["config.json has no search engine", applied("add one to search in config.json")]
  if (name === "choir.notion.query" && notion === undefined)
    return [`${agent_id} is bound to no Notion integration`, applied(`name one in ${of}.defaults.notion`)]
  if (name.startsWith("choir.email.") && email === undefined)
    return [`${agent_id} is bound to no e-mail account`, applied(`name one in ${of}.defaults.email`)]
  if (name === "choir.tts.speak" && voice === undefined)
    return [`${agent_id} is bound to no voice profile`, applied(`name one in ${of}.defaults.voice_profile`)]
  if (name === "choir.web.fetch" && (web ?? "off") === "off")
    return [`${of}.web is off`, applied(`set ${of}.web to "fetch" or "browse"`)]
  if (name !== "choir.web.browse" || web === "browse") return undefined
  return agent?.web === "browse"
    ? ["this host has no Chromium", CHROMIUM_FIX]
    : [`${of}.web is ${agent?.web ?? "off"}`, applied(`set ${of}.web to "browse"`)]
}

/** @param imaged the names of the tools in the agent's image. */
export const toolRefusal = (
  name: string,
  imaged: ReadonlyArray<string>,
  agent_id: AgentId,
  agent: Agent | undefined,
  share: AgentConfig
): TrialRefused | undefined => {
  const list = `choirctl tool list ${agent_id}`
  if (OF_SESSIONS.test(name) && BUILT_IN_TOOLS.includes(name))
    return new TrialRefused({
      kind: "NOT_OFFERED",
      reason: `${name} needs a session; trials have none`,
      hint: `use it in a chat: choirctl chat ${agent_id}`
    })
  if (imaged.includes(name)) return undefined
  if (BUILT_IN_TOOLS.includes(name)) {
    const missing = unbound(name, agent_id, agent, share)
    return missing === undefined
      ? undefined
      : new TrialRefused({
          kind: "NOT_OFFERED",
          reason: `${agent_id} is not offered ${name}: ${missing[0]}`,
          hint: missing[1]
        })
  }
  const names = [...BUILT_IN_TOOLS, ...imaged]
  const last = name.split(".").at(-1)
  const near = new Set([nearestWord(name, names), ...names.filter((known) => known.split(".").at(-1) === last)])
  const meant = [...near].filter((known) => known !== undefined)
  return new TrialRefused({
    kind: "UNKNOWN_TOOL",
    reason: `${agent_id} has no tool ${name}${meant.length === 0 ? "" : `; did you mean ${meant.join(" or ")}?`}`,
    hint: list
  })
}

/** The secrets' names that a call of a built-in tool is given. */
export const builtInSecrets = (name: string, { email, notion, search }: AgentConfig) => {
  if (name === "choir.web.search") return search === undefined ? [] : [search.secret]
  if (name === "choir.notion.query") return notion === undefined ? [] : [notion.secret]
  return name.startsWith("choir.email.") && email !== undefined ? [email.secret] : []
}
