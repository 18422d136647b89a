/** The changes of the agents' images by the staged commits. Pure. */
import type { AgentId } from "#schema/Ids.ts"
import type { CommitId } from "#schema/Image.ts"
import type { Origin, SourceState } from "#src/choird/images/ImageOrigin.ts"
import { differences } from "./resourcesInUse.ts"
import { type ClassifiedChange, forAgents } from "./reloadClasses.ts"

/** An agent with its images: the one that it runs with, and the one that its next start takes. */
export interface AgentImages {
  readonly agent_id: AgentId
  readonly running: boolean
  readonly mounted: Origin | undefined
  readonly newest: Origin | undefined
}

/** The repositories as they were loaded; one that could not be read at all is absent. */
export interface StagedRepos {
  readonly global: SourceState | undefined
  readonly agents: ReadonlyMap<AgentId, SourceState>
}

interface Row {
  readonly path: string
  readonly change: string
  readonly agents: Array<AgentId>
}

const short = (commit: CommitId) => commit.slice(0, 7)

/** The line of the commits, and one for each relevant file if the image still records its files. */
const scopeRows = (name: string, built: SourceState, staged: SourceState): ReadonlyArray<Omit<Row, "agents">> => {
  if (built.commit === staged.commit) return []
  const files =
    built.contents === undefined || staged.contents === undefined ? [] : differences(built.contents, staged.contents)
  return [
    { path: `${name} repo`, change: `${short(built.commit)} -> ${short(staged.commit)}` },
    ...files.map(({ change, path }) => ({ path: `${name}:${path.join("")}`, change }))
  ]
}

const isCurrent = (origin: Origin | undefined, global: SourceState | undefined, own: SourceState | undefined) =>
  origin !== undefined &&
  (global === undefined || origin.global.commit === global.commit) &&
  (own === undefined || origin.agent.commit === own.commit)

/** One row for each path, with the commands of all affected agents. An agent without an image has nothing to compare. */
export const repoChanges = (
  staged: StagedRepos,
  agents: ReadonlyArray<AgentImages>
): ReadonlyArray<ClassifiedChange> => {
  const rows = new Map<string, Row>()
  const built = new Set<AgentId>()
  const running = new Set<AgentId>()
  for (const { agent_id, mounted, newest, running: runs } of agents) {
    const own = staged.agents.get(agent_id)
    const image = runs ? mounted : newest
    if (image === undefined) continue
    if (runs) running.add(agent_id)
    if (isCurrent(newest, staged.global, own)) built.add(agent_id)
    const found = [
      ...(staged.global === undefined ? [] : scopeRows("global", image.global, staged.global)),
      ...(own === undefined ? [] : scopeRows(agent_id, image.agent, own))
    ]
    for (const { change, path } of found) {
      const key = `${path} ${change}`
      const row = rows.get(key) ?? { path, change, agents: [] }
      row.agents.push(agent_id)
      rows.set(key, row)
    }
  }
  const isIn = (set: ReadonlySet<string>, id: string) => set.has(id)
  const command = (id: string) =>
    [
      ...(isIn(built, id) ? [] : [`choirctl agent build ${id}`]),
      ...(isIn(running, id) ? [`choirctl agent restart ${id}`] : [])
    ].join(" && ")
  return [...rows.values()].map(({ agents, change, path }) => ({
    path,
    change,
    class: "restart-required",
    command: forAgents(agents, command),
    // Before its image is built, an agent would come up on the old one.
    restarts: agents.filter((id) => isIn(built, id) && isIn(running, id))
  }))
}
