/** The slots in which an agent's tools run, and the bounded queue for them (D1). */
import { Context, Deferred, Effect, Layer, Schema } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { TOOLS_IN_FLIGHT_MAX } from "#src/agent/control/choirdConnections.ts"

/** A tool got no slot. */
export class SlotRefused extends Schema.TaggedError<SlotRefused>()("SlotRefused", {
  /** `full`: as many wait as may; `late`: no tool ended in time. */
  reason: Schema.Literals(["full", "late"]),
  running_max: Schema.Natural,
  /** How long it was ready to wait, in milliseconds. */
  waited_ms: Schema.Natural
}) {
  override get message() {
    return this.reason === "full"
      ? `TOOLS_BUSY: ${this.running_max} tools are running and too many are already waiting. Try again when some have ended`
      : `none of the ${this.running_max} tools that run ended within ${this.waited_ms} ms`
  }
}

/** Tools that jobs leave to edge of those that run at once, so that it talks while they work. */
export const TOOLS_RESERVED_FOR_EDGE = 2
/** Tools of edge, and tools of jobs, that wait for a slot; the next one is refused. */
export const TOOLS_QUEUED_MAX = 64

/** The slots in which tools run. */
export class ToolSlots extends Context.Service<
  ToolSlots,
  {
    /**
     * Runs `use` in a slot, after waiting at most `wait_ms` milliseconds. First come, first served, except that jobs leave `reserved` slots
     * to edge, which talks, and that each of the two has a queue of its own length.
     */
    run<A, E, R>(lane: LaneId, wait_ms: number, use: Effect.Effect<A, E, R>): Effect.Effect<A, E | SlotRefused, R>
  }
>()("choir/agent/ToolSlots") {
  static readonly layer = Layer.sync(ToolSlots, () =>
    makeToolSlots({
      running_max: TOOLS_IN_FLIGHT_MAX,
      reserved: TOOLS_RESERVED_FOR_EDGE,
      queued_max: TOOLS_QUEUED_MAX
    })
  )
}

interface SlotLimits {
  readonly running_max: number
  /** Of these, slots that only edge gets. */
  readonly reserved: number
  /** Calls of edge, and calls of jobs, that wait. */
  readonly queued_max: number
}

interface Turn {
  readonly isEdge: boolean
  readonly come: Deferred.Deferred<void>
}

export const makeToolSlots = ({ queued_max, reserved, running_max }: SlotLimits): ToolSlots["Service"] => {
  const running = new Set<Turn>()
  const waiting = new Set<Turn>()

  const count = (turns: Iterable<Turn>, isEdge: boolean) => [...turns].filter((turn) => turn.isEdge === isEdge).length
  const mayRun = ({ isEdge }: Turn) =>
    running.size < running_max && (isEdge || count(running, false) < running_max - reserved)

  const admit = () => {
    for (const turn of waiting) {
      if (!mayRun(turn)) continue
      waiting.delete(turn)
      running.add(turn)
      Deferred.doneUnsafe(turn.come, Effect.void)
    }
  }
  /** A waiting turn leaves the queue; a running one passes its slot on. */
  const leave = (turn: Turn) => {
    waiting.delete(turn)
    if (running.delete(turn)) admit()
  }

  const refused = (reason: SlotRefused["reason"], waited_ms: number) =>
    new SlotRefused({ reason, running_max, waited_ms: Math.max(0, Math.trunc(waited_ms)) })

  return {
    run: <A, E, R>(lane: LaneId, wait_ms: number, use: Effect.Effect<A, E, R>) =>
      Effect.uninterruptibleMask((restore): Effect.Effect<A, E | SlotRefused, R> => {
        const turn: Turn = { isEdge: lane === EDGE, come: Deferred.makeUnsafe<void>() }
        const isFree = mayRun(turn)
        if (!isFree && count(waiting, turn.isEdge) >= queued_max) return Effect.fail(refused("full", 0))
        ;(isFree ? running : waiting).add(turn)
        const wait = Effect.timeoutOrElse(Deferred.await(turn.come), {
          duration: wait_ms,
          orElse: () => Effect.fail(refused("late", wait_ms))
        })
        return restore(isFree ? use : Effect.andThen(wait, use)).pipe(Effect.ensuring(Effect.sync(() => leave(turn))))
      })
  }
}
