/**
 * SkillReplays of skills, each in a process of its own that may read the agent's program and nothing else, and write nothing: Node's permission model
 * refuses it files, processes and threads. What it has of the network are the models of its task.
 */
import { spawn } from "node:child_process"
import { dirname } from "node:path"
import { Context, Deferred, Effect, FileSystem, Layer, Result, Schema } from "effect"
import { TRIAL_COMMAND, TrialOutcome, TrialTask } from "#schema/Trial.ts"
import { agentPrograms } from "#src/choird/runtime/AgentCommand.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The longest trial; the limits of the task's jobs end most of them earlier. */
export const TRIAL_MS_MAX = 600_000
/** Bytes of an outcome. */
const OUTCOME_BYTES_MAX = 1024 * 1024
/** Characters of the reason why there is no outcome. */
const REASON_CHARS_MAX = 500
/** The agent looks whether it is there, to name it to models. */
const SHELL = "/bin/bash"
/** The heap of a trial, in MiB. */
const HEAP_MIB_MAX = 256

/** A trial that gave no outcome. */
export class TrialFailed extends Schema.TaggedError<TrialFailed>()("TrialFailed", { reason: Schema.String }) {
  override get message() {
    return `the trial gave no outcome: ${this.reason}`
  }
}

/** Runs trials. */
export class SkillReplays extends Context.Service<
  SkillReplays,
  {
    /** Runs a task to its end, at most TRIAL_MS_MAX; an interrupt ends its process. */
    run(task: TrialTask): Effect.Effect<TrialOutcome, TrialFailed>
  }
>()("choir/choird/SkillReplays") {
  static readonly layer = Layer.effect(
    SkillReplays,
    Effect.suspend(() => make)
  )
}

const encodeTask = Schema.encodeEffect(Schema.fromJsonString(TrialTask))
const decodeOutcome = Schema.decodeUnknownEffect(Schema.fromJsonString(TrialOutcome))

const failed = (reason: string) => new TrialFailed({ reason: firstPart(reason, REASON_CHARS_MAX) })

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program with a text as its standard input; the process ends with the scope. */
const runProgram = Effect.fnUntraced(function* (node: string, args: ReadonlyArray<string>, input: string) {
  const ended = yield* Deferred.make<Result.Result<Ended, string>>()
  const finish = (result: Result.Result<Ended, string>) => Deferred.doneUnsafe(ended, Effect.succeed(result))
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(node, args, { env: {}, stdio: ["pipe", "pipe", "pipe"], detached: true })
      let stdout = ""
      let stderr = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        stdout += text
        if (stdout.length <= OUTCOME_BYTES_MAX) return
        finish(Result.fail(`it printed more than ${OUTCOME_BYTES_MAX} bytes`))
        child.kill("SIGKILL")
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        stderr = (stderr + text).slice(-REASON_CHARS_MAX)
      })
      child.once("error", ({ message }) => finish(Result.fail(message)))
      child.once("close", (code) => finish(Result.succeed({ code, stdout, stderr })))
      child.stdin.on("error", () => undefined)
      child.stdin.end(input)
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  return yield* Effect.flatMap(Deferred.await(ended), (result) =>
    Result.isSuccess(result) ? Effect.succeed(result.success) : Effect.fail(failed(result.failure))
  )
}, Effect.scoped)

/** A trial asks its model. Node 25 and later also keep a program with permissions from the network; older ones do not know the flag. */
const ASKS_FOR_THE_NETWORK = process.allowedNodeEnvironmentFlags.has("--allow-net") ? ["--allow-net"] : []

const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return SkillReplays.of({
    run: Effect.fn("SkillReplays.run")(
      function* (task) {
        const { node, program } = yield* Effect.mapError(agentPrograms, ({ message }) => failed(message))
        const root = yield* Effect.orDie(fs.makeTempDirectoryScoped({ prefix: "choir-trial-" }))
        const text = yield* Effect.orDie(encodeTask(task))
        const permissions = [
          "--permission",
          ...ASKS_FOR_THE_NETWORK,
          ...[dirname(program), root, SHELL].map((path) => `--allow-fs-read=${path}`)
        ]
        const args = [...permissions, `--max-old-space-size=${HEAP_MIB_MAX}`, program, TRIAL_COMMAND, root]
        const { code, stderr, stdout } = yield* runProgram(node, args, text)
        if (code !== 0)
          return yield* failed(stderr.trim() === "" ? `it ended with ${code ?? "a signal"}` : stderr.trim())
        return yield* Effect.mapError(decodeOutcome(stdout), ({ message }) => failed(message))
      },
      Effect.scoped,
      Effect.timeoutOrElse({
        duration: TRIAL_MS_MAX,
        orElse: () => Effect.fail(failed(`it did not end within ${TRIAL_MS_MAX / 1000} s`))
      })
    )
  })
})
