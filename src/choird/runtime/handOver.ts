/** Lets the user that a container runs as into the folders which it mounts, and nobody else. */
import { Effect, type Scope } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { containerUser } from "#src/choird/docker/containerUser.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/dockerInfo.ts"
import { makeUids } from "./AgentUids.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import { giveSocket, giveWorkspace, letIn } from "./Ownership.ts"

const choirdUser = () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

export interface HandOver {
  /** `uid:gid` as whom the agent runs inside, where it is not root of its namespace. */
  readonly user: string | undefined
  /** Gives that user the folders; before the container starts, and not before it is made. */
  readonly give: Effect.Effect<void, ContainerError>
}

/** Decides as whom an agent runs inside. */
export const makeHandOver = (config: RuntimeConfig) => {
  const uids = makeUids()
  return Effect.fnUntraced(function* (
    facts: EngineFacts,
    agent_id: AgentId,
    { socket_dir, workspace }: { readonly socket_dir: string; readonly workspace: string }
  ): Effect.fn.Return<HandOver, ContainerError, Scope.Scope> {
    const given = (uid: number) => Effect.andThen(giveWorkspace(uid, workspace), giveSocket(uid, socket_dir))
    const user = containerUser(facts.root, choirdUser(), config.allow_unmapped_root)
    switch (user.type) {
      case "refused":
        return yield* new ContainerError({ reason: "refused", problem: "", fix: "", ...unmappedRoot(facts) })
      case "own":
        return { user: undefined, give: Effect.void }
      case "given":
        return { user: undefined, give: given(user.uid) }
      case "listed":
        return { user: undefined, give: letIn(user.uid, socket_dir, workspace) }
      case "unmapped": {
        if (user.user !== undefined) return { user: `${user.user.uid}:${user.user.gid}`, give: Effect.void }
        const uid = yield* uids(agent_id)
        return { user: `${uid}:${uid}`, give: given(uid) }
      }
    }
  })
}
