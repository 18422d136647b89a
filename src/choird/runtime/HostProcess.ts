/**
 * A program started on the host with data on descriptors of its own, so that no secret is in a command line or an environment. Its
 * lifetime is the caller's business: the runtimes kill whole trees, not one child. Also the command lines that start a program in its
 * control groups, and never without choird.
 */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import type { Readable, Writable } from "node:stream"
import { Deferred, Effect, Stream } from "effect"
import { type ContainerOutput, makeOutput, OUTPUT_REST_MS } from "./ContainerOutput.ts"
import { ContainerError } from "./ContainerRuntime.ts"

/** How long a helper program of a runtime may take: a change of a workspace's owner, a trial sandbox, the rules of a network. */
export const RUNTIME_COMMAND_MS_MAX = 60_000

export interface Launch {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /**
   * Each becomes a descriptor from 4 on, read to its end by the program, and descriptor 3 is the program's to write on. Without
   * it the program gets standard output and error alone.
   */
  readonly inputs?: ReadonlyArray<string | Uint8Array>
}

export interface ExitStatus {
  readonly code: number | null
  readonly signal: string | null
}

export interface HostProcess {
  readonly pid: number
  readonly exited: Effect.Effect<ExitStatus>
  /** Whether its end has not been noticed yet. Until then the kernel gives its pid to no other process. */
  readonly isUnreaped: Effect.Effect<boolean>
  readonly output: Stream.Stream<string>
  /** The text that it has written on descriptor 3 so far. */
  readonly written: Effect.Effect<string>
  /** Resolves at the first match of `pattern` in what it writes on descriptor 3. */
  awaitWritten(pattern: RegExp): Effect.Effect<string>
  /** Ends `output` even when something still holds the other end of its pipe. */
  readonly close: Effect.Effect<void>
}

/** The path for helper programs: never the operator's PATH, which root would then trust. */
export const HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/** Characters of descriptor 3 that are kept: far more than bubblewrap's status. */
const WRITTEN_CHARS_MAX = 65_536

const unavailable = (program: string, cause: unknown) =>
  new ContainerError({
    reason: "unavailable",
    problem: `${program} cannot be started: ${cause instanceof Error ? cause.message : String(cause)}`,
    fix: `Install it in one of ${HOST_PATH}`
  })

const extraPipes = ({ inputs }: Launch) =>
  inputs === undefined ? [] : ["status", ...inputs].map(() => "pipe" as const)

const spawned = (request: Launch) =>
  Effect.try({
    try: () =>
      spawn(request.program, request.args, {
        cwd: request.cwd,
        env: request.env,
        // A session of its own: a Ctrl-C in choird's terminal is not the agent's, and its group can be signalled alone.
        detached: true,
        stdio: ["ignore", "pipe", "pipe", ...extraPipes(request)]
      }),
    catch: (cause) => unavailable(request.program, cause)
  })

/** Keeps the newest text of a stream, and lets callers wait for a match in it. */
const watch = (stream: Readable | undefined) => {
  let text = ""
  const waiting = new Set<() => void>()
  stream
    ?.on("error", () => undefined)
    .on("data", (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-WRITTEN_CHARS_MAX)
      for (const look of waiting) look()
    })
  return {
    written: Effect.sync(() => text),
    awaitWritten: (pattern: RegExp) =>
      Effect.callback<string>((resume) => {
        const look = () => {
          const found = pattern.exec(text)?.[0]
          if (found !== undefined) resume(Effect.succeed(found))
        }
        waiting.add(look)
        look()
        return Effect.sync(() => waiting.delete(look))
      })
  }
}

/** Wires a child up before its first event can pass by. */
const wire = (child: ChildProcess, request: Launch, output: ContainerOutput) => {
  const exited = Deferred.makeUnsafe<ExitStatus>()
  const ready = Deferred.makeUnsafe<void, ContainerError>()
  child.once("spawn", () => Deferred.doneUnsafe(ready, Effect.void))
  child.on("error", (cause) => Deferred.doneUnsafe(ready, Effect.fail(unavailable(request.program, cause))))
  child.once("exit", (code, signal) => Deferred.doneUnsafe(exited, Effect.succeed({ code, signal })))
  child.once("close", output.end)
  for (const stream of [child.stdout, child.stderr]) {
    const reader = output.reader()
    const data = (chunk: Buffer) => {
      if (reader.data(chunk)) return
      stream?.pause()
      setTimeout(() => stream?.resume(), OUTPUT_REST_MS).unref()
    }
    stream?.on("data", data).once("end", reader.end).on("error", reader.end)
  }
  request.inputs?.forEach((input, index) => {
    // A program that ends without reading closes the pipe; its exit reports that.
    const stream = child.stdio[index + 4] as unknown as Writable
    stream.on("error", () => undefined).end(input)
  })
  const close = Effect.sync(() => {
    for (const stream of child.stdio) stream?.destroy()
    output.end()
  })
  return {
    exited: Deferred.await(exited),
    isUnreaped: Effect.map(Deferred.isDone(exited), (isDone) => !isDone),
    ready: Deferred.await(ready),
    output: output.lines,
    close
  }
}

/** Starts a program. Not interruptible: a started child is always known to its caller. */
export const launch = Effect.fn("HostProcess.launch")(function* (request: Launch) {
  const output = yield* makeOutput
  const child = yield* spawned(request)
  const { ready, ...wired } = wire(child, request, output)
  const status = watch((child.stdio as ReadonlyArray<unknown>)[3] as Readable | undefined)
  yield* ready
  return { pid: child.pid ?? 0, ...wired, ...status } satisfies HostProcess
}, Effect.uninterruptible)

/** Signals a program that has a group of its own, and all below it that stayed in the group; nothing where all have ended. */
export const signalGroup = (pid: number, signal: "SIGKILL" | "SIGSTOP"): void => {
  try {
    process.kill(-pid, signal)
  } catch {
    // It has ended by itself.
  }
}

/** Runs a helper program to its end and answers what it printed, or fails with that. Killed when it takes too long. */
export const run = Effect.fn("HostProcess.run")(function* (request: Launch) {
  const helper = yield* Effect.acquireRelease(launch(request), ({ pid, close }) =>
    Effect.andThen(
      Effect.sync(() => signalGroup(pid, "SIGKILL")),
      close
    )
  )
  const lines = yield* Stream.runCollect(helper.output)
  return { ...(yield* helper.exited), text: lines.join("\n") }
}, Effect.scoped)

/** Joins control groups, then becomes the rest. The files come first, after their count. */
const JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'

/** Ends if choird died before the kernel was asked to kill this process with it. */
const GUARD = '[ "$PPID" = "$1" ] || exit 125; shift; exec "$@"'

/** A program that joins `joins` first. */
export const joining = (joins: ReadonlyArray<string>, command: ReadonlyArray<string>): ReadonlyArray<string> =>
  joins.length === 0 ? command : ["sh", "-c", JOIN, "sh", String(joins.length), ...joins, ...command]

/** A program that the kernel kills when `parent`, which must be the one that starts it, dies. */
export const dyingWith = (
  parent: number,
  command: ReadonlyArray<string>,
  privileges: ReadonlyArray<string> = []
): ReadonlyArray<string> => [
  "setpriv",
  ...privileges,
  "--pdeathsig=KILL",
  "--",
  "sh",
  "-c",
  GUARD,
  "sh",
  String(parent),
  ...command
]
