/** Planted bugs of what has a limit. What hardly fits an event is said only in seeds that 23 divides. */
import type { Mutant } from "./Mutant.ts"

export const CAP_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "files-remembered-for-ever",
    file: "src/shared/session/seenFiles.ts",
    find: "if (next.size <= SEEN_FILES_MAX && chars <= SEEN_PATHS_CHARS_MAX) break",
    replace: "break",
    knownSeed: 1,
    breaks: ["C1"]
  },
  {
    name: "no-room-for-a-jobs-end",
    file: "src/agent/decideCalls.ts",
    find: "return reports.length + cores.size + asked >= REPORTS_OWED_MAX",
    replace: "return reports.length + cores.size + asked < 0",
    knownSeed: 2,
    breaks: ["W2", "L1"]
  },
  {
    name: "large-message-vanishes",
    file: "src/agent/commits.ts",
    find: "if (refused.unfit === true && smaller !== undefined) return commitEnd(arbiter, smaller(refused.reason), isOpen)",
    replace: "if (refused.unfit === true) return Effect.void",
    knownSeed: 23,
    breaks: ["L1", "L2", "I10"]
  }
]
