/** The program choird, started by choirctl for one task on a home's database while no choird runs there. */
import { spawn } from "node:child_process"
import { extname, join } from "node:path"
import { Context, Deferred, Effect, Option, Schema, Stream } from "effect"
import { CommandFailed, EXIT, failed } from "#src/choirctl/terminal/failure.ts"
import { makeLineSplitter } from "#src/choirctl/terminal/input.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { PROGRAM_OUTPUT_CHARS_MAX } from "#src/shared/limits.ts"

/** One line of what choird reports of a task to choirctl. */
const CHOIRD_REPORT_BYTES_MAX = 1024 * 1024
/** How long a choird that does a task may take to end when choirctl is interrupted. */
const CHOIRD_TASK_STOP_MS_MAX = 10_000

/** The file that Node runs as choird: its source where choirctl runs from source, else the bundle beside this one. */
export const ChoirdProgram = Context.Reference<string>("choir/choirctl/ChoirdProgram", {
  defaultValue: () => join(packageFolder, extname(import.meta.url) === ".ts" ? "src/choird/main.ts" : "dist/choird.js")
})

/**
 * Node's flags for choird. V8 lets the garbage of young objects grow to over 100 MiB, and the old generation to four times what is alive, which is
 * most of what a busy choird would take. With these, young objects have 24 MiB, and the old generation is collected when it has grown by 30 %.
 */
export const CHOIRD_NODE_FLAGS: ReadonlyArray<string> = ["--max-semi-space-size=8", "--heap-growing-percent=30"]

/** Freed memory at the end of choird's C heap that is not given back to the system at once, in bytes. */
const CHOIRD_FREED_BYTES_MAX = 8 * 1024 * 1024
/** Buffers from this size on are given back to the system when they are freed, in bytes. */
const CHOIRD_RETURNED_BYTES_FROM = 128 * 1024

/**
 * The C library's settings for choird. By itself glibc keeps the room of freed request bodies, between smaller objects that live on, in a pool for
 * each thread.
 */
export const CHOIRD_ENVIRONMENT: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: String(CHOIRD_RETURNED_BYTES_FROM),
  MALLOC_TRIM_THRESHOLD_: String(CHOIRD_FREED_BYTES_MAX)
}

/** The report of a task that choird prints on standard error, one document a line. */
const Report = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("step"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("done"), result: Schema.Json }),
    Schema.Struct({
      type: Schema.Literal("failed"),
      error: Schema.Struct({ type: Schema.String, message: Schema.String })
    })
  ])
)
type Report = typeof Report.Type
const decodeReport = Schema.decodeUnknownOption(Report)

/** The codes of choird that mean the same for choirctl. */
const exitCode = (code: number) => (code === EXIT.again || code === EXIT.config ? code : EXIT.failed)

/** A child that is asked to stop when its scope closes, and killed when it does not. */
const startChild = Effect.fnUntraced(function* (args: ReadonlyArray<string>, stdout: number | "ignore") {
  const ended = yield* Deferred.make<number>()
  const program = yield* ChoirdProgram
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, [...CHOIRD_NODE_FLAGS, program, ...args], {
        stdio: ["ignore", stdout, "pipe"]
      })
      child.once("error", () => Deferred.doneUnsafe(ended, Effect.succeed(EXIT.failed)))
      child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code ?? EXIT.failed)))
      return child
    }),
    (child) => {
      const kill = (signal: NodeJS.Signals) =>
        Effect.andThen(
          Effect.sync(() => child.kill(signal)),
          Deferred.await(ended)
        )
      return Effect.when(
        Effect.timeoutOrElse(kill("SIGTERM"), { duration: CHOIRD_TASK_STOP_MS_MAX, orElse: () => kill("SIGKILL") }),
        Effect.map(Deferred.isDone(ended), (done) => !done)
      )
    }
  )
  return { child, ended: Deferred.await(ended) }
})

/**
 * Runs one task in a choird of its own and returns its result. A failure has choird's own message and the matching exit code.
 * When it is interrupted, it stops that choird and waits for it.
 *
 * @param onStep takes each step that choird reports. @param stdout the descriptor that takes the task's output.
 */
export const runTask = Effect.fn("choirctl.runTask")(function* <A, R>(
  home: string,
  args: ReadonlyArray<string>,
  result: Schema.Codec<A, Schema.Json>,
  onStep: (text: string) => Effect.Effect<void, never, R>,
  stdout: number | "ignore" = "ignore"
) {
  const { child, ended } = yield* startChild(["--home", home, ...args], stdout)
  const splitter = makeLineSplitter(CHOIRD_REPORT_BYTES_MAX)
  let other = ""
  let last: Report | undefined
  const take = (text: string) => {
    const report = Option.getOrUndefined(decodeReport(text))
    if (report === undefined) other = `${other}\n${text}`.slice(-PROGRAM_OUTPUT_CHARS_MAX)
    else if (report.type === "step") return onStep(report.text)
    else last = report
    return Effect.void
  }
  yield* Stream.fromAsyncIterable(child.stderr as AsyncIterable<Uint8Array>, () => undefined).pipe(
    Stream.runForEach((piece) => Effect.forEach(splitter.push(piece), ({ text }) => take(text), { discard: true })),
    Effect.ignore
  )
  const code = yield* ended
  if (last?.type === "done" && code === EXIT.done) return yield* Effect.orDie(Schema.decodeEffect(result)(last.result))
  if (last?.type !== "failed")
    return yield* failed(
      "CHOIRD_FAILED",
      `choird exited with code ${code}: ${other.trim() || "no output"}`,
      "choirctl doctor"
    )
  return yield* new CommandFailed({
    type: last.error.type,
    problem: last.error.message,
    exit_code: exitCode(code)
  })
}, Effect.scoped)
