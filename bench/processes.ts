/** The processes that the step benchmarks are measured between: the model, and the loop without an agent. */
import { fork } from "node:child_process"
import { join } from "node:path"
import { Deferred, Effect, type Scope } from "effect"
import type { Run } from "./model.ts"
import type { RawOrder } from "./raw.ts"

const start = (program: string, onMessage: (message: unknown) => void) =>
  Effect.acquireRelease(
    Effect.sync(() => fork(join(import.meta.dirname, program)).on("message", onMessage)),
    (child) => Effect.sync(() => child.kill())
  )

export interface Model {
  /** The `endpoint` of config.json. */
  readonly url: string
  /** The run of this key, once it has ended; each is handed out once. */
  run(key: string): Effect.Effect<Run>
}

export const startModel: Effect.Effect<Model, never, Scope.Scope> = Effect.gen(function* () {
  const listening = yield* Deferred.make<string>()
  const runs = new Map<string, Deferred.Deferred<Run>>()
  const slot = (key: string) => {
    const found = runs.get(key) ?? Deferred.makeUnsafe<Run>()
    runs.set(key, found)
    return found
  }
  yield* start("model.ts", (message) => {
    const told = message as Run | { readonly url: string }
    if ("url" in told) Deferred.doneUnsafe(listening, Effect.succeed(told.url))
    else Deferred.doneUnsafe(slot(told.key), Effect.succeed(told))
  })
  return {
    url: yield* Deferred.await(listening),
    run: (key) =>
      Effect.ensuring(
        Effect.suspend(() => Deferred.await(slot(key))),
        Effect.sync(() => runs.delete(key))
      )
  }
})

/** Starts the loop; what it gives carries out one order. */
export const startRaw = Effect.gen(function* () {
  let done = yield* Deferred.make<void>()
  const child = yield* start("raw.ts", () => Deferred.doneUnsafe(done, Effect.void))
  return (order: RawOrder) =>
    Effect.suspend(() => {
      done = Deferred.makeUnsafe()
      child.send(order)
      return Deferred.await(done)
    })
})
