/** The host folders that an agent may be given, and their transfer to the agent's uid when choird is root (D11). */
import { chmodSync, lchownSync, realpathSync, statSync } from "node:fs"
import { Effect } from "effect"
import { ContainerError } from "./ContainerRuntime.ts"
import { RUNTIME_COMMAND_MS_MAX, HOST_PATH, run } from "./HostProcess.ts"
import { createHash } from "node:crypto"
import type { AgentId } from "#schema/Ids.ts"

/** Host uids that sandboxes run under when choird is root; a range that distributions and systemd leave unused. */
export const SANDBOX_UID_FIRST = 1_900_000_000
export const SANDBOX_UID_COUNT = 65_536

/** A running agent and its uid. */
interface UidLease {
  readonly agent_id: AgentId
  readonly uid: number
}

/** The uid of an agent: the same at each start, unless another running agent has it, then the next free one. */
export const uidOf = (agent_id: AgentId, running: ReadonlyArray<UidLease>): number => {
  const wanted = createHash("sha256").update(agent_id).digest().readUInt32BE(0)
  for (let step = 0; step < SANDBOX_UID_COUNT; step++) {
    const uid = SANDBOX_UID_FIRST + ((wanted + step) % SANDBOX_UID_COUNT)
    if (running.every((lease) => lease.uid !== uid || lease.agent_id === agent_id)) return uid
  }
  return SANDBOX_UID_FIRST + (wanted % SANDBOX_UID_COUNT)
}

/** Makes the function that leases a uid to an agent until the scope closes. */
export const makeUids = () => {
  const running = new Set<UidLease>()
  return (agent_id: AgentId) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const lease = { agent_id, uid: uidOf(agent_id, [...running]) }
        running.add(lease)
        return lease
      }),
      (lease) => Effect.sync(() => running.delete(lease))
    ).pipe(Effect.map(({ uid }) => uid))
}

/** Folders of a system that are not workspaces and hold none. */
const SYSTEM = ["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"]
/** Folders that may hold workspaces but are not workspaces. */
const SHARED = new Set([
  "/",
  "/home",
  "/media",
  "/mnt",
  "/opt",
  "/root",
  "/run",
  "/srv",
  "/tmp",
  "/var",
  "/var/lib",
  "/var/tmp"
])

/** The path without links; a missing one is the operator's to fix. */
export const realPath = (path: string) =>
  Effect.try({
    try: () => realpathSync(path),
    catch: () =>
      new ContainerError({
        reason: "failed",
        problem: `${path} does not exist`,
        fix: "Create it, or correct config.json"
      })
  })

