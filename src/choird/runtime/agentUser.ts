/** The user of an agent in its container, and access for that user to the folders that the container mounts, and for nobody else. */
import { Effect } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { AGENT_UID_FIRST, sharedUid } from "#src/shared/docker/agentUids.ts"
import { type EngineFacts, unmappedRoot } from "#src/shared/docker/dockerInfo.ts"
import { letIntoSocket, letIntoWorkspace } from "./accessLists.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import { giveSocket, giveWorkspace, SANDBOX_UID_FIRST, shutToOthers, type UidRange } from "./Ownership.ts"

/** A user, on either side of a namespace. */
export interface UserIds {
  readonly uid: number
  readonly gid: number
}

/** How the users of an engine's containers stand to the host's. */
interface Mapping {
  /** The host's ids of 0 inside. */
  readonly zero: UserIds
  /** The ids that the engine maps; undefined where it maps none, or none but choird's. */
  readonly mapped: UidRange | undefined
  /**
   * `own`: the agents are choird's own user, who needs nothing. `given`: choird is root and gives them what they need. `listed`: it is not,
   * and access lists let them in.
   */
  readonly by: "own" | "given" | "listed"
}

const choirdUser = (): UserIds => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 })

const ROOT: UserIds = { uid: 0, gid: 0 }

const mappingOf = ({ root }: EngineFacts, choird: UserIds): Mapping => {
  switch (root.type) {
    case "rootless":
      return { zero: choird, mapped: undefined, by: "own" }
    case "none":
      return { zero: ROOT, mapped: undefined, by: choird.uid === 0 ? "given" : "own" }
    case "remapped": {
      const { gid, ids, uid } = root
      if (uid === choird.uid) return { zero: root, mapped: undefined, by: "own" }
      // An engine of which the host does not know how many ids it maps has root, at least.
      const mapped = { first: uid, count: Math.max(ids, 1) }
      return { zero: { uid, gid }, mapped, by: choird.uid === 0 ? "given" : "listed" }
    }
  }
}

/** The user of an agent inside: one of its own where there is room for one, else the one whom all of them share. */
const insideOf = (facts: EngineFacts, choird: UserIds, agent_number: number): UserIds => {
  const isShared = sharedUid(facts, choird.uid) !== undefined
  // Without a namespace it is never root.
  if (facts.root.type === "none" && isShared) return choird
  if (isShared) return ROOT
  const uid = (facts.root.type === "none" ? SANDBOX_UID_FIRST : AGENT_UID_FIRST) + agent_number
  return { uid, gid: uid }
}

/** Gives a user of containers the socket in this folder, and only that. */
const openSocket = ({ by, zero }: Mapping, inside: UserIds, folder: string): Effect.Effect<void, ContainerError> => {
  const [uid, gid] = [zero.uid + inside.uid, zero.gid + inside.gid]
  switch (by) {
    case "own":
      return Effect.void
    case "given":
      return giveSocket({ uid, gid }, folder)
    case "listed":
      return letIntoSocket(uid, folder)
  }
}

/** Gives what other uids of a namespace own in a workspace to a user of it, by a container; for a choird that is not root. */
export type HandOver = (workspace: string, user: UserIds) => Effect.Effect<void, ContainerError>

const openWorkspace = (
  { by, mapped, zero }: Mapping,
  inside: UserIds,
  workspace: string,
  handOver: HandOver
): Effect.Effect<void, ContainerError> => {
  const [uid, gid] = [zero.uid + inside.uid, zero.gid + inside.gid]
  if (by === "own") return Effect.void
  if (by === "given")
    return Effect.andThen(
      giveWorkspace({ uid, gid, ...(mapped === undefined ? {} : { mapped }) }, workspace),
      shutToOthers(workspace)
    )
  const range = mapped ?? { first: zero.uid, count: 1 }
  return letIntoWorkspace({ uid, root: zero.uid, mapped: range }, workspace, handOver(workspace, inside))
}

/** The user of one agent in its container. */
export interface AgentUser {
  readonly user: UserIds
  /** Gives that user a workspace; before the container starts, and not before it is made: never beside an agent that works there. */
  readonly giveWorkspace: (workspace: string) => Effect.Effect<void, ContainerError>
  readonly giveSocket: (folder: string) => Effect.Effect<void, ContainerError>
}

/** Decides as whom an agent runs inside, and gives that user its folders. */
export const agentUser = Effect.fnUntraced(function* (
  { allow_unmapped_root }: RuntimeConfig,
  facts: EngineFacts,
  agent_number: number,
  handOver: HandOver
): Effect.fn.Return<AgentUser, ContainerError> {
  const unmapped = allow_unmapped_root ? undefined : unmappedRoot(facts)
  if (unmapped !== undefined) return yield* new ContainerError({ reason: "refused", ...unmapped })
  const choird = choirdUser()
  const mapping = mappingOf(facts, choird)
  const user = insideOf(facts, choird, agent_number)
  return {
    user,
    giveWorkspace: (workspace) => openWorkspace(mapping, user, workspace, handOver),
    giveSocket: (folder) => openSocket(mapping, user, folder)
  }
})

/** Gives the socket in this folder to the user of a container that runs, which an earlier choird may have started as another one. */
export const giveSocketTo = (facts: EngineFacts, inside: UserIds, folder: string) =>
  openSocket(mappingOf(facts, choirdUser()), inside, folder)
