/** The end of everything that a container started, as far as the host knows it. */
import { Effect, Schedule } from "effect"
import { ContainerError } from "./ContainerRuntime.ts"
import type { HostContainerId } from "./ContainerRuntime.ts"
import { isInside } from "./Ownership.ts"
import { bootId, listProcesses, signalTo, statOf, workingFolderOf } from "./ProcessIdentity.ts"
import type { ProcessIdentity, ProcessStat, ProcUnreadable } from "./ProcessIdentity.ts"
import { type CgroupError, Cgroups, CONTAINER_GONE_MS_MAX, CONTAINER_GONE_POLL_MS } from "./Cgroups.ts"

/** Searches of a tree of processes, each for children that were forked during the one before. */
const PROCESS_SEARCHES_MAX = 20

/**
 * The processes of a container that has no pid namespace: its leader, what descends from anything `known`, and what is in the
 * leader's session or group. choird gave the leader a session of its own, and the kernel gives no pid away that still names a
 * session. So while the leader lives its session is the container's; once it is dead only `mayBeOurs` decides.
 */
export const treeOf = (
  processes: ReadonlyArray<ProcessStat>,
  leader: ProcessIdentity,
  known: ReadonlySet<number>,
  mayBeOurs: (pid: number) => boolean
): ReadonlyArray<ProcessStat> => {
  const alive = processes.some(({ pid, start }) => pid === leader.pid && start === leader.start)
  const recycled = !alive && processes.some(({ pid }) => pid === leader.pid)
  const tree = new Set(known)
  if (alive) tree.add(leader.pid)
  for (const stat of processes) {
    const near = stat.session === leader.pid || stat.group === leader.pid
    if (near && !recycled && (alive || mayBeOurs(stat.pid))) tree.add(stat.pid)
  }
  for (let size = 0; size !== tree.size;) {
    size = tree.size
    for (const stat of processes) if (tree.has(stat.parent)) tree.add(stat.pid)
  }
  return processes.filter(({ pid }) => tree.has(pid))
}

/** The advice where /proc cannot be read, as when choird has no descriptor left. */
export const OPEN_FILES_FIX = "Raise choird's limit of open files (ulimit -n, LimitNOFILE=), then start the agent again"

/** Stops the tree while it is searched, so that none of it forks its way out of the search. */
const freezeTree = Effect.fnUntraced(function* (id: HostContainerId) {
  const [leader] = id.processes
  const found = new Map<number, ProcessIdentity>()
  if (leader === undefined) return []
  for (let search = 0; search < PROCESS_SEARCHES_MAX; search++) {
    const processes = yield* listProcesses
    const folders = new Map<number, string | undefined>()
    for (const { pid, session, group } of processes) {
      if (session === leader.pid || group === leader.pid) folders.set(pid, yield* workingFolderOf(pid))
    }
    const living = processes.filter(({ pid, start }) => (found.get(pid)?.start ?? start) === start)
    const known = new Set(living.filter(({ pid }) => found.has(pid)).map(({ pid }) => pid))
    const tree = treeOf(living, leader, known, (pid) => isInside(id.workspace, folders.get(pid) ?? ""))
    const fresh = tree.filter(({ pid }) => !found.has(pid))
    if (fresh.length === 0) break
    for (const stat of fresh) {
      found.set(stat.pid, { pid: stat.pid, start: stat.start })
      yield* signalTo(stat, "SIGSTOP")
    }
  }
  return [...found.values()]
})

const membersOf = Effect.fnUntraced(function* (id: HostContainerId) {
  const cgroups = yield* Cgroups
  const stats = yield* Effect.forEach(yield* cgroups.members(id.cgroup), statOf)
  return stats.filter((stat) => stat !== undefined && stat.state !== "Z") as ReadonlyArray<ProcessIdentity>
})

/** The error for an end that is not confirmed. */
export const stuck = (pids: ReadonlyArray<number>, unread: CgroupError | ProcUnreadable | undefined) =>
  unread === undefined
    ? new ContainerError({
        reason: "stuck",
        problem: `processes ${pids.join(", ")} of an agent are still there after SIGKILL`,
        fix: "Look for a hung file system or device, then start the agent again"
      })
    : new ContainerError({
        reason: "stuck",
        problem: `it is unknown whether processes of an agent are gone: ${unread.message}`,
        fix: OPEN_FILES_FIX
      })

/**
 * Kills every process of a container and waits until it has seen that they are gone. In a sandbox the end of the namespace's first
 * process is the end of all; elsewhere it is the group, the session, the descendants, and the cgroup where there is one. What
 * cannot be inspected may live: it is searched again, and `signalUnseen` may do to it what needs no inspection.
 */
export const endTree = Effect.fn("ProcessTree.end")(function* (
  id: HostContainerId,
  signalUnseen: Effect.Effect<unknown> = Effect.void
) {
  const doomed = new Map<number, ProcessIdentity>()
  const doom = (identities: ReadonlyArray<ProcessIdentity>) => {
    for (const identity of identities) doomed.set(identity.pid, identity)
  }
  if (id.type === "sandbox") doom(id.processes)
  let isSearched = id.type === "sandbox"
  let unread: CgroupError | ProcUnreadable | undefined
  const search = Effect.gen(function* () {
    if (!isSearched) doom(yield* freezeTree(id))
    isSearched = true
    doom(yield* membersOf(id))
    return false
  })
  /** Whether something may be left; assumed when that cannot be seen. */
  const leaves = <R>(work: Effect.Effect<boolean, CgroupError | ProcUnreadable, R>) =>
    Effect.catch(work, (error) => {
      unread = error
      return Effect.as(signalUnseen, true)
    })
  const sweep = Effect.gen(function* () {
    unread = undefined
    let left = (yield* leaves(search)) ? 1 : 0
    // The namespace's first process goes before the program that waits for it, which then still reports its end.
    for (const identity of [...doomed.values()].reverse()) {
      if (yield* leaves(signalTo(identity, "SIGKILL"))) left++
    }
    return left
  })
  yield* sweep.pipe(
    Effect.repeat({
      until: (left) => left === 0,
      schedule: Schedule.spaced(CONTAINER_GONE_POLL_MS)
    }),
    // A scope closes without interruption, in which a timeout would only wait.
    Effect.interruptible,
    Effect.timeoutOrElse({
      duration: CONTAINER_GONE_MS_MAX,
      orElse: () => stuck([...doomed.keys()], unread)
    })
  )
})

/** Ends what is left of a container of an earlier choird. After a reboot nothing is left, and its pids belong to others. */
export const reapTree = Effect.fn("ProcessTree.reap")(function* (id: HostContainerId) {
  const cgroups = yield* Cgroups
  const boot_id = yield* Effect.mapError(bootId, (error) => stuck([], error))
  if (id.boot_id !== boot_id) return
  yield* endTree(id)
  yield* cgroups.remove(id.cgroup)
})
