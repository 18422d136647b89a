/**
 * The identity of a process. A pid alone is not enough, since the kernel reuses it; a pid with the start time of /proc/PID/stat
 * (proc(5), field 22) names one process until the next boot.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { Effect, Option, Schema } from "effect"
import { codeOf } from "#src/shared/files/nofollow.ts"

export const ProcessIdentity = Schema.Struct({
  pid: Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 4_194_304 })),
  /** Clock ticks since boot, as the kernel prints them. */
  start: Schema.String.check(Schema.isPattern(/^[0-9]{1,20}$/u))
})
export type ProcessIdentity = typeof ProcessIdentity.Type

/** The fields of /proc/PID/stat that the runtimes decide on. */
export interface ProcessStat extends ProcessIdentity {
  readonly state: string
  readonly parent: number
  readonly group: number
  readonly session: number
}

/** Reads one stat line. The name in its second field is the process's own choice and may hold spaces and parentheses. */
export const parseStat = (text: string): ProcessStat | undefined => {
  const pid = Number.parseInt(text, 10)
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const [state, parent, group, session] = fields
  const start = fields[19]
  return Number.isNaN(pid) || state === undefined || start === undefined
    ? undefined
    : { pid, state, parent: Number(parent), group: Number(group), session: Number(session), start }
}

/** An existing file of /proc that could not be read, as for lack of descriptors. It proves nothing about any process. */
export class ProcUnreadable extends Schema.TaggedError<ProcUnreadable>()("ProcUnreadable", {
  path: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.path} cannot be read: ${String(this.cause)}`
  }
}

const attempt = <A>(read: () => A) => Effect.option(Effect.try({ try: read, catch: () => undefined }))

/** The kernel's errors for a process that is gone: before its file is open, and after. */
const ABSENT = new Set(["ENOENT", "ESRCH"])

/** The result of a read of /proc, or `undefined` when the file does not exist. */
const readProc = <A>(path: string, read: (path: string) => A): Effect.Effect<A | undefined, ProcUnreadable> =>
  Effect.try({ try: () => read(path), catch: (cause) => new ProcUnreadable({ path, cause }) }).pipe(
    Effect.catchIf(
      ({ cause }) => ABSENT.has(codeOf(cause) ?? ""),
      () => Effect.undefined
    )
  )

/** The process with this pid, a zombie too, or `undefined` when none has it. */
export const statOf = Effect.fnUntraced(function* (
  pid: number
): Effect.fn.Return<ProcessStat | undefined, ProcUnreadable> {
  const path = `/proc/${pid}/stat`
  const text = yield* readProc(path, (path) => readFileSync(path, "utf8"))
  if (text === undefined) return undefined
  return parseStat(text) ?? (yield* new ProcUnreadable({ path, cause: "its text is cut off" }))
})

const isSame = (identity: ProcessIdentity, now: ProcessStat | undefined): now is ProcessStat =>
  now !== undefined && now.start === identity.start && now.state !== "Z"

/** The condition of exactly this process. A zombie is gone: nothing of it is left but its exit code. */
export const conditionOf = (identity: ProcessIdentity): Effect.Effect<"running" | "paused" | "gone" | "unknown"> =>
  statOf(identity.pid).pipe(
    Effect.map((now) => (!isSame(identity, now) ? "gone" : now.state === "T" ? "paused" : "running")),
    Effect.orElseSucceed(() => "unknown" as const)
  )

/** The kernel's errors for a process that choird may not see, where /proc is mounted with hidepid=1. */
const HIDDEN = new Set(["EACCES", "EPERM"])

/** The process with this pid, or `undefined` when choird cannot see one. */
export const visibleStatOf = (pid: number): Effect.Effect<ProcessStat | undefined, ProcUnreadable> =>
  Effect.catchIf(
    statOf(pid),
    ({ cause }) => HIDDEN.has(codeOf(cause) ?? ""),
    () => Effect.undefined
  )

/** Every living process of this machine that choird can see. */
export const listProcesses = Effect.gen(function* () {
  const names = (yield* readProc("/proc", (path) => readdirSync(path))) ?? []
  const stats = yield* Effect.forEach(
    names.filter((name) => /^[0-9]+$/u.test(name)),
    (name) => visibleStatOf(Number(name))
  )
  return stats.filter((stat) => stat !== undefined && stat.state !== "Z") as ReadonlyArray<ProcessStat>
})

/** The working folder of a process, or `undefined` when it is gone or another user's. */
export const workingFolderOf = (pid: number): Effect.Effect<string | undefined> =>
  Effect.map(
    attempt(() => readlinkSync(`/proc/${pid}/cwd`)),
    Option.getOrUndefined
  )

/** Sends a signal to exactly this process; whether it existed. */
export const signalTo = Effect.fnUntraced(function* (identity: ProcessIdentity, signal: "SIGKILL" | "SIGSTOP") {
  const isThere = isSame(identity, yield* statOf(identity.pid))
  if (isThere) yield* attempt(() => process.kill(identity.pid, signal))
  return isThere
})

/** An id that differs after each boot; empty on a platform without one, which matches no recorded identity. */
export const bootId: Effect.Effect<string, ProcUnreadable> = Effect.map(
  readProc("/proc/sys/kernel/random/boot_id", (path) => readFileSync(path, "utf8").trim()),
  (text) => text ?? ""
)
