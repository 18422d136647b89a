/**
 * A lock that one process holds at a time: flock(2) on a file that only its owner can open. The kernel takes it back with the process, so
 * that neither a kill, a reused pid nor a reboot leaves it behind, and no two can hold it. Unlike a socket's abstract name it is out of
 * reach of other users and of sandboxes, which do not see the folder that it is in.
 *
 * Node cannot call flock. The program of that name locks the open file that it is handed, which stays locked for as long as this process
 * keeps its descriptor. The holder removes the file when it is done; a process that locked a removed file starts over with the new one.
 */
import { spawn } from "node:child_process"
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync
} from "node:fs"
import { Effect, Schedule, Schema } from "effect"
import { codeOf } from "./nofollow.ts"

/** How often a process that waits for a lock tries again. */
const LOCK_TRY_MS = 50
/** How often a holder checks that its file is still in its place. */
const LOCK_CHECK_MS = 2000
/** A process that only asks who holds a lock has it for a moment itself; a holder to be waits that long. */
const LOCK_ASKED_MS_MAX = 1000
const OWNER_ONLY = 0o600
/** The exit code of flock for a lock that another process holds. */
const CONFLICT = 1
/** The descriptor as flock sees it: the first after the three standard ones. */
const HANDED = 3

/** Another process holds the lock. */
export class LockTaken extends Schema.TaggedError<LockTaken>()("LockTaken", {
  path: Schema.String,
  pid: Schema.NullOr(Schema.Natural)
}) {
  override get message() {
    return `${this.pid === null ? "another process" : `process ${this.pid}`} holds ${this.path}`
  }
}

/** The system refuses the lock file. */
export class LockUnusable extends Schema.TaggedError<LockUnusable>()("LockUnusable", {
  path: Schema.String,
  problem: Schema.String
}) {
  override get message() {
    return `${this.path} cannot be locked: ${this.problem}`
  }
}

/** The lock file was removed or replaced while it was held, so that another process may hold the lock as well. */
export class LockLost extends Schema.TaggedError<LockLost>()("LockLost", { path: Schema.String }) {
  override get message() {
    return `${this.path} was removed or replaced while it was locked`
  }
}

export interface HeldLock {
  /** Fails when the lock is lost; never returns. A holder ends with it. */
  readonly lost: Effect.Effect<never, LockLost>
}

/** The holder of a lock. */
export interface LockHolder {
  readonly held: boolean
  /** The pid that the holder wrote. It may be reused by the time that it is read. */
  readonly pid: number | null
}

const unusable = (path: string) => (cause: unknown) => {
  const problem = codeOf(cause) === "ELOOP" ? "it is a symbolic link" : String(cause).replace(/^Error: /u, "")
  return new LockUnusable({ path, problem })
}

const open = (path: string, flags: number) =>
  Effect.try({
    try: () => openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, OWNER_ONLY),
    catch: unusable(path)
  })

const close = (descriptor: number) => Effect.sync(() => closeSync(descriptor))

/** Locks an open file; answers whether it could. */
const flock = (path: string, descriptor: number, mode: "-s" | "-x") =>
  Effect.callback<boolean, LockUnusable>((resume) => {
    const fail = (problem: string) => resume(Effect.fail(new LockUnusable({ path, problem })))
    const child = spawn("flock", [mode, "-n", String(HANDED)], { stdio: ["ignore", "ignore", "pipe", descriptor] })
    let words = ""
    child.stderr?.on("data", (bytes: Buffer) => (words += bytes.toString()))
    child.once("error", (error: NodeJS.ErrnoException) =>
      fail(
        error.code === "ENOENT"
          ? "the program flock is not in PATH (apt install util-linux, or correct PATH)"
          : error.message
      )
    )
    child.once("close", (code, signal) => {
      if (code === 0 || (code === CONFLICT && words === "")) resume(Effect.succeed(code === 0))
      else fail(`flock ended with ${code ?? signal}: ${words.trim()}`)
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Whether a path still leads to the file of a descriptor. */
const leadsTo = (path: string, descriptor: number) => {
  const there = statSync(path, { throwIfNoEntry: false, bigint: true })
  const own = fstatSync(descriptor, { bigint: true })
  return there?.ino === own.ino && there.dev === own.dev
}

const readPid = (descriptor: number) => {
  const digits = /^\d{1,10}$/u.exec(readFileSync(descriptor, "latin1").trim())?.[0]
  return digits === undefined ? null : Number(digits)
}

/** The lock itself does not depend on it: a full disk leaves the holder unnamed. */
const writePid = (descriptor: number) =>
  Effect.ignore(
    Effect.try(() => {
      ftruncateSync(descriptor)
      writeSync(descriptor, `${process.pid}\n`, 0)
    })
  )

/** Locks the file that the path leads to at the end, not one that its last holder has just removed. */
const take = (path: string): Effect.Effect<number, LockTaken | LockUnusable> =>
  Effect.acquireUseRelease(
    open(path, constants.O_RDWR | constants.O_CREAT),
    Effect.fnUntraced(function* (descriptor) {
      const locked = yield* flock(path, descriptor, "-x")
      if (!locked) return yield* new LockTaken({ path, pid: readPid(descriptor) })
      if (!leadsTo(path, descriptor)) return undefined
      yield* writePid(descriptor)
      return descriptor
    }),
    (descriptor, exit) => (exit._tag === "Success" && exit.value !== undefined ? Effect.void : close(descriptor))
  ).pipe(Effect.flatMap((descriptor) => (descriptor === undefined ? take(path) : Effect.succeed(descriptor))))

const release = (path: string) => (descriptor: number) =>
  Effect.sync(() => {
    try {
      if (leadsTo(path, descriptor)) unlinkSync(path)
    } catch {
      // An unlocked file that stays is as good as none.
    }
    closeSync(descriptor)
  })

const watch = (path: string, descriptor: number) =>
  Effect.sync(() => leadsTo(path, descriptor)).pipe(
    Effect.delay(LOCK_CHECK_MS),
    Effect.repeat({ while: (there) => there }),
    Effect.andThen(new LockLost({ path }))
  )

/** Holds a lock until the scope closes. Waits for another holder, at most `wait_ms`. The folder of the file must be there. */
export const holdLockFile = (path: string, wait_ms: number = LOCK_ASKED_MS_MAX) => {
  const schedule = Schedule.spaced(LOCK_TRY_MS).pipe(Schedule.upTo({ duration: wait_ms }))
  const taken = Effect.retry(take(path), { while: ({ _tag }) => _tag === "LockTaken", schedule })
  return Effect.map(Effect.acquireRelease(taken, release(path), { interruptible: true }), (descriptor): HeldLock => ({
    lost: watch(path, descriptor)
  }))
}

/** The present holder of a lock. One that cannot be asked counts as held. */
export const lockHolder = (path: string): Effect.Effect<LockHolder> =>
  Effect.acquireUseRelease(
    open(path, constants.O_RDONLY),
    (descriptor) =>
      Effect.map(flock(path, descriptor, "-s"), (free): LockHolder =>
        free ? { held: false, pid: null } : { held: true, pid: readPid(descriptor) }
      ),
    close
  ).pipe(Effect.catch(({ problem }) => Effect.succeed({ held: !/\bENOENT\b|\bENOTDIR\b/u.test(problem), pid: null })))
