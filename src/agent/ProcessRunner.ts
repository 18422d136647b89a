/** Runs commands for tools so that nothing of them is left when the answer is given (R22). */
import { type ChildProcess, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { Writable } from "node:stream"
import { Clock, Context, Deferred, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import {
  EXEC_OUTPUT_BYTES_MAX,
  PROCESS_CLEAN_LOOKS,
  PROCESS_DRAIN_MS,
  PROCESS_FREEZES_MAX,
  PROCESS_SWEEP_PAUSE_MS,
  PROCESS_SWEEPS_MAX
} from "#src/shared/limits.ts"
import { codeOf } from "#src/shared/nofollow.ts"
import { type CapturedOutput, OutputRing } from "./OutputRing.ts"
import {
  CALL_MARKER,
  identityOf,
  type KnownProcesses,
  type ProcessEntry,
  processesOf,
  readMarker,
  readProcess,
  readProcessTable
} from "./ProcessTable.ts"

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/** The kernel takes a tool's memory before the agent's (D13). */
const OOM_SCORE = "1000"
/** A folder that anything of the agent may write into; who gets secrets reads no configuration from it. */
const HOME = "/tmp"
const NO_HOME = "/nonexistent"
const SECRETS_FD = 3

export interface Command {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly timeout_ms: number
  /** Written to standard input, which is closed afterwards; without it the input is empty. */
  readonly stdin?: string | Uint8Array
  /** Beyond PATH, HOME, LANG, TERM and {@link CALL_MARKER}; nothing of the agent's own environment is handed on. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Written to a descriptor of its own, whose number is in CHOIR_SECRETS_FD, and closed afterwards. It is a socket, which nobody
   * else can open through /proc. HOME is then a folder that does not exist.
   */
  readonly secrets?: Redacted.Redacted
}

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

export class CommandNotStarted extends Schema.TaggedError<CommandNotStarted>()("CommandNotStarted", {
  command: Schema.String,
  code: Schema.String
}) {
  override get message() {
    return `${this.command} could not be started (${this.code}). Is it there, and may it be executed?`
  }
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
     */
    run(call_id: CallId, command: Command): Effect.Effect<ProcessResult, CommandNotStarted>
    /** The running call that a process belongs to, if it does. */
    callOf(pid: number): string | undefined
    /** Exempts a process that was just started: it is the agent's own and no call's. */
    keep(pid: number): void
  }
>()("choir/agent/ProcessRunner") {
  static readonly layer = (options: { readonly ownsPidNamespace: boolean }) =>
    Layer.sync(ProcessRunner, () => make(options))
}

interface Exited {
  readonly exit_code?: number
  readonly signal?: NodeJS.Signals
}

interface Running {
  readonly child: ChildProcess
  readonly started: Deferred.Deferred<void, CommandNotStarted>
  readonly exited: Deferred.Deferred<Exited>
  /** Done when the process exited and its output has arrived whole. */
  readonly closed: Deferred.Deferred<void>
  readonly stdout: OutputRing
  readonly stderr: OutputRing
}

const notStarted = ({ command }: Command, error: unknown): CommandNotStarted =>
  new CommandNotStarted({ command, code: codeOf(error) ?? "unknown" })

const launch = (call_id: CallId, { command, args, cwd, stdin, env, secrets }: Command): ChildProcess => {
  const home = secrets === undefined ? { HOME } : { HOME: NO_HOME, CHOIR_SECRETS_FD: String(SECRETS_FD) }
  return spawn(command, [...args], {
    cwd,
    env: { PATH, LANG: "C.UTF-8", TERM: "dumb", ...home, ...env, [CALL_MARKER]: call_id },
    // A session of its own, so that the whole group can be told from the agent's.
    detached: true,
    stdio: [
      stdin === undefined ? "ignore" : "pipe",
      "pipe",
      "pipe",
      ...(secrets === undefined ? [] : ["pipe" as const])
    ]
  })
}

/** A command that does not read what it is given closes it; that is its own affair. */
const give = (stream: unknown, content: string | Uint8Array | undefined) => {
  if (!(stream instanceof Writable)) return
  stream.on("error", () => undefined)
  stream.end(content)
}

/** Listens from the first moment on: none of its events waits for a listener. */
const start = (call_id: CallId, command: Command): Running => {
  const child = launch(call_id, command)
  const running: Running = {
    child,
    started: Deferred.makeUnsafe(),
    exited: Deferred.makeUnsafe(),
    closed: Deferred.makeUnsafe(),
    stdout: new OutputRing(EXEC_OUTPUT_BYTES_MAX),
    stderr: new OutputRing(EXEC_OUTPUT_BYTES_MAX)
  }
  child.stdout?.on("data", (chunk: Buffer) => running.stdout.push(chunk))
  child.stderr?.on("data", (chunk: Buffer) => running.stderr.push(chunk))
  child.once("spawn", () => Deferred.doneUnsafe(running.started, Effect.void))
  child.on("error", (error) => Deferred.doneUnsafe(running.started, Effect.fail(notStarted(command, error))))
  child.once("exit", (code, signal) => {
    const how = code === null ? (signal === null ? {} : { signal }) : { exit_code: code }
    Deferred.doneUnsafe(running.exited, Effect.succeed(how))
  })
  child.once("close", () => Deferred.doneUnsafe(running.closed, Effect.void))
  // Last, since a command that could not be started has no streams and says so by its error.
  if (child.pid !== undefined) {
    give(child.stdin, command.stdin)
    if (command.secrets !== undefined) give(child.stdio[SECRETS_FD], Redacted.value(command.secrets))
  }
  return running
}

/** Waits at most so long, in an uninterruptible region as well. */
const within = <A>(deferred: Deferred.Deferred<A>, limit_ms: number): Effect.Effect<Option.Option<A>> =>
  Effect.timeoutOption(Effect.interruptible(Deferred.await(deferred)), limit_ms)

/** Best effort: the process may be gone. */
const signal = (pid: number, name: NodeJS.Signals) =>
  Effect.ignore(Effect.try({ try: () => process.kill(pid, name), catch: () => undefined }))

const preferForOom = (pid: number | undefined) =>
  Effect.ignore(
    Effect.try({ try: () => writeFileSync(`/proc/${pid}/oom_score_adj`, OOM_SCORE), catch: () => undefined })
  )

/** What is left of a call, and whether nothing of it can have been overlooked. */
interface Remains {
  readonly processes: ReadonlyArray<ProcessEntry>
  readonly complete: boolean
}

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

/** Kills until nothing is left. Where others fork all the time no look is complete, and several clean ones must do. */
const sweep = Effect.fnUntraced(function* (look: Effect.Effect<Remains>) {
  let clean_looks = 0
  for (let round = 0; round < PROCESS_SWEEPS_MAX; round++) {
    const { clean, complete } = yield* killAll(look)
    clean_looks = clean ? clean_looks + 1 : 0
    if (clean_looks === PROCESS_CLEAN_LOOKS || (clean && complete)) return 0
    if (!clean) yield* Effect.sleep(PROCESS_SWEEP_PAUSE_MS)
  }
  const { processes } = yield* look
  if (processes.length > 0) yield* Effect.logWarning("processes of a tool call outlive it", processes)
  return processes.length
})

const make = ({ ownsPidNamespace }: { readonly ownsPidNamespace: boolean }): ProcessRunner["Service"] => {
  const leaders = new Map<number, string>()
  const exempt = new Set(readProcessTable().entries.map(identityOf))
  const known: KnownProcesses = { agent: process.pid, leaders, exempt, ownsPidNamespace }

  /** Known before any other call can look for what it does not know. */
  const begin = Effect.fnUntraced(function* (call_id: CallId, command: Command) {
    const running = yield* Effect.try({
      try: () => {
        const running = start(call_id, command)
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
    Effect.sync((): Remains => {
      const { entries, complete } = readProcessTable()
      return { processes: processesOf(call_id, entries, known, readMarker), complete }
    })

  const finish = Effect.fnUntraced(function* (call_id: CallId, running: Running) {
    const { child } = running
    const survivors = yield* sweep(remainsOf(call_id))
    yield* within(running.closed, PROCESS_DRAIN_MS)
    for (const stream of child.stdio) stream?.destroy()
    child.unref()
    if (child.pid !== undefined) leaders.delete(child.pid)
    return survivors
  })

  const run = Effect.fn("ProcessRunner.run")(function* (call_id: CallId, command: Command) {
    const began = yield* Clock.currentTimeMillis
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
          duration_ms: (yield* Clock.currentTimeMillis) - began,
          survivors
        }
      })
    )
  })

  return ProcessRunner.of({
    run,
    callOf: (pid) => {
      const { entries } = readProcessTable()
      return [...new Set(leaders.values())].find((call_id) =>
        processesOf(call_id, entries, known, readMarker).some((entry) => entry.pid === pid)
      )
    },
    keep: (pid) => {
      const entry = readProcess(pid)
      if (entry !== undefined) exempt.add(identityOf(entry))
    }
  })
}
