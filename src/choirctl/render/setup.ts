/** The results of the init commands, for people. */
import { join } from "node:path"
import type { AgentInitialized } from "#src/choirctl/home/initAgent.ts"
import type { Initialized } from "#src/choirctl/home/initHome.ts"
import type { BaseInitialized } from "#src/choirctl/home/repositories.ts"

/** `applied` is null where no choird runs. */
export interface Joined {
  readonly applied: boolean | null
  readonly next: ReadonlyArray<string>
  readonly note?: string
}

type NewAgent = Pick<
  AgentInitialized,
  "agent_id" | "brief_left_out" | "daily_brief" | "dm" | "llm" | "repo" | "workspace"
> &
  Pick<Joined, "applied" | "next">

export const initAgentText = ({
  agent_id,
  applied,
  brief_left_out,
  daily_brief,
  dm,
  llm,
  next,
  repo,
  workspace
}: NewAgent): string =>
  [
    `added ${agent_id} to config.json: workspace ${workspace}, model ${llm}, ${typeof dm === "string" ? `DM ${dm}` : `DMs ${dm.join(", ")}`}`,
    ...(applied === true ? [`choird knows ${agent_id} and changed nothing else`] : []),
    `its tools, skills and identity are in ${repo}; commit your changes there`,
    ...(daily_brief === null ? [] : [`its daily brief begins ${daily_brief}; skills/daily-brief.json there says so`]),
    ...(brief_left_out ? [`it has no daily brief from this command, since ${repo} was there before`] : []),
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")

export const initBaseText = ({ created, next, repo }: BaseInitialized): string =>
  [
    created ? `created ${repo} with the starter files; commit your changes there` : `${repo} already exists`,
    "",
    "Next:",
    ...next.map((command) => `  ${command}`)
  ].join("\n")

/** One line: a person who sets up a home wants to know where it is and what comes next, not each path in it. */
const homeLine = ({ created, home }: Initialized): string => {
  if (created.length === 0) return `${home} is already complete`
  return created.includes(join(home, "config.json"))
    ? `set up ${home}`
    : `added what was missing: ${created.join(", ")}`
}

export const initText = (done: Initialized): string =>
  [homeLine(done), "", "Next:", ...done.next.map((command) => `  ${command}`)].join("\n")
