/** Lets the user that a container runs as into the folders which it mounts, and nobody else. */
import { Effect } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { containerUser } from "#src/choird/docker/containerUser.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/dockerInfo.ts"
import { makeUids } from "./AgentUids.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import { giveSocket, giveWorkspace, letIn } from "./Ownership.ts"

const choirdUser = () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

/** Gives the container's user the folders, and says as whom the agent runs inside. */
export const makeHandOver = (config: RuntimeConfig) => {
  const uids = makeUids()
  return Effect.fnUntraced(function* (
    facts: EngineFacts,
    agent_id: AgentId,
    { socket_dir, workspace }: { readonly socket_dir: string; readonly workspace: string }
  ) {
    const user = containerUser(facts.root, choirdUser(), config.allow_unmapped_root)
    switch (user.type) {
      case "refused":
        return yield* new ContainerError({ reason: "refused", problem: "", fix: "", ...unmappedRoot(facts) })
      case "own":
        return undefined
      case "given":
        yield* giveWorkspace(user.uid, workspace)
        yield* giveSocket(user.uid, socket_dir)
        return undefined
      case "listed":
        yield* letIn(user.uid, socket_dir, workspace)
        return undefined
      case "unmapped": {
        if (user.user !== undefined) return `${user.user.uid}:${user.user.gid}`
        const uid = yield* uids(agent_id)
        yield* giveWorkspace(uid, workspace)
        yield* giveSocket(uid, socket_dir)
        return `${uid}:${uid}`
      }
    }
  })
}
