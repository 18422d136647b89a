/** Runs commands for tools so that nothing of them is left when the answer is given (R22). */
import { Context, Deferred, Effect, Layer, Option, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { type Apart, limitsWrites, NOT_APART } from "#src/shared/program/callsApart.ts"
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
  holdsSecrets,
  notStarted,
  preferForOom,
  type Running,
  startCommand
} from "./startCommand.ts"
import { sweepCall } from "./sweepCall.ts"
import { makeTurns, type NoTurn, TURN_MS_MAX } from "./Turns.ts"

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
  /** How commands are kept apart here, {@link NOT_APART} unless said. */
  readonly apart?: Apart
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
     * interrupt does the same. What still holds the output open does not delay the result.
     *
     * Each command is kept apart from all others, as far as the kernel can. A command with secrets starts only once no process is
     * left that belongs to no call and, where the kernel keeps none apart, runs beside no other: it could read them in the command's memory.
     */
    run(call_id: CallId, command: Command): Effect.Effect<ProcessResult, CommandNotStarted | StrayProcesses | NoTurn>
    /** Whether a command can be kept from every network here. */
    readonly cutsNetwork: boolean
    /** Whether a command can be kept to the folders that it may write to. */
    readonly limitsWrites: boolean
    /** Whether the end of a command leaves none of its processes, wherever they went: the agent has a pid namespace of its own. */
    readonly endsAll: boolean
    /** How long a command may wait until it starts, beyond its own time; 0 where none has to wait. */
    readonly turnMs: number
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

/** The processes of calls, by which they are found again wherever they went. */
const makeCallProcesses = (apart: NonNullable<ProcessOptions["apart"]>, ownsPidNamespace: boolean) => {
  const leaders = new Map<number, string>()
  const markers = new Map<string, string>()
  const exempt = new Set(readProcessTable().entries.map(identityOf))
  const known: KnownProcesses = { agent: process.pid, leaders, markers, exempt, ownsPidNamespace }

  /** Known before any other call can look for what it does not know. */
  const begin = Effect.fnUntraced(function* (call_id: CallId, command: Command) {
    const running = yield* Effect.try({
      try: () => {
        const running = startCommand(call_id, command, apart)
        if (running.child.pid !== undefined) {
          leaders.set(running.child.pid, call_id)
          markers.set(running.marker, call_id)
        }
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

  return {
    begin,
    remainsOf,
    forget: ({ child, marker }: Running) => {
      if (child.pid !== undefined) leaders.delete(child.pid)
      markers.delete(marker)
    },
    callOf: (pid: number) => {
      const table = readProcessTable()
      return [...new Set(leaders.values())].find((call_id) =>
        processesOf(call_id, table, known, readMarker).processes.some((entry) => entry.pid === pid)
      )
    },
    keep: (pid: number) => {
      const entry = readProcess(pid)
      if (entry !== undefined) exempt.add(identityOf(entry))
    }
  }
}

const make = ({ apart = NOT_APART, ownsPidNamespace }: ProcessOptions): ProcessRunner["Service"] => {
  const inTurn = apart.level === "none" ? makeTurns() : undefined
  const { begin, callOf, forget, keep, remainsOf } = makeCallProcesses(apart, ownsPidNamespace)

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
    forget(running)
    return survivors
  })

  const runNow = Effect.fnUntraced(function* (call_id: CallId, command: Command) {
    if (holdsSecrets(command)) yield* endStrays(call_id)
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
    run: Effect.fn("ProcessRunner.run")(function* (call_id, command) {
      const running = runNow(call_id, command)
      return yield* inTurn === undefined ? running : inTurn(holdsSecrets(command), running)
    }),
    cutsNetwork: apart.program !== undefined,
    limitsWrites: limitsWrites(apart),
    endsAll: ownsPidNamespace,
    turnMs: inTurn === undefined ? 0 : TURN_MS_MAX,
    callOf,
    keep
  })
}
