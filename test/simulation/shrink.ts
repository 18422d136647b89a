/** Which faults a failure needs: each kind is switched off in turn, and stays off while the same invariant still breaks. */
import type { FaultKind } from "./Faults.ts"
import { type Options, type Outcome, simulate } from "./simulate.ts"

export interface Shrunk {
  readonly outcome: Outcome
  readonly options: Options
}

export const shrink = (failed: Outcome, options: Options): Shrunk => {
  let smallest: Shrunk = { outcome: failed, options: { ...options, mode: failed.mode } }
  for (const kind of failed.faults) {
    const without: ReadonlyArray<FaultKind> = [...(smallest.options.without ?? []), kind]
    const outcome = simulate(failed.seed, { ...smallest.options, without })
    if (outcome.violation?.invariant === failed.violation?.invariant)
      smallest = { outcome, options: { ...smallest.options, without } }
  }
  return smallest
}
