/**
 * The processes that belong to a tool call (R22). A process may leave its parent, its session and its environment, so the
 * question is put to each trace in turn: session and group, ancestors, the marker in the environment, and at last whether it
 * could be anything else at all.
 */
import { readdirSync, readFileSync } from "node:fs"

/** The variable by which a tool knows the id of its call. */
export const CALL_ID = "CHOIR_CALL_ID"
/**
 * The variable that every process of a command inherits, unless it wipes its environment. Its value is drawn for each command: the ids of calls
 * follow each other, so that a process could say that it belongs to a call which runs longer than its own.
 */
export const CALL_MARKER = "CHOIR_CALL_MARKER"

const INIT = 1

/** A living process. Its pid and start together name it until the next boot. */
export interface ProcessEntry {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Clock ticks since boot. */
  readonly start: number
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return undefined
  }
}

const countTasks = (pid: number): number => {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch {
    return 0
  }
}

/** `undefined` when it is gone, or a zombie. The name in the second field may hold anything. */
export const readProcess = (pid: number): ProcessEntry | undefined => {
  const text = readText(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const [parent, group, session] = fields.slice(1, 4).map(Number)
  if (parent === undefined || group === undefined || session === undefined) return undefined
  // A process whose first thread ended looks like a zombie while its other threads run on.
  if (fields[0] === "X" || (fields[0] === "Z" && countTasks(pid) <= 1)) return undefined
  return { pid, parent, group, session, start: Number(fields[19]) }
}

/** The pid of a process's parent. */
export const parentOf = (pid: number): number | undefined => readProcess(pid)?.parent

/** The processes in sight. */
interface ProcessTable {
  readonly entries: ReadonlyArray<ProcessEntry>
  /** Whether none was forked while they were read, so that none can be missing. */
  readonly complete: boolean
}

/** The newest pid of this namespace, at the end of /proc/loadavg: it moves with every fork. */
const newestPid = (): string | undefined => readText("/proc/loadavg")?.split(" ").at(-1)

/** Reads every living process. */
export const readProcessTable = (): ProcessTable => {
  const newest = newestPid()
  const entries = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/u.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry) => entry !== undefined)
  return { entries, complete: newest === newestPid() }
}

/**
 * The marker that a process was started with. Empty for a process without any environment: it wiped its own, or it is just about
 * to begin another program, and the kernel has not laid out the new environment yet.
 */
export const readMarker = (pid: number): string | undefined => {
  const environ = readText(`/proc/${pid}/environ`)
  if (environ === "") return ""
  return environ
    ?.split("\0")
    .find((entry) => entry.startsWith(`${CALL_MARKER}=`))
    ?.slice(CALL_MARKER.length + 1)
}

/** The processes that the agent knows without looking. */
export interface KnownProcesses {
  readonly agent: number
  /** The direct child of each call in flight, leader of its own session. */
  readonly leaders: ReadonlyMap<number, string>
  /** The call of each marker that was given to a command in flight. */
  readonly markers: ReadonlyMap<string, string>
  /** `pid:start` of what ran before the agent did, and of what it started for itself. */
  readonly exempt: ReadonlySet<string>
  /** Whether every process of this pid namespace that came later is a call's. */
  readonly ownsPidNamespace: boolean
}

/** The findings of one look at the processes of a call. */
export interface Remains {
  readonly processes: ReadonlyArray<ProcessEntry>
  /** Whether none can have been overlooked. */
  readonly complete: boolean
}

export const identityOf = (entry: ProcessEntry): string => `${entry.pid}:${entry.start}`

/** Threads of the kernel have no session, and no environment either. */
const isKernelThread = (entry: ProcessEntry): boolean => entry.session === 0

/**
 * The processes left of a call: its own and, in a pid namespace of the agent's own, orphans that belong to no other call.
 * Such an orphan wiped its traces, so whichever call ends first kills it too. Elsewhere an orphan without an environment leaves the
 * look incomplete: it may be about to begin a program, and show its marker in a moment.
 */
export const processesOf = (
  call_id: string,
  table: ProcessTable,
  known: KnownProcesses,
  markerOf: (pid: number) => string | undefined
): Remains => {
  const byPid = new Map(table.entries.map((entry) => [entry.pid, entry]))
  let unmarked = false
  const owners = new Map<number, string | undefined>()
  const isTop = (pid: number) => pid === INIT || pid === known.agent

  const ownerOf = (entry: ProcessEntry): string | undefined => {
    if (isTop(entry.pid) || known.exempt.has(identityOf(entry))) return undefined
    const led = known.leaders.get(entry.pid) ?? known.leaders.get(entry.session) ?? known.leaders.get(entry.group)
    if (led !== undefined) return led
    const parent = byPid.get(entry.parent)
    const inherited = parent === undefined || isTop(parent.pid) ? undefined : owner(parent)
    if (inherited !== undefined) return inherited
    const marker = markerOf(entry.pid)
    const marked = marker === undefined ? undefined : known.markers.get(marker)
    if (marked !== undefined) return marked
    if (marker === "" && !known.ownsPidNamespace && !isKernelThread(entry)) unmarked = true
    return known.ownsPidNamespace && isTop(entry.parent) ? call_id : undefined
  }
  const owner = (entry: ProcessEntry): string | undefined => {
    // Marked before it is known, so that a table read while pids changed hands cannot make it run in circles.
    if (!owners.has(entry.pid)) {
      owners.set(entry.pid, undefined)
      owners.set(entry.pid, ownerOf(entry))
    }
    return owners.get(entry.pid)
  }
  const processes = table.entries.filter((entry) => owner(entry) === call_id)
  return { processes, complete: table.complete && !unmarked }
}
