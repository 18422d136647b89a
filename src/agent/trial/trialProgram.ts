/** The program of a trial: the task comes on standard input, and the outcome is the one line on standard output. */
import { Effect, Layer, Schema } from "effect"
import type { HttpClient } from "effect/http"
import { TRIAL_TASK_BYTES_MAX, TrialOutcome, TrialTask } from "#schema/Trial.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { runTrial, type TrialFailure } from "./Trial.ts"

/** A task that cannot be used. choird made it, so that this is a fault of Choir. */
export class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", { problem: Schema.String }) {
  override get message() {
    return `the task of the trial cannot be used: ${this.problem}`
  }
}

const readTask = Effect.tryPromise({
  try: async () => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > TRIAL_TASK_BYTES_MAX) throw new Error(`it has more than ${TRIAL_TASK_BYTES_MAX} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString("utf8")
  },
  catch: (error) => new TaskRefused({ problem: String(error) })
})

const decodeTask = Schema.decodeUnknownEffect(Schema.fromJsonString(TrialTask), { onExcessProperty: "error" })
const encodeOutcome = Schema.encodeEffect(Schema.fromJsonString(TrialOutcome))

/** @param root an empty folder in place of the workspace. */
export const trialProgram = (
  root: string,
  modelHttp: Layer.Layer<HttpClient.HttpClient>
): Effect.Effect<void, TaskRefused | TrialFailure> =>
  Effect.gen(function* () {
    const text = yield* readTask
    const task = yield* Effect.mapError(decodeTask(text), ({ message }) => new TaskRefused({ problem: message }))
    const outcome = yield* runTrial(task, { root, model: Layer.provide(Llm.layer, modelHttp) })
    const line = yield* Effect.orDie(encodeOutcome(outcome))
    yield* Effect.sync(() => process.stdout.write(`${line}\n`))
  }).pipe(Effect.provide(TokenCount.layer))
