/**
 * Who a process is. A pid alone says nothing, since the kernel hands it out again; a pid with the start time of
 * /proc/PID/stat (proc(5), field 22) names one process until the next boot.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs"
import { Effect, Option, Schema } from "effect"

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

const attempt = <A>(read: () => A) => Effect.option(Effect.try({ try: read, catch: () => undefined }))

/** The process that has this pid now, a zombie too, or `undefined`. */
export const statOf = (pid: number): Effect.Effect<ProcessStat | undefined> =>
  attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")).pipe(
    Effect.map((text) => Option.match(text, { onNone: () => undefined, onSome: parseStat }))
  )

/** Whether this very process still runs. A zombie does not: nothing of it is left but its exit code. */
export const isAlive = (identity: ProcessIdentity): Effect.Effect<boolean> =>
  Effect.map(statOf(identity.pid), (now) => now !== undefined && now.start === identity.start && now.state !== "Z")

/** Every living process of this machine that choird can see. */
export const listProcesses: Effect.Effect<ReadonlyArray<ProcessStat>> = Effect.gen(function* () {
  const names = Option.getOrElse(yield* attempt(() => readdirSync("/proc")), () => [])
  const stats = yield* Effect.forEach(
    names.filter((name) => /^[0-9]+$/u.test(name)),
    (name) => statOf(Number(name))
  )
  return stats.filter((stat) => stat !== undefined && stat.state !== "Z") as ReadonlyArray<ProcessStat>
})

/** Where a process works, or `undefined` when it is gone or another user's. */
export const workingFolderOf = (pid: number): Effect.Effect<string | undefined> =>
  Effect.map(
    attempt(() => readlinkSync(`/proc/${pid}/cwd`)),
    Option.getOrUndefined
  )

/** Sends a signal to this very process; nothing when it is gone. */
export const signalTo = (identity: ProcessIdentity, signal: "SIGKILL" | "SIGSTOP"): Effect.Effect<void> =>
  Effect.flatMap(isAlive(identity), (alive) =>
    alive ? attempt(() => process.kill(identity.pid, signal)) : Effect.void
  )

/** Differs after each boot; empty where the platform does not tell, which matches no recorded identity. */
export const bootId: Effect.Effect<string> = Effect.map(
  attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
  Option.getOrElse(() => "")
)
