/** The places and files of the kernel's control groups: pure readings of /proc and plain writes (cgroups(7)). */
import { join, relative } from "node:path"

/** The limits of one agent (`runtime` of config.json, D41). */
export interface ContainerLimits {
  /** Processors, as a number that may have a fraction. */
  readonly cpus: number
  readonly memory_mb: number
  /** Processes and threads. */
  readonly pids: number
}

/** `cpuacct` counts the time of processors in version 1; version 2 counts it everywhere. */
export type Controller = "cpu" | "cpuacct" | "memory" | "pids"

const CONTROLLERS: ReadonlyArray<Controller> = ["cpu", "cpuacct", "memory", "pids"]

/** A hierarchy, and the folders in it under which a group for an agent may be made, the best first. */
export interface GroupParent {
  readonly version: 1 | 2
  readonly controllers: ReadonlyArray<Controller>
  readonly folders: ReadonlyArray<string>
  /** Whether choird runs in the host's root group, where an agent's group competes with each process of the host. */
  readonly isRoot?: true
}

interface Mount {
  readonly root: string
  readonly point: string
  readonly version: 1 | 2
  readonly controllers: ReadonlyArray<Controller>
}

/** mountinfo writes space, tab, newline and backslash as three octal digits. */
const unescape = (text: string) =>
  text.replaceAll(/\\([0-7]{3})/gu, (_, octal) => String.fromCharCode(parseInt(octal, 8)))

const controllersIn = (options: ReadonlyArray<string>) => CONTROLLERS.filter((name) => options.includes(name))

const parseMount = (line: string): Mount | undefined => {
  const [before, after] = line.split(" - ")
  const [, , , root, point] = before?.split(" ") ?? []
  const [type, , options] = after?.split(" ") ?? []
  if (root === undefined || point === undefined) return undefined
  const place = { root: unescape(root), point: unescape(point) }
  if (type === "cgroup2") return { ...place, version: 2, controllers: CONTROLLERS }
  const controllers = controllersIn(options?.split(",") ?? [])
  return type === "cgroup" && controllers.length > 0 ? { ...place, version: 1, controllers } : undefined
}

/** The group of choird in one hierarchy, from /proc/self/cgroup. */
const ownGroup = (own: string, mount: Mount): string | undefined => {
  for (const line of own.split("\n")) {
    const [id, names, ...path] = line.split(":")
    const here =
      mount.version === 2 ? id === "0" : controllersIn(names?.split(",") ?? []).join() === mount.controllers.join()
    if (here && names !== undefined) return path.join(":")
  }
  return undefined
}

/** The folder itself and its ancestors up to the mount point. */
const upTo = (point: string, folder: string): ReadonlyArray<string> => {
  const steps = relative(point, folder)
    .split("/")
    .filter((step) => step !== "")
  return steps.map((_, index) => join(point, ...steps.slice(0, steps.length - index))).concat(point)
}

/** Reads /proc/self/mountinfo and /proc/self/cgroup. A hierarchy that is mounted twice counts once. */
export const groupParents = (mountinfo: string, own: string): ReadonlyArray<GroupParent> => {
  const parents: Array<GroupParent> = []
  const seen = new Set<string>()
  for (const line of mountinfo.split("\n")) {
    const mount = parseMount(line)
    const group = mount === undefined ? undefined : ownGroup(own, mount)
    if (mount === undefined || group === undefined || seen.has(`${mount.version}${mount.controllers.join()}`)) continue
    seen.add(`${mount.version}${mount.controllers.join()}`)
    const below = relative(mount.root, group)
    const folder = below.startsWith("..") ? mount.point : join(mount.point, below)
    const folders = mount.version === 1 ? [folder] : upTo(mount.point, folder)
    // In version 2 only the host's root group may hold both processes and groups with limits, so a usable group named / is that one.
    const isRoot = mount.version === 1 ? folder === mount.point : group === "/"
    parents.push({ version: mount.version, controllers: mount.controllers, folders, ...(isRoot ? { isRoot } : {}) })
  }
  return parents
}

