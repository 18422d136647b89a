/** Planted bugs of labels: text from outside that a lane still has, and is no longer known for (J4). */
import type { Mutant } from "./Mutant.ts"

export const LABEL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "label-ends-beside-a-mixed-summary",
    file: "src/shared/session/compactWindow.ts",
    find: "label?.mixed === true ? emptySummary : summary",
    replace: "label?.mixed === undefined ? emptySummary : summary",
    knownSeed: 108,
    breaks: ["J4"]
  },
  {
    name: "summary-goes-on-without-its-label",
    file: "src/shared/session/compactWindow.ts",
    find: "...(sources.length === 0 ? label : withMixed(memory, sources, event)),",
    replace: "...(sources.length === 0 ? label : { ...label, ...(withMixed(memory, sources, event) && {}) }),",
    knownSeed: 59,
    breaks: ["J4"]
  }
]
