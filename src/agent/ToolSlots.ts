/** How many tools of an agent run at once, and the bounded queue behind them (D1). */
import { Deferred, Effect, Schema } from "effect"

/** A tool did not get to run. */
export class SlotRefused extends Schema.TaggedError<SlotRefused>()("SlotRefused", {
  /** `full`: as many wait as may; `late`: no tool ended in time. */
  reason: Schema.Literals(["full", "late"]),
  running_max: Schema.Natural,
  /** How long it was ready to wait, in milliseconds. */
  waited_ms: Schema.Natural
}) {
  override get message() {
    return this.reason === "full"
      ? `TOOLS_BUSY: ${this.running_max} tools run and too many wait already. Try again when some have ended`
      : `none of the ${this.running_max} tools that run ended within ${this.waited_ms} ms`
  }
}

export interface ToolSlots {
  /** Runs `use` in its turn, first come, first served, after waiting at most `wait_ms` milliseconds. */
  run<A, E, R>(wait_ms: number, use: Effect.Effect<A, E, R>): Effect.Effect<A, E | SlotRefused, R>
}

type Turn = Deferred.Deferred<void>

export const makeToolSlots = (running_max: number, queued_max: number): ToolSlots => {
  let running = 0
  const waiting: Array<Turn> = []

  /** Whoever waited leaves the queue; whoever had its turn hands it on. */
  const leave = (turn: Turn) => {
    const place = waiting.indexOf(turn)
    if (place >= 0) {
      waiting.splice(place, 1)
      return
    }
    const next = waiting.shift()
    if (next === undefined) running--
    else Deferred.doneUnsafe(next, Effect.void)
  }

  const refused = (reason: SlotRefused["reason"], waited_ms: number) =>
    new SlotRefused({ reason, running_max, waited_ms: Math.max(0, Math.trunc(waited_ms)) })

  return {
    run: <A, E, R>(wait_ms: number, use: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore): Effect.Effect<A, E | SlotRefused, R> => {
        const isFree = running < running_max
        if (!isFree && waiting.length >= queued_max) return Effect.fail(refused("full", 0))
        const turn: Turn = Deferred.makeUnsafe()
        if (isFree) running++
        else waiting.push(turn)
        const wait = Effect.timeoutOrElse(Deferred.await(turn), {
          duration: wait_ms,
          orElse: () => Effect.fail(refused("late", wait_ms))
        })
        return restore(isFree ? use : Effect.andThen(wait, use)).pipe(Effect.ensuring(Effect.sync(() => leave(turn))))
      })
  }
}