interface LimitFile {
  readonly file: string
  readonly text: string
  /** Kernels without swap accounting or scheduling by groups lack the file. */
  readonly optional?: boolean
}

const PERIOD_US = 100_000

/**
 * Half of what any other group or process gets where processors are short, so that agents keep neither choird nor the operator waiting:
 * version 1 counts from 1024, version 2 from 100. In the root group it would be half of what each process of the host gets, so there it is the
 * kernel's own, and agents start beside a busy host.
 */
const FRONT = { 1: 512, 2: 50 } as const
const ROOT_FRONT = { 1: 1024, 2: 100 } as const
/** A group that steps back gets a hundredth of another group, and in the root group a tenth, with which an agent still starts. */
const BACK = { 1: 10, 2: 1 } as const
const ROOT_BACK = { 1: 102, 2: 10 } as const

/** The file that says what a group gets where processors are short; nothing where the hierarchy has no such file. */
export const shareFile = ({ version, controllers, isRoot }: GroupParent, isBack: boolean): LimitFile | undefined => {
  if (!controllers.includes("cpu")) return undefined
  const shares = isRoot === true ? (isBack ? ROOT_BACK : ROOT_FRONT) : isBack ? BACK : FRONT
  return { file: version === 1 ? "cpu.shares" : "cpu.weight", text: String(shares[version]), optional: true }
}

/** The file with the time of processors that a group has taken. */
export const usageFile = ({ version, controllers }: GroupParent): string | undefined => {
  if (version === 1) return controllers.includes("cpuacct") ? "cpuacct.usage" : undefined
  return controllers.includes("cpu") ? "cpu.stat" : undefined
}

/** Microseconds in the text of {@link usageFile}; nothing for a group that is gone. */
export const usedIn = (version: 1 | 2, text: string): number | undefined => {
  const found = version === 1 ? /^(\d+)\s*$/u.exec(text) : /^usage_usec (\d+)$/mu.exec(text)
  return found === null ? undefined : Number(found[1]) / (version === 1 ? 1000 : 1)
}

/** The files to write, in order: version 1 refuses a limit on memory and swap below the one on memory. */
export const limitFiles = (parent: GroupParent, limits: ContainerLimits): ReadonlyArray<LimitFile> => {
  const { controllers, isRoot, version } = parent
  const bytes = String(Math.floor(limits.memory_mb * 1024 * 1024))
  const quota = String(Math.max(1000, Math.floor(limits.cpus * PERIOD_US)))
  const pids = { file: "pids.max", text: String(limits.pids) }
  const share = isRoot === true ? undefined : shareFile(parent, false)
  const shares = share === undefined ? [] : [share]
  const files: Record<Controller, ReadonlyArray<LimitFile>> = version === 1
    ? {
        memory: [
          { file: "memory.limit_in_bytes", text: bytes },
          { file: "memory.memsw.limit_in_bytes", text: bytes, optional: true }
        ],
        cpu: [
          { file: "cpu.cfs_period_us", text: String(PERIOD_US) },
          { file: "cpu.cfs_quota_us", text: quota },
          ...shares
        ],
        cpuacct: [],
        pids: [pids]
      }
    : {
        memory: [
          { file: "memory.max", text: bytes },
          { file: "memory.swap.max", text: "0", optional: true }
        ],
        cpu: [{ file: "cpu.max", text: `${quota} ${PERIOD_US}` }, ...shares],
        cpuacct: [],
        pids: [pids]
      }
  return controllers.flatMap((controller) => files[controller])
}

/** The count of `oom_kill` lines in memory.events (version 2) or memory.oom_control (version 1). */
export const oomKillsIn = (text: string): number => Number(/^oom_kill (\d+)$/mu.exec(text)?.[1] ?? 0)

/** The file that a process writes `0` into to join a group. */
export const joinFile = (folder: string) => join(folder, "cgroup.procs")
