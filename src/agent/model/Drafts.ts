/** The beginning of edge's answer on its way to the person who waits, while the model still writes it. Nothing of it is kept or sent again. */
import { Context, Effect, Layer, Queue } from "effect"
import { type Draft, DRAFT_CHARS_MAX } from "#schema/AgentApi.ts"
import { restarted } from "#src/shared/background.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import type { Spoken } from "./Llm.ts"

/** The interval between two drafts (docs/protocol.md, REPORT_STATUS). */
export const DRAFT_INTERVAL_MS = 400

/** Sends drafts. */
export class Drafts extends Context.Service<
  Drafts,
  {
    /** Follows an answer or a report as it is written. The newest of it is sent, at most one draft in DRAFT_INTERVAL_MS. */
    follow(about: Omit<Draft, "text">): (step: Spoken) => Effect.Effect<void>
    /** Sends no draft any more of what was written: the answer itself is on its way. */
    readonly clear: Effect.Effect<void>
  }
>()("choir/agent/Drafts") {
  static readonly layer = Layer.effect(
    Drafts,
    Effect.suspend(() => make())
  )
}

const make = Effect.fnUntraced(function* () {
  const plane = yield* ControlPlane
  const wake = yield* Queue.sliding<void>(1)
  let newest: Draft | undefined

  yield* Effect.gen(function* () {
    yield* Queue.take(wake)
    const draft = newest
    newest = undefined
    if (draft === undefined) return
    // A draft that is lost is followed by a longer one, and the answer comes in any case.
    yield* Effect.ignore(plane.report({ draft }))
    yield* Effect.sleep(DRAFT_INTERVAL_MS)
  }).pipe(Effect.forever, restarted("the sending of drafts"), Effect.forkScoped)

  return Drafts.of({
    follow: (about) => {
      let text = ""
      return (step) =>
        Effect.sync(() => {
          if (step.type === "begin") {
            text = ""
            newest = undefined
          }
          if (step.type !== "text") return
          text = `${text}${step.text}`.slice(0, DRAFT_CHARS_MAX)
          if (text.trim() === "") return
          newest = { ...about, text: text.toWellFormed() }
          Queue.offerUnsafe(wake, undefined)
        })
    },
    clear: Effect.sync(() => void (newest = undefined))
  })
})
