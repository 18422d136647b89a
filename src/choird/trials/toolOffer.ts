/** Whether an agent has a tool that a trial can call, or why not and what would give it to it. Pure. */
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { lackOf, TOOL_NEEDS } from "#src/shared/image/toolNeeds.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { CHROMIUM_FIX } from "#src/shared/web/chromium.ts"
import { TrialRefused } from "./TrialRefused.ts"

/** Tools whose effect is on a session. */
const OF_SESSIONS = /^choir\.(?:core|skill|memory|plan|propose)\./u

type Agent = Config["agents"][AgentId]

/** Why an agent is not offered a built-in tool, with the fix. */
export const unbound = (
  name: string,
  agent_id: AgentId,
  agent: Agent | undefined,
  share: AgentConfig
): readonly [reason: string, hint: string] | undefined => {
  const lack = lackOf(name, share, { agent: agent_id, web: `agents.${agent_id}.web` })
  if (lack === undefined) return undefined
  // The share says "fetch" where the host has no browser.
  if (name === "choir.web.browse" && agent?.web === "browse") return ["this host has no Chromium", CHROMIUM_FIX]
  return [lack, `${TOOL_NEEDS.get(name)?.fix(agent_id) ?? ""}, then: choirctl config apply`]
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
