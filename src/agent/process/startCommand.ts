/**
 * Starts a command of a tool: in a session of its own, apart from all others, with nothing of the agent's environment but its time zone,
 * and heard from its first event on.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { accessSync, closeSync, constants, openSync, writeFileSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { Writable } from "node:stream"
import { Deferred, Effect, Redacted, Schema } from "effect"
import type { CallId } from "#schema/Ids.ts"
import { codeOf } from "#src/shared/files/nofollow.ts"
import { APART_FOLDERS_MAX } from "#src/shared/program/apartProgram.ts"
import { type Apart, apartFrom, canRun, limitsWrites } from "#src/shared/program/callsApart.ts"
import { OutputRing } from "./OutputRing.ts"
import { CALL_ID, CALL_MARKER } from "./ProcessTable.ts"

/** The kept part of one output stream of a process while it runs (R48). */
export const EXEC_OUTPUT_BYTES_MAX = 1024 * 1024

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
/** The kernel takes a tool's memory before the agent's (D13). */
const OOM_SCORE = "1000"
/** A folder that anything of the agent may write into; a program with secrets reads no configuration from it. */
const HOME = "/tmp"
const NO_HOME = "/nonexistent"
/** The folders that every command can write to: temporary files, and devices such as /dev/null. */
const SHARED_FOLDERS = [HOME, "/dev"]
/** Whether every command can write to a folder, whatever it is kept to. */
export const isShared = (path: string): boolean => SHARED_FOLDERS.some((folder) => `${path}/`.startsWith(`${folder}/`))
/** Folders that a command names. */
export const FOLDERS_MAX = APART_FOLDERS_MAX - SHARED_FOLDERS.length
const SECRETS_FD = 3

export interface Command {
  /** The path of a program, or its name in PATH. */
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly timeout_ms: number
  /** Written to standard input, which is closed afterwards; without it the input is empty. */
  readonly stdin?: string | Uint8Array | Redacted.Redacted
  /** Beyond PATH, HOME, LANG, TERM, TZ, {@link CALL_ID} and {@link CALL_MARKER}; of the agent's own environment the time zone alone is handed on. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Written to a descriptor of its own, whose number is in CHOIR_SECRETS_FD, and closed afterwards. It is a socket, which nobody
   * else can open through /proc. HOME is then a folder that does not exist.
   */
  readonly secrets?: Redacted.Redacted
  /** Takes the standard output as it comes, and has to bound what it keeps; the result then holds none of it. */
  readonly reads?: (chunk: Buffer) => void
  /** Whether it can open no socket, nor anything that it starts. */
  readonly offline?: boolean
  /**
   * The folders below which it can write, with {@link SHARED_FOLDERS}, and nowhere else: at most {@link FOLDERS_MAX}. Where the kernel cannot keep it
   * to them it is not started.
   */
  readonly writes?: ReadonlyArray<string>
  /** The kept part of its standard output, where it is not {@link EXEC_OUTPUT_BYTES_MAX}. */
  readonly stdout_bytes_max?: number
}

export class CommandNotStarted extends Schema.TaggedError<CommandNotStarted>()("CommandNotStarted", {
  command: Schema.String,
  code: Schema.String
}) {
  override get message() {
    return `${this.command} could not be started (${this.code}). Does it exist, and is it executable?`
  }
}

interface Exited {
  readonly exit_code?: number
  readonly signal?: NodeJS.Signals
}

/** A command from its start to the end of its output. */
export interface Running {
  readonly child: ChildProcess
  readonly marker: string
  readonly started: Deferred.Deferred<void, CommandNotStarted>
  readonly exited: Deferred.Deferred<Exited>
  /** Done when the process exited and its output has arrived whole. */
  readonly closed: Deferred.Deferred<void>
  readonly stdout: OutputRing
  readonly stderr: OutputRing
}

export const notStarted = ({ command }: Command, error: unknown): CommandNotStarted =>
  new CommandNotStarted({ command, code: codeOf(error) ?? "unknown" })

/** Whether others could find a secret in the memory of its processes. */
export const holdsSecrets = ({ secrets, stdin }: Command): boolean =>
  secrets !== undefined || Redacted.isRedacted(stdin)

