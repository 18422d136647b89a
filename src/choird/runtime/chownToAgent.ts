/** Access for the user of a container to the folders that it mounts, and for nobody else. */
import { Effect, type Scope } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import { type EngineFacts, type RootMapping, unmappedRoot } from "#src/shared/docker/dockerInfo.ts"
import { giveSocket, giveWorkspace, letIntoSocket, letIntoWorkspace, makeUids } from "./Ownership.ts"
import { ContainerError } from "./ContainerRuntime.ts"

/** choird's own user. */
interface HostUser {
  readonly uid: number
  readonly gid: number
}

type ContainerUser =
  /** Root of a user namespace, whom the host knows as choird's own user and who needs nothing. */
  | { readonly type: "own" }
  /** Root of a user namespace, whom the host knows as `uid`; choird is root and gives it what it needs. */
  | { readonly type: "given"; readonly uid: number; readonly gid: number }
  /** The same, and choird is not root: an access list lets `uid` in. */
  | { readonly type: "listed"; readonly uid: number }
  /** No user namespace: an ordinary user inside, never root. `undefined` means a uid of the agent's own, which root can give. */
  | { readonly type: "unmapped"; readonly user: HostUser | undefined }

/** `refused` when the engine maps root to nobody and the operator has not allowed that. */
const containerUser = (
  root: RootMapping,
  choird: HostUser,
  allow_unmapped_root: boolean
): ContainerUser | { readonly type: "refused" } => {
  switch (root.type) {
    case "rootless":
      return { type: "own" }
    case "remapped":
      if (root.uid === choird.uid) return { type: "own" }
      return choird.uid === 0 ? { type: "given", uid: root.uid, gid: root.gid } : { type: "listed", uid: root.uid }
    case "none":
      if (!allow_unmapped_root) return { type: "refused" }
      return { type: "unmapped", user: choird.uid === 0 ? undefined : choird }
  }
}

const choirdUser = () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

/** The user of one agent in its container. */
export interface AgentUser {
  /** `uid:gid` as whom the agent runs inside, where it is not root of its namespace. */
  readonly user: string | undefined
  /** Gives that user a workspace; before the container starts, and not before it is made: never beside an agent that works there. */
  giveWorkspace(workspace: string): Effect.Effect<void, ContainerError>
  /** Gives that user the socket in this folder, and only that. */
  giveSocket(folder: string): Effect.Effect<void, ContainerError>
}

const ownFolders = (user?: string): AgentUser => ({
  user,
  giveWorkspace: () => Effect.void,
  giveSocket: () => Effect.void
})
const given = (uid: number, user?: string): AgentUser => ({
  user,
  giveWorkspace: (workspace) => giveWorkspace(uid, workspace),
  giveSocket: (folder) => giveSocket(uid, folder)
})
const listed = (uid: number): AgentUser => ({
  user: undefined,
  giveWorkspace: (workspace) => letIntoWorkspace(uid, workspace),
  giveSocket: (folder) => letIntoSocket(uid, folder)
})

/** Makes the function that decides as whom an agent runs inside, and gives that user its folders. */
export const makeChownToAgent = (config: RuntimeConfig) => {
  const uids = makeUids()
  return Effect.fnUntraced(function* (
    facts: EngineFacts,
    agent_id: AgentId
  ): Effect.fn.Return<AgentUser, ContainerError, Scope.Scope> {
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
