/** A container made of host processes, the common part of the sandbox and the process runtime. */
import { constants } from "node:os"
import { Deferred, Effect, Option, Stream } from "effect"
import { cgroupOf } from "./AgentCommand.ts"
import { ContainerError } from "./ContainerRuntime.ts"
import type { Condition, Container, ContainerExit, HostContainerId, ContainerSpec } from "./ContainerRuntime.ts"
import { launch, signalGroup } from "./HostProcess.ts"
import type { ExitStatus, HostProcess, Launch } from "./HostProcess.ts"
import { bootId, conditionOf, visibleStatOf } from "./ProcessIdentity.ts"
import type { ProcessIdentity, ProcUnreadable } from "./ProcessIdentity.ts"
import { endTree, OPEN_FILES_FIX, stuck } from "./ProcessTree.ts"
import { type Cgroup, Cgroups, CONTAINER_GONE_MS_MAX } from "./Cgroups.ts"
import { logDeath } from "#src/shared/background.ts"

/** Time from the start of an agent's container until its first process is known. */
const CONTAINER_START_MS_MAX = 10_000
/** Wait for bubblewrap's report of an exit, which may arrive after the exit itself. */
export const CONTAINER_STATUS_MS_MAX = 200

interface HostContainerPlan {
  readonly type: HostContainerId["type"]
  readonly spec: ContainerSpec
  readonly group: Cgroup
  /** Its real path. */
  readonly workspace: string
  readonly launch: Launch
}

/** Some numbers have an older second name, which comes later in the list. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .map(([name, number]): [number, string] => [number, name])
    .reverse()
)

/** The signal in an exit code: bubblewrap and shells report a death by signal as 128 and its number. */
const signalIn = (code: number | null) => (code === null ? undefined : SIGNAL_NAMES.get(code - 128))

/** Codes of our own shell lines, and of prlimit for a missing program. */
const SETUP_CODES = new Set([125, 126, 127])

/** The meaning of an exit. bubblewrap reports `ranAgent`; it is absent without bubblewrap. */
export const classifyExit = (
  status: ExitStatus,
  facts: { readonly killed: boolean; readonly oomKills: number; readonly ranAgent: boolean | undefined }
): ContainerExit => {
  const signal = status.signal ?? signalIn(status.code) ?? null
  if (signal !== null) {
    const reason =
      signal !== "SIGKILL" ? "signalled" : facts.killed ? "killed" : facts.oomKills > 0 ? "out_of_memory" : "signalled"
    return { code: null, signal, reason }
  }
  const failed = status.code !== null && SETUP_CODES.has(status.code)
  return { code: status.code, signal, reason: facts.ranAgent === false || failed ? "setup_failed" : "exited" }
}

const unread = ({ message }: ProcUnreadable) =>
  new ContainerError({ reason: "failed", problem: message, fix: OPEN_FILES_FIX })

const identityOf = (pid: number) =>
  visibleStatOf(pid).pipe(
    Effect.map((stat): ReadonlyArray<ProcessIdentity> =>
      stat === undefined ? [] : [{ pid: stat.pid, start: stat.start }]
    ),
    Effect.mapError(unread)
  )

/** The most significant first: one process that is gone means that all are, and one that cannot be seen leaves it open. */
const CONDITIONS = ["gone", "unknown", "paused", "running"] as const

/** The condition of a container by its processes, each of which ends with the others. */
const conditionOfAll = (processes: ReadonlyArray<ProcessIdentity>) =>
  Effect.map(
    Effect.forEach(processes, conditionOf),
    (found): Condition => CONDITIONS.find((condition) => found.includes(condition)) ?? "unknown"
  )

