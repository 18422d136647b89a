/** Lets the user that a container runs as into the folders which it mounts, and nobody else. */
import { Effect, type Scope } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { containerUser } from "./containerUser.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/docker/dockerInfo.ts"
import { makeUids } from "./AgentUids.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import { giveSocket, giveWorkspace, letIntoSocket, letIntoWorkspace } from "./Ownership.ts"

const choirdUser = () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

export interface HandOver {
  /** `uid:gid` as whom the agent runs inside, where it is not root of its namespace. */
  readonly user: string | undefined
  /** Gives that user a workspace; before the container starts, and not before it is made: never beside an agent that works there. */
  giveWorkspace(workspace: string): Effect.Effect<void, ContainerError>
  /** Gives that user the socket in this folder, and only that. */
  giveSocket(folder: string): Effect.Effect<void, ContainerError>
}

const ownFolders = (user?: string): HandOver => ({
  user,
  giveWorkspace: () => Effect.void,
  giveSocket: () => Effect.void
})
const given = (uid: number, user?: string): HandOver => ({
  user,
  giveWorkspace: (workspace) => giveWorkspace(uid, workspace),
  giveSocket: (folder) => giveSocket(uid, folder)
})
const listed = (uid: number): HandOver => ({
  user: undefined,
  giveWorkspace: (workspace) => letIntoWorkspace(uid, workspace),
  giveSocket: (folder) => letIntoSocket(uid, folder)
})

/** Decides as whom an agent runs inside. */
export const makeHandOver = (config: RuntimeConfig) => {
  const uids = makeUids()
  return Effect.fnUntraced(function* (
    facts: EngineFacts,
    agent_id: AgentId
  ): Effect.fn.Return<HandOver, ContainerError, Scope.Scope> {
    const user = containerUser(facts.root, choirdUser(), config.allow_unmapped_root)
    switch (user.type) {
      case "refused":
        return yield* new ContainerError({ reason: "refused", problem: "", fix: "", ...unmappedRoot(facts) })
      case "own":
        return ownFolders()
      case "given":
        return given(user.uid)
      case "listed":
        return listed(user.uid)
      case "unmapped": {
        if (user.user !== undefined) return ownFolders(`${user.user.uid}:${user.user.gid}`)
        const uid = yield* uids(agent_id)
        return given(uid, `${uid}:${uid}`)
      }
    }
  })
}
