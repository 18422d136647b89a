/** What init commands did, for people. */
import type { AgentInitialized } from "#src/choirctl/initAgent.ts"
import type { BaseInitialized } from "#src/choirctl/initBase.ts"
import type { Initialized } from "#src/choirctl/initHome.ts"

export const initAgentText = ({ agent_id, dm, llm, repo, workspace }: AgentInitialized): string =>
  [
    `added ${agent_id} to config.json: workspace ${workspace}, model ${llm}, ${typeof dm === "string" ? `DM ${dm}` : `DMs ${dm.join(", ")}`}`,
    `its tools, skills and identity are in ${repo}; commit what you change there`,
    "",
    "Next:",
    `  choirctl agent build ${agent_id}`,
    `  choirctl agent start ${agent_id}`
  ].join("\n")

export const initBaseText = ({ created, next, repo }: BaseInitialized): string =>
  [
    created ? `made ${repo} with the starter files; commit what you change there` : `${repo} is there already`,
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")

export const initText = ({ created, home, next }: Initialized): string =>
  [
    created.length === 0 ? `${home} is complete already` : `${home} is ready`,
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")
