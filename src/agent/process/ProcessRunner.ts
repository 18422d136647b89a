/** Runs commands for tools so that nothing of them is left when the answer is given (R22). */
import { accessSync, constants } from "node:fs"
import { Context, Deferred, Effect, Layer, Option, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import type { CapturedOutput } from "./OutputRing.ts"
import {
  identityOf,
  type KnownProcesses,
  processesOf,
  readMarker,
  readProcess,
  readProcessTable,
  type Remains
} from "./ProcessTable.ts"
import {
  type Command,
  type CommandNotStarted,
  notStarted,
  type OfflineProgram,
  preferForOom,
  type Running,
  startCommand
} from "./startCommand.ts"

/** How long a finished process's output may take to arrive when something beyond reach keeps the pipe open. */
const PROCESS_DRAIN_MS = 250

export interface ProcessResult {
  /** Absent when a signal ended the process. */
  readonly exit_code?: number
  readonly signal?: NodeJS.Signals
  readonly stdout: CapturedOutput
  readonly stderr: CapturedOutput
  readonly timed_out: boolean
  readonly duration_ms: number
  /** Processes that could be killed by no means; 0 but for a kernel that does not answer. */
  readonly survivors: number
}

interface ProcessOptions {
  readonly ownsPidNamespace: boolean
  /** Where the program lies that runs commands without a network; a host that cannot run it has none. */
  readonly offline?: OfflineProgram
}

/**
 * Every process of the agent goes through here. In a pid namespace of its own the agent therefore knows that any other process
 * is an escaped one; elsewhere a process that leaves its session, its parents and its environment at once is not found again.
 */
export class ProcessRunner extends Context.Service<
  ProcessRunner,
  {
    /**
     * Runs a command in a session of its own until it exits or `timeout_ms` has passed, then kills whatever it started. An
     * interrupt does the same. What still holds the output open does not delay the result. A command with secrets starts only
     * once no process is left that belongs to no call: it could read them in the command's memory.
     */
    run(call_id: CallId, command: Command): Effect.Effect<ProcessResult, CommandNotStarted | StrayProcesses>
    /** Whether a command can be kept from every network here. */
    readonly cutsNetwork: boolean
    /** The running call that a process belongs to, if it does. */
    callOf(pid: number): string | undefined
    /** Exempts a process that was just started: it is the agent's own and no call's. */
    keep(pid: number): void
  }
>()("choir/agent/ProcessRunner") {
  static readonly layer = (options: ProcessOptions) => Layer.sync(ProcessRunner, () => make(options))
}

/** Processes of earlier calls that cannot be killed, so that a command with secrets must not start beside them. */
export class StrayProcesses extends Schema.TaggedError<StrayProcesses>()("StrayProcesses", {
  count: Schema.Natural
}) {
  override get message() {
    return `${this.count} processes of earlier calls cannot be ended, and a tool with secrets does not start beside them. Restart the agent`
  }
}

/** Waits at most so long, in an uninterruptible region as well. */
const within = <A>(deferred: Deferred.Deferred<A>, limit_ms: number): Effect.Effect<Option.Option<A>> =>
  Effect.timeoutOption(Effect.interruptible(Deferred.await(deferred)), limit_ms)

const canRun = (program: string): boolean => {
  try {
    accessSync(program, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const make = ({ offline, ownsPidNamespace }: ProcessOptions): ProcessRunner["Service"] => {
  const offlineProgram = offline !== undefined && canRun(offline) ? offline : undefined
  const leaders = new Map<number, string>()
  const exempt = new Set(readProcessTable().entries.map(identityOf))
  const known: KnownProcesses = { agent: process.pid, leaders, exempt, ownsPidNamespace }

  /** Known before any other call can look for what it does not know. */
  const begin = Effect.fnUntraced(function* (call_id: CallId, command: Command) {
    const running = yield* Effect.try({
      try: () => {
        const running = startCommand(call_id, command, offlineProgram)
        if (running.child.pid !== undefined) leaders.set(running.child.pid, call_id)
        return running
      },
      catch: (error) => notStarted(command, error)
    })
    yield* Deferred.await(running.started)
    yield* preferForOom(running.child.pid)
    return running
  })

  const remainsOf = (call_id: CallId) =>
    Effect.sync((): Remains => processesOf(call_id, readProcessTable(), known, readMarker))

  /** Ends what belongs to no call, where the agent can tell. */
  const endStrays = Effect.fnUntraced(function* (call_id: CallId) {
    if (!ownsPidNamespace) return
    const count = yield* sweepCall(remainsOf(call_id))
    if (count > 0) return yield* new StrayProcesses({ count })
  })

  const finish = Effect.fnUntraced(function* (call_id: CallId, running: Running) {
    const { child } = running
    const survivors = yield* sweepCall(remainsOf(call_id))
    yield* within(running.closed, PROCESS_DRAIN_MS)
    for (const stream of child.stdio) stream?.destroy()
    child.unref()
    if (child.pid !== undefined) leaders.delete(child.pid)
    return survivors
  })

  const run = Effect.fn("ProcessRunner.run")(function* (call_id: CallId, command: Command) {
    if (command.secrets !== undefined) yield* endStrays(call_id)
    const began = yield* monotonicMs
    return yield* Effect.uninterruptibleMask(
      Effect.fnUntraced(function* (restore) {
        const running = yield* begin(call_id, command)
        const first = yield* restore(within(running.exited, command.timeout_ms)).pipe(
          Effect.onError(() => finish(call_id, running))
        )
        const survivors = yield* finish(call_id, running)
        return {
          ...Option.getOrElse(yield* within(running.exited, PROCESS_DRAIN_MS), () => ({})),
          stdout: running.stdout.captured(),
          stderr: running.stderr.captured(),
          timed_out: Option.isNone(first),
          duration_ms: (yield* monotonicMs) - began,
          survivors
        }
      })
    )
  })

  return ProcessRunner.of({
    run,
    cutsNetwork: offlineProgram !== undefined,
    callOf: (pid) => {
      const table = readProcessTable()
      return [...new Set(leaders.values())].find((call_id) =>
        processesOf(call_id, table, known, readMarker).processes.some((entry) => entry.pid === pid)
      )
    },
    keep: (pid) => {
      const entry = readProcess(pid)
      if (entry !== undefined) exempt.add(identityOf(entry))
    }
  })
}

/** Rounds of looking for what is left of a call and killing it; with the waits between them about a second (R22). */
const PROCESS_SWEEPS_MAX = 100
/** The pause between two such rounds, in which the kernel buries what was killed and lays out the memory of what begins a program. */
const PROCESS_SWEEP_PAUSE_MS = 5
/** Looks within one round that stop what a call forks while it is being found. */
const PROCESS_FREEZES_MAX = 20
/** Looks in a row that must find nothing where forks, or processes without an environment, leave room for doubt. */
const PROCESS_CLEAN_LOOKS = 10

/** Best effort: the process may be gone. */
const signal = (pid: number, name: NodeJS.Signals) =>
  Effect.ignore(Effect.try({ try: () => process.kill(pid, name), catch: () => undefined }))

/** Stops what is found until a look finds nothing new, then kills it all: a fork does not outrun the search. */
const killAll = Effect.fnUntraced(function* (look: Effect.Effect<Remains>) {
  const found = new Map<string, number>()
  let remains = yield* look
  for (let freeze = 0; freeze < PROCESS_FREEZES_MAX; freeze++) {
    const fresh = remains.processes.filter((entry) => !found.has(identityOf(entry)))
    if (fresh.length === 0) break
    for (const entry of fresh) {
      found.set(identityOf(entry), entry.pid)
      yield* signal(entry.pid, "SIGSTOP")
    }
    remains = yield* look
  }
  for (const pid of found.values()) yield* signal(pid, "SIGKILL")
  return { clean: found.size === 0, complete: remains.complete }
})

/**
 * Kills until nothing is left, and answers how many processes could not be killed. Where others fork all the time, or wiped their
 * environment for good, no look is complete, and several clean ones must do.
 */
const sweepCall = Effect.fnUntraced(function* (look: Effect.Effect<Remains>) {
  let clean_looks = 0
  for (let round = 0; round < PROCESS_SWEEPS_MAX; round++) {
    const { clean, complete } = yield* killAll(look)
    clean_looks = clean ? clean_looks + 1 : 0
    if (clean_looks === PROCESS_CLEAN_LOOKS || (clean && complete)) return 0
    yield* Effect.sleep(PROCESS_SWEEP_PAUSE_MS)
  }
  const { processes } = yield* look
  if (processes.length > 0) yield* Effect.logWarning("processes of a tool call could not be killed", processes)
  return processes.length
})
