/** Choir's programs as child processes, for what brings a whole installation up on one machine: the demo and `npm start`. */
import { spawn } from "node:child_process"
import { openSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Schedule, Schema } from "effect"
import { PROGRAM_OUTPUT_CHARS_MAX } from "#src/shared/limits.ts"

/** The pause between two looks at whether a child program is ready. */
const PROGRAM_READY_MS = 50
/** Looks at whether a child program is ready; with their pauses about a minute. */
const PROGRAM_READY_ATTEMPTS_MAX = 1200
/** How long a child program may take to stop before it is killed. */
const PROGRAM_STOP_MS_MAX = 15_000

/** The folder that holds `dist/` and `docker/`. */
export const ROOT = join(import.meta.dirname, "..")

/** A program ended, or never became ready. */
export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  program: Schema.String,
  output: Schema.String
}) {
  override get message() {
    return `${this.program} failed:\n${this.output.trim()}`
  }
}

/** A running program. */
export interface Program {
  readonly pid: number
  readonly exited: Effect.Effect<number>
  /** Its last output, for a message about its failure. */
  output(): string
  signal(signal: NodeJS.Signals): Effect.Effect<void>
}

/** Starts `dist/<name>.js`; the end of the scope asks it to stop, waits, and then kills it. */
export const program = Effect.fnUntraced(function* (name: string, args: ReadonlyArray<string>, logFile?: string) {
  const exited = yield* Deferred.make<number>()
  let output = ""
  const sink = logFile === undefined ? "pipe" : openSync(logFile, "a", 0o600)
  const child = spawn(process.execPath, [join(ROOT, `dist/${name}.js`), ...args], {
    stdio: ["ignore", sink, sink],
    // Ctrl-C is for the person's own program; this one is stopped in order.
    detached: true
  })
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-PROGRAM_OUTPUT_CHARS_MAX)
  }
  child.stdout?.on("data", keep)
  child.stderr?.on("data", keep)
  child.on("error", (error) => {
    output += error.message
    Deferred.doneUnsafe(exited, Effect.succeed(1))
  })
  child.on("exit", (code) => Deferred.doneUnsafe(exited, Effect.succeed(code ?? 1)))
  const running: Program = {
    pid: child.pid ?? 0,
    exited: Deferred.await(exited),
    output: () => output,
    signal: (signal) => Effect.sync(() => void child.kill(signal))
  }
  yield* Effect.addFinalizer(() =>
    Effect.andThen(running.signal("SIGTERM"), running.exited).pipe(
      Effect.timeoutOrElse({
        duration: PROGRAM_STOP_MS_MAX,
        orElse: () => Effect.andThen(running.signal("SIGKILL"), running.exited)
      })
    )
  )
  return running
})

/** Waits until `probe` succeeds, or fails with what the program printed when it ends first or never gets there. */
export const ready = <A, E, R>(name: string, running: Program, probe: Effect.Effect<A, E, R>) => {
  const failed = () => new ProgramFailed({ program: name, output: running.output() })
  return Effect.raceFirst(
    Effect.retry(probe, Schedule.max([Schedule.spaced(PROGRAM_READY_MS), Schedule.recurs(PROGRAM_READY_ATTEMPTS_MAX)])),
    Effect.andThen(running.exited, Effect.fail("exited"))
  ).pipe(Effect.mapError(failed))
}

const Announced = Schema.fromJsonString(Schema.Struct({ endpoint: Schema.String }))

/** Starts the offline model and answers its endpoint. */
export const offlineModel = Effect.fnUntraced(function* (port: number) {
  const running = yield* program("offline-model", ["--port", String(port)])
  const announced = Effect.suspend(() => Schema.decodeEffect(Announced)(running.output().split("\n")[0] ?? ""))
  const { endpoint } = yield* ready("the offline model", running, announced)
  return endpoint
})

/** A run of choirctl that ended. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs choirctl to its end; `onLine` sees its standard output as it comes. */
export const choirctl = (home: string, args: ReadonlyArray<string>, onLine: (line: string) => void = () => undefined) =>
  Effect.callback<Ran>((resume) => {
    const child = spawn(process.execPath, [join(ROOT, "dist/choirctl.js"), "--home", home, ...args], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    let stdout = ""
    let stderr = ""
    let partial = ""
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString()
      const lines = (partial + chunk.toString()).split("\n")
      partial = lines.pop() ?? ""
      for (const line of lines) onLine(line)
    })
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    child.on("close", (code) => resume(Effect.succeed({ code: code ?? 1, stdout, stderr })))
    return Effect.sync(() => void child.kill())
  })

/** Runs choirctl with the person's own terminal. */
export const choirctlHere = (home: string, args: ReadonlyArray<string>) =>
  Effect.callback<number>((resume) => {
    const child = spawn(process.execPath, [join(ROOT, "dist/choirctl.js"), "--home", home, ...args], {
      stdio: "inherit"
    })
    child.on("close", (code) => resume(Effect.succeed(code ?? 1)))
    return Effect.sync(() => void child.kill())
  })

/** One process as /proc describes it; nothing if it exited while the list was made. */
const processOf = (pid: string) => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])
    return [{ pid: Number(pid), parent, command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") }]
  } catch {
    return []
  }
}

/** The processes of agents themselves, not of what contains them, somewhere below a choird. */
export const agentsBelow = (choird: number): ReadonlyArray<number> => {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .flatMap(processOf)
  const below = (pid: number): boolean => {
    const parent = processes.find((each) => each.pid === pid)?.parent ?? 0
    return parent === choird || (parent > 1 && below(parent))
  }
  return processes
    .filter(({ command, pid }) => /node\S* .*choir-agent\.js /u.test(command) && below(pid))
    .map(({ pid }) => pid)
}

/** The only agent of a choird. */
export const agentBelow = (choird: number): number | undefined => agentsBelow(choird).at(-1)
