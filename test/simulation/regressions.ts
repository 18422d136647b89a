/** Seeds that once failed. They are run for ever, since what broke once breaks again. */
import type { Options } from "./simulate.ts"

export interface Regression {
  readonly seed: number
  readonly options: Options
  /** What was seen. */
  readonly issue: string
  /** What was wrong. */
  readonly cause: string
}

export const REGRESSIONS: ReadonlyArray<Regression> = []
