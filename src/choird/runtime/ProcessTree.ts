/** Ends everything that a container started, as far as the host can tell what that is. */
import { Effect, Schedule } from "effect"
import { CONTAINER_GONE_MS_MAX, CONTAINER_GONE_POLL_MS, PROCESS_SEARCHES_MAX } from "#src/shared/limits.ts"
import type { Cgroups } from "./Cgroups.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import type { HostContainerId } from "./ContainerRuntime.ts"
import { isInside } from "./Ownership.ts"
import { bootId, isAlive, listProcesses, signalTo, statOf, workingFolderOf } from "./ProcessIdentity.ts"
import type { ProcessIdentity, ProcessStat } from "./ProcessIdentity.ts"

/**
 * The processes of a container that has no pid namespace: its leader, what descends from anything `known`, and what is in the
 * leader's session or group. choird gave the leader a session of its own, and the kernel gives no pid away that still names a
 * session. So while the leader lives its session is the container's; once it is dead only `mayBeOurs` tells.
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

const membersOf = Effect.fnUntraced(function* (cgroups: Cgroups["Service"], id: HostContainerId) {
  const stats = yield* Effect.forEach(yield* cgroups.members(id.cgroup), statOf)
  return stats.filter((stat) => stat !== undefined && stat.state !== "Z") as ReadonlyArray<ProcessIdentity>
})

/**
 * Kills every process of a container and waits until they are gone. In a sandbox the end of the namespace's first process is
 * the end of all; elsewhere it is the group, the session, the descendants, and the cgroup where there is one.
 */
export const endTree = Effect.fn("ProcessTree.end")(function* (cgroups: Cgroups["Service"], id: HostContainerId) {
  const doomed = new Map<number, ProcessIdentity>()
  const tree = id.type === "sandbox" ? id.processes : yield* freezeTree(id)
  for (const identity of tree) doomed.set(identity.pid, identity)
  const sweep = Effect.gen(function* () {
    for (const identity of yield* membersOf(cgroups, id)) doomed.set(identity.pid, identity)
    let left = 0
    // The namespace's first process goes before the program that waits for it, which then still reports its end.
    for (const identity of [...doomed.values()].reverse()) {
      if (!(yield* isAlive(identity))) continue
      left++
      yield* signalTo(identity, "SIGKILL")
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
      orElse: () =>
        new ContainerError({
          reason: "stuck",
          problem: `processes ${[...doomed.keys()].join(", ")} of an agent are still there after SIGKILL`,
          fix: "Look for a hung file system or device, then start the agent again"
        })
    })
  )
})

/** Ends what is left of a container of an earlier life of choird. After a reboot nothing is, and its pids are others'. */
export const reapTree = Effect.fn("ProcessTree.reap")(function* (cgroups: Cgroups["Service"], id: HostContainerId) {
  if (id.boot_id !== (yield* bootId)) return
  yield* endTree(cgroups, id)
  yield* cgroups.remove(id.cgroup)
})
