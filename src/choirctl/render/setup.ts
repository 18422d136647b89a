/** What init commands did, for people. */
import type { AgentInitialized } from "#src/choirctl/initAgent.ts"
import type { BaseInitialized } from "#src/choirctl/initBase.ts"
import type { Initialized } from "#src/choirctl/initHome.ts"
import type { Joined } from "#src/choirctl/joinChoird.ts"

type NewAgent = Pick<AgentInitialized, "agent_id" | "dm" | "llm" | "repo" | "workspace"> &
  Pick<Joined, "applied" | "next">

export const initAgentText = ({ agent_id, applied, dm, llm, next, repo, workspace }: NewAgent): string =>
  [
    `added ${agent_id} to config.json: workspace ${workspace}, model ${llm}${dm === null ? "" : `, DM ${dm}`}`,
    ...(applied === true ? [`choird knows ${agent_id} and changed nothing else`] : []),
    `its tools, skills and identity are in ${repo}; commit what you change there`,
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")

export const initBaseText = ({ created, next, repo }: BaseInitialized): string =>
  [
    created ? `made ${repo} with the starter files; commit what you change there` : `${repo} is there already`,
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")

export const initText = ({ created, home, kept, next }: Initialized): string =>
  [
    ...(created.length === 0 ? [`${home} was complete already`] : created.map((path) => `created ${path}`)),
    ...(created.length === 0 || kept.length === 0 ? [] : [`kept what was there: ${kept.length} files and folders`]),
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")
