/** A planted bug, as text that takes the place of other text. */
import type { Edit } from "./patchSources.ts"

export interface Mutant extends Edit {
  readonly name: string
  /** Checks behind the first, which would hide its absence. */
  readonly also?: ReadonlyArray<Edit>
  /** A seed that finds it. */
  readonly knownSeed: number
  /** The invariants that it may break first. */
  readonly breaks: ReadonlyArray<string>
}
