/** The changes that a staged configuration makes: to the running one, to those that agents started with, to secrets and images. */
import { Effect, Option } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { Images } from "#src/choird/images/Images.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { LoadedHome } from "./loadHome.ts"
import { configChanges } from "./reloadClasses.ts"
import { repoChanges } from "./repoChanges.ts"
import { isUp, usesOf } from "./resourcesInUse.ts"
import { changedSecrets, secretRows } from "./secretChanges.ts"

/** The configuration to run. After a rollback there are no repositories and secrets to compare with. */
export type Staged = Pick<LoadedHome, "config"> & Partial<Pick<LoadedHome, "repos" | "secrets">>

/** Everything that `staged` changes; without it, what the agents' starts left behind. */
export const makeStagedChanges = Effect.gen(function* () {
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  const store = yield* ConfigStore

  const imagesOf = Effect.fnUntraced(function* (agent_id: AgentId, view: AgentView | undefined) {
    const newest = Option.getOrUndefined(yield* images.origin(agent_id))
    if (view === undefined || !isUp(view) || view.image_version === null)
      return { agent_id, running: false, mounted: undefined, newest }
    const mounted = Option.getOrUndefined(yield* images.origin(agent_id, view.image_version))
    return { agent_id, running: true, mounted, newest }
  })

  return Effect.fnUntraced(function* (staged: Staged | undefined) {
    const { config: running } = yield* store.current
    const views = yield* lifecycle.list
    const changes = configChanges(running, staged?.config ?? running, usesOf(running, views))
    if (staged === undefined) return changes
    const { repos, secrets } = staged
    const ofSecrets = secrets === undefined ? [] : secretRows(running, changedSecrets(yield* store.secrets, secrets))
    // The images of every agent that is to be there.
    const agents = repos === undefined ? [] : Object.keys(staged.config.agents).map((id) => AgentId.make(id))
    const ofImages = yield* Effect.forEach(agents, (agent_id) =>
      imagesOf(
        agent_id,
        views.find((view) => view.agent_id === agent_id)
      )
    )
    return [...changes, ...ofSecrets, ...(repos === undefined ? [] : repoChanges(repos, ofImages))]
  })
})
