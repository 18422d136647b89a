/** The label of a lane by text from outside, as its state has it. */
import type { Source } from "#schema/Source.ts"

/** The label of a lane whose window holds text from outside. */
export interface Label {
  /** From this event on all that the lane says may repeat such text; people's own words are apart. */
  readonly from_rev: number
  /** The newest event that brought such text, and when. */
  readonly rev: number
  readonly at: string
  /** The lane's summary was written in sight of such text, and is not parted from it. */
  readonly mixed: boolean
}

/** The quotation of text from outside in a summary, with where it came from. */
export interface QuotedRest {
  readonly text: string
  readonly sources: ReadonlyArray<Source>
}
