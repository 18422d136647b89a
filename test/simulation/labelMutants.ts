/** Planted bugs of labels: text from outside that a lane still has, and is no longer known for (J4). */
import type { Mutant } from "./Mutant.ts"

export const LABEL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "label-ends-beside-a-mixed-summary",
    file: "src/shared/session/compactWindow.ts",
    find: "label?.mixed === true ? emptySummary : summary",
    replace: "label?.mixed === true && split.rest === undefined ? summary : summary",
    knownSeed: 4,
    breaks: ["J4"]
  },
  {
    name: "label-ends-with-text-in-the-window",
    file: "src/shared/session/labels.ts",
    find: "(rev) => rev < label.from_rev || rev === turn?.rev || (rev <= boundary_rev && !kept.includes(rev))",
    replace: "(rev) => rev > 0 && turn?.rev !== boundary_rev && kept.length >= 0 && label.from_rev > 0",
    also: [
      {
        file: "src/shared/session/labels.ts",
        find: "label.rev > boundary_rev || isShownElsewhere",
        replace: "isShownElsewhere"
      }
    ],
    knownSeed: 4,
    breaks: ["J4"]
  },
  {
    name: "label-ends-under-a-call",
    file: "src/agent/arbiter/decide.ts",
    find: "const isBetweenCalls = state.edge.turn === undefined || is_awaited",
    replace: "const isBetweenCalls = state.edge.turn === undefined || !is_awaited || is_awaited",
    also: [
      {
        file: "src/agent/memory/Compactor.ts",
        find: "(state.edge.turn === undefined || isAwaited) &&",
        replace: "(isAwaited || !isAwaited) &&"
      }
    ],
    knownSeed: 4,
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
