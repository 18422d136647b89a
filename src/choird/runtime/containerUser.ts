/** Who an agent is, inside its container and on the host, and how the host's folders become its own (D11, D41, R38). */
import type { RootMapping } from "#src/shared/docker/dockerInfo.ts"

/** choird's own user. */
export interface HostUser {
  readonly uid: number
  readonly gid: number
}

export type ContainerUser =
  /** Root of a user namespace, whom the host knows as choird's own user: nothing is to be done. */
  | { readonly type: "own" }
  /** Root of a user namespace, whom the host knows as `uid`; choird is root and gives it what it needs. */
  | { readonly type: "given"; readonly uid: number; readonly gid: number }
  /** The same, and choird is not root: an access list lets `uid` in. */
  | { readonly type: "listed"; readonly uid: number }
  /** No user namespace: an ordinary user inside, never root. `undefined` means a uid of the agent's own, which root can give. */
  | { readonly type: "unmapped"; readonly user: HostUser | undefined }

/** `refused` when the engine maps root to nobody and the operator has not allowed that. */
export const containerUser = (
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
