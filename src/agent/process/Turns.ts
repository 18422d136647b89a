/**
 * Turns, where the kernel keeps the processes of different calls not apart: a command with secrets runs beside no other, and none starts
 * while it runs. Who comes first goes first, so that a command with secrets does not wait for ever.
 */
import { Deferred, Effect, Schema } from "effect"

/** How long a command waits for its turn. */
export const TURN_MS_MAX = 60_000
/** Commands that wait for their turn at once. */
const TURNS_WAITING_MAX = 256

/** A command that could not start beside those that run. */
export class NoTurn extends Schema.TaggedError<NoTurn>()("NoTurn", { running: Schema.Natural, alone: Schema.Boolean }) {
  override get message() {
    const others = this.running === 1 ? "another command still runs" : `${this.running} other commands still run`
    return this.alone
      ? `${others}, and on this host a tool with secrets starts only when none does. Call it again later`
      : "a tool with secrets waits or runs, and on this host no command starts beside it. Call again later"
  }
}

interface Turn {
  readonly alone: boolean
  readonly begins: Deferred.Deferred<void>
  begun: boolean
}

type InTurn = <A, E, R>(alone: boolean, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | NoTurn, R>

/** Runs effects in turn: one that is `alone` beside no other. */
export const makeTurns = (): InTurn => {
  const waiting: Array<Turn> = []
  const running = new Set<Turn>()

  const fits = (turn: Turn): boolean => (turn.alone ? running.size === 0 : ![...running].some(({ alone }) => alone))

  const admit = () => {
    for (let next = waiting[0]; next !== undefined && fits(next); next = waiting[0]) {
      waiting.shift()
      running.add(next)
      next.begun = true
      Deferred.doneUnsafe(next.begins, Effect.void)
    }
  }

  const leave = (turn: Turn) => {
    running.delete(turn)
    const at = waiting.indexOf(turn)
    if (at !== -1) waiting.splice(at, 1)
    admit()
  }

  const enter = (alone: boolean): Turn => {
    const turn: Turn = { alone, begins: Deferred.makeUnsafe(), begun: false }
    if (waiting.length < TURNS_WAITING_MAX) waiting.push(turn)
    admit()
    return turn
  }

  /** Looks after the wait: a turn that comes as the time ends is one. */
  const begun = (turn: Turn) => {
    const wait = waiting.includes(turn)
      ? Effect.asVoid(Effect.timeoutOption(Deferred.await(turn.begins), TURN_MS_MAX))
      : Effect.void
    const others = Effect.sync(() => new NoTurn({ running: running.size, alone: turn.alone }))
    return Effect.andThen(
      wait,
      Effect.suspend(() => (turn.begun ? Effect.void : Effect.flip(others)))
    )
  }

  return (alone, effect) =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(alone)),
      (turn) => Effect.andThen(begun(turn), effect),
      (turn) => Effect.sync(() => leave(turn))
    )
}