/** The first process of a new pid namespace. A sandbox that ends before it reports one was never set up. */
const namespaceInit = Effect.fnUntraced(function* (process: HostProcess) {
  const reported = yield* Effect.raceFirst(
    process.awaitWritten(/"child-pid": \d+[^\d]/u),
    Effect.as(process.exited, undefined)
  ).pipe(Effect.timeoutOption(CONTAINER_START_MS_MAX))
  const found = Option.getOrUndefined(reported)
  if (found !== undefined) return yield* identityOf(Number(/\d+/u.exec(found)?.[0]))
  const printed = Stream.mkString(Stream.intersperse(process.output, "\n"))
  const late = "it did not answer in time"
  const text = Option.isNone(reported)
    ? late
    : Option.getOrElse(yield* Effect.timeoutOption(printed, CONTAINER_STATUS_MS_MAX), () => late)
  return yield* new ContainerError({
    reason: "failed",
    problem: `the sandbox could not be set up: ${text}`,
    fix: "choirctl doctor tries a sandbox and names what the host lacks"
  })
})

/** The group of a start, with its limits, for as long as the scope lives. */
export const limitGroup = (spec: ContainerSpec) =>
  Effect.flatMap(Cgroups, (cgroups) => cgroups.create(cgroupOf(spec), spec.limits)).pipe(
    Effect.mapError(
      ({ message }) => new ContainerError({ reason: "failed", problem: message, fix: "Start the agent again" })
    )
  )

/** Starts it; the scope kills it and waits until every process is gone. */
export const openHostContainer = Effect.fnUntraced(function* (plan: HostContainerPlan) {
  const cgroups = yield* Cgroups
  const boot_id = yield* Effect.mapError(bootId, unread)
  const exit = yield* Deferred.make<ContainerExit>()
  let processes: ReadonlyArray<ProcessIdentity> = []
  let killed = false
  const idNow = (): HostContainerId => ({
    type: plan.type,
    boot_id,
    processes,
    cgroup: cgroupOf(plan.spec),
    workspace: plan.workspace
  })

  const settle = Effect.fnUntraced(function* (process: HostProcess) {
    const status = yield* process.exited
    const wasKilled = killed
    const oomKills = yield* plan.group.oomKills
    const reported =
      plan.type === "sandbox" && !wasKilled
        ? yield* process.awaitWritten(/"exit-code"/u).pipe(Effect.timeoutOption(CONTAINER_STATUS_MS_MAX))
        : undefined
    const ranAgent = reported === undefined ? undefined : Option.isSome(reported)
    yield* Deferred.succeed(exit, classifyExit(status, { killed: wasKilled, oomKills, ranAgent }))
  })

  const end = Effect.fnUntraced(
    function* (process: HostProcess) {
      killed ||= !(yield* Deferred.isDone(exit))
      const isKnown = processes.length > 0
      // Where the host has no /proc there is no tree to search, only the group.
      if (!isKnown) signalGroup(process.pid, "SIGKILL")
      // A sandbox dies as a whole; elsewhere a stopped group can be searched once /proc can be read.
      const unseen = Effect.sync(() => signalGroup(process.pid, plan.type === "sandbox" ? "SIGKILL" : "SIGSTOP"))
      yield* endTree(idNow(), Effect.when(unseen, process.isUnreaped))
      const settled = yield* settle(process).pipe(Effect.interruptible, Effect.timeoutOption(CONTAINER_GONE_MS_MAX))
      yield* process.close
      if (!isKnown && Option.isNone(settled)) return yield* stuck([process.pid], undefined)
    },
    Effect.provideService(Cgroups, cgroups)
  )

  const process = yield* Effect.acquireRelease(launch(plan.launch), (process) =>
    Effect.catch(end(process), (error) => Effect.logError(error))
  )
  processes = yield* identityOf(process.pid)
  yield* Effect.forkScoped(logDeath("the wait for the end of a container")(settle(process)))
  if (plan.type === "sandbox") processes = [...processes, ...(yield* namespaceInit(process))]
  return {
    id: idNow(),
    exit: Deferred.await(exit),
    condition: conditionOfAll(processes),
    kill: end(process),
    output: process.output
  } satisfies Container
})
