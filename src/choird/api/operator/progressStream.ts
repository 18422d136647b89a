/** The progress of long work for an operator: its steps as they happen, then how it ended. */
import { Effect, Queue, Stream } from "effect"

/** Steps that wait for a slow reader; with more, the work waits. */
const STEPS_MAX = 16

interface Step {
  readonly type: "step"
  readonly text: string
}

/** Runs `work` once somebody reads. Its answer is the last item. Work whose client has left is interrupted. */
export const progressStream = <Last>(work: (step: (text: string) => Effect.Effect<void>) => Effect.Effect<Last>) =>
  Stream.callback<Step | Last>(
    Effect.fnUntraced(function* (queue) {
      const offer = (item: Step | Last) => Effect.asVoid(Queue.offer(queue, item))
      yield* offer(yield* work((text) => offer({ type: "step", text })))
      yield* Queue.end(queue)
    }),
    { bufferSize: STEPS_MAX, strategy: "suspend" }
  )
