/** The results of the init commands, for people. */
import { join } from "node:path"
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

/** One line: a person who sets up a home wants to know where it is and what comes next, not each path in it. */
const homeLine = ({ created, home }: Initialized): string => {
  if (created.length === 0) return `${home} was complete already`
  return created.includes(join(home, "config.json"))
    ? `set up ${home}`
    : `added what was missing: ${created.join(", ")}`
}

export const initText = (done: Initialized): string =>
  [homeLine(done), "", "Next:", ...done.next.map((command) => `  ${command}`)].join("\n")
