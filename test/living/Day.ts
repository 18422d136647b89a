/** A day of the fortnight as a script: what people do, one after the other, each with the words that end the step on a phone. */
import type { Effect } from "effect"
import type { Home } from "./Home.ts"

export interface Step {
  /** The time of day, where the home is, in steps of ten minutes. */
  readonly at: `${string}${string}:${string}0`
  /** A sentence of the diary, where the phones do not show what somebody does. */
  readonly title?: string
  act(home: Home): Effect.Effect<unknown, unknown>
  /** Words that the phones show anew at the end of the step. */
  readonly until: string
}

export interface Day {
  readonly date: string
  readonly name: string
  readonly steps: ReadonlyArray<Step>
}