/** The time zone that choird gave the agent, so that commands have the same day as its models. */
const timeZone = () => {
  const { TZ } = process.env
  return TZ === undefined ? {} : { TZ }
}

/** The path of a program, which the program that starts it apart needs. Throws the system's error where it cannot be run. */
const pathOf = ({ command, cwd }: Command): string => {
  const named = command.includes("/") ? resolve(cwd, command) : undefined
  const path =
    named ??
    PATH.split(delimiter)
      .map((folder) => join(folder, command))
      .find(canRun)
  if (path === undefined) throw Object.assign(new Error("no such program"), { code: "ENOENT" })
  accessSync(path, constants.X_OK)
  return path
}

/** Opens the folders that a command can write to, for it alone. */
const opened = <A>(writes: Command["writes"], use: (folders: ReadonlyArray<number>) => A): A => {
  const folders: Array<number> = []
  try {
    for (const path of writes === undefined ? [] : [...SHARED_FOLDERS, ...writes])
      folders.push(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY))
    return use(folders)
  } finally {
    folders.forEach(closeSync)
  }
}

/** The variables that tell a process of a command from all others. */
type Marks = Readonly<Record<typeof CALL_ID | typeof CALL_MARKER, string>>

const launchWith = (marks: Marks, command: Command, apart: Apart, folders: ReadonlyArray<number>): ChildProcess => {
  const { args, cwd, env, offline = false, secrets, stdin, writes } = command
  const isLimited = writes !== undefined
  if (isLimited && secrets !== undefined) throw new Error("a command with secrets is not kept to folders")
  if ((offline && apart.program === undefined) || (isLimited && !limitsWrites(apart)))
    throw Object.assign(new Error("this kernel cannot keep a command apart like that"), { code: "ENOTSUP" })
  const path = pathOf(command)
  const [program = path, ...rest] = [...apartFrom(apart, { folders: isLimited, offline }), path, ...args]
  const home = secrets === undefined ? { HOME } : { HOME: NO_HOME, CHOIR_SECRETS_FD: String(SECRETS_FD) }
  return spawn(program, rest, {
    cwd,
    env: { PATH, LANG: "C.UTF-8", TERM: "dumb", ...timeZone(), ...home, ...env, ...marks },
    // A session of its own, to tell the whole group from the agent's.
    detached: true,
    stdio: [
      stdin === undefined ? "ignore" : "pipe",
      "pipe",
      "pipe",
      // A descriptor that is not open in the child, before those of its folders.
      ...(secrets === undefined ? (isLimited ? ["ignore" as const] : []) : ["pipe" as const]),
      ...folders
    ]
  })
}

const launch = (marks: Marks, command: Command, apart: Apart): ChildProcess =>
  opened(command.writes, (folders) => launchWith(marks, command, apart, folders))

/** A command that does not read what it is given closes it; that is its own affair. */
const give = (stream: unknown, content: Command["stdin"]) => {
  if (!(stream instanceof Writable)) return
  stream.on("error", () => undefined)
  stream.end(Redacted.isRedacted(content) ? Redacted.value(content) : content)
}

/** Throws what the system says of a command that it cannot even try. Listens from the first moment on: no event waits for a listener. */
export const startCommand = (call_id: CallId, command: Command, apart: Apart): Running => {
  const marker = randomUUID()
  const child = launch({ [CALL_ID]: call_id, [CALL_MARKER]: marker }, command, apart)
  const running: Running = {
    child,
    marker,
    started: Deferred.makeUnsafe(),
    exited: Deferred.makeUnsafe(),
    closed: Deferred.makeUnsafe(),
    stdout: new OutputRing(command.stdout_bytes_max ?? EXEC_OUTPUT_BYTES_MAX),
    stderr: new OutputRing(EXEC_OUTPUT_BYTES_MAX)
  }
  child.stdout?.on("data", command.reads ?? ((chunk: Buffer) => running.stdout.push(chunk)))
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
    if (command.secrets !== undefined) give(child.stdio[SECRETS_FD], command.secrets)
  }
  return running
}

/** Best effort: the kernel takes it before the agent. */
export const preferForOom = (pid: number | undefined) =>
  Effect.ignore(
    Effect.try({ try: () => writeFileSync(`/proc/${pid}/oom_score_adj`, OOM_SCORE), catch: () => undefined })
  )