/** Whether a real path is this folder or is in it. */
export const isInside = (folder: string, path: string) =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`)

/**
 * The reason why this real path cannot be a workspace, or `undefined`. An agent owns its workspace, so nothing that choird or the
 * system relies on may be in it.
 */
export const workspaceProblem = (path: string, relied: ReadonlyArray<string>): string | undefined => {
  if (SHARED.has(path) || SYSTEM.some((folder) => isInside(folder, path))) return "is a system folder"
  const held = relied.find((other) => isInside(path, other))
  if (held !== undefined) return `holds ${held}, which choird relies on`
  return undefined
}

/** Consecutive uids. */
export interface UidRange {
  readonly first: number
  readonly count: number
}

const SANDBOXES: UidRange = { first: SANDBOX_UID_FIRST, count: SANDBOX_UID_COUNT }

const isIn = ({ count, first }: UidRange, uid: number) => uid >= first && uid < first + count

/** Of find(1): owned by a uid of a range. */
const ownedBy = ({ count, first }: UidRange) => ["(", "-uid", `+${first - 1}`, "-uid", `-${first + count}`, ")"]

/** The user of an agent, as the host knows it. */
export interface WorkspaceOwner {
  readonly uid: number
  readonly gid: number
  /** Uids of agents beside those of sandboxes: what an engine maps. */
  readonly mapped?: UidRange
}

const failed = (problem: string, fix: string) => new ContainerError({ reason: "failed", problem, fix })

/**
 * Gives a workspace to a uid: the folder and everything in it that belongs to root or to another agent's uid, on the same file
 * system, links themselves and not their targets. A file with a second hard link is left as it is, since its other name may
 * be outside. A folder that is a person's is refused, not taken. Each change is made from within the folder that find(1) opened,
 * by the name in it alone: on a second walk of the path a folder may have become a link (R39).
 */
export const giveWorkspace = Effect.fn("Ownership.giveWorkspace")(function* (
  { gid, mapped, uid }: WorkspaceOwner,
  workspace: string
) {
  const stat = yield* Effect.try({
    try: () => statSync(workspace),
    catch: (cause) => failed(String(cause), "Create it")
  })
  const ranges = mapped === undefined ? [SANDBOXES] : [SANDBOXES, mapped]
  if (stat.uid !== 0 && stat.uid !== uid && !ranges.some((range) => isIn(range, stat.uid))) {
    return yield* new ContainerError({
      reason: "refused",
      problem: `the workspace ${workspace} belongs to uid ${stat.uid}, and choird runs each agent under a separate uid`,
      fix: `Run choird as that user, or give the folder to root: chown -R root ${workspace}`
    })
  }
  const owned = ["(", "-uid", "0", ...ranges.flatMap((range) => ["-o", ...ownedBy(range)]), ")"]
  const kinds = ["(", "-type", "d", "-o", "(", "-links", "1", "-type", "f,l,p,s", ")", ")"]
  const args = ["-P", workspace, "-xdev", ...owned, "!", "-uid", String(uid), ...kinds]
  const { code, text } = yield* run({
    program: "find",
    args: [...args, "-execdir", "chown", "-h", `${uid}:${gid}`, "{}", "+"],
    cwd: "/",
    env: { PATH: HOST_PATH }
  }).pipe(
    Effect.timeoutOrElse({
      duration: RUNTIME_COMMAND_MS_MAX,
      orElse: () =>
        failed(`giving ${workspace} to uid ${uid} took too long`, "Remove what the agent does not need from it")
    })
  )
  if (code !== 0) return yield* failed(`${workspace} cannot be given to uid ${uid}: ${text}`, "Look at its file system")
})

/** Keeps every user of the host but its owner and its group out of a workspace. Not beside an agent that runs. */
export const shutToOthers = (workspace: string) =>
  Effect.try({
    try: () => chmodSync(workspace, statSync(workspace).mode & 0o7770),
    catch: (cause) => failed(`the workspace cannot be shut to other users: ${String(cause)}`, "Look at its file system")
  })

/** Lets a uid connect to the socket in this folder, and nobody else: the modes stay 0700 and 0600. */
export const giveSocket = Effect.fn("Ownership.giveSocket")(function* (
  { gid, uid }: Pick<WorkspaceOwner, "gid" | "uid">,
  folder: string
) {
  yield* Effect.try({
    try: () => {
      for (const path of [folder, `${folder}/choird.sock`]) lchownSync(path, uid, gid)
    },
    catch: (cause) =>
      failed(`the agent's socket cannot be given to uid ${uid}: ${String(cause)}`, "Start the agent again")
  })
})

/** Fails unless an agent's own uid can read these files, which root wrote. */
export const requireReadable = Effect.fn("Ownership.requireReadable")(function* (paths: ReadonlyArray<string>) {
  for (const path of paths) {
    const stat = yield* Effect.try({
      try: () => statSync(path),
      catch: (cause) => failed(`${path} cannot be read: ${String(cause)}`, "Build the agent's image again")
    })
    const wanted = stat.isDirectory() ? 0o5 : 0o4
    if ((stat.mode & wanted) !== wanted) {
      return yield* failed(`${path} is not readable by the agent's uid`, `Run: chmod -R a+rX ${path}`)
    }
  }
})
