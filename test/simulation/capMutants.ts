/**
 * Planted bugs of what has a limit. What hardly fits an event is said only in seeds that 23 divides, and only in those that 19 divides does an agent mean
 * harm by its history.
 */
import type { Mutant } from "./Mutant.ts"
import type { Edit } from "./patchSources.ts"

/** What no event can hold is passed over as if it had been committed. */
const REFUSAL_IGNORED: Edit = {
  file: "src/agent/arbiter/Arbiter.ts",
  find: "if (refused.unfit === true && smaller !== undefined) return commitEnd(arbiter, smaller(refused.reason), isOpen)",
  replace: "if (refused.unfit === true) return Effect.void"
}

export const CAP_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "files-remembered-for-ever",
    file: "src/shared/session/calls.ts",
    find: "if (next.size <= SEEN_FILES_MAX && chars <= SEEN_PATHS_CHARS_MAX) break",
    replace: "break",
    knownSeed: 2,
    breaks: ["C1"]
  },
  {
    name: "any-number-of-jobs-runs",
    file: "src/shared/session/fold.ts",
    find: "if (state.cores.size >= CORE_JOBS_MAX)",
    replace: "if (state.cores.size < 0)",
    knownSeed: 19,
    breaks: ["C2"]
  },
  {
    name: "any-number-of-reports-is-owed",
    file: "src/shared/session/fold.ts",
    find: "if (state.reports.length >= REPORTS_OWED_MAX) return Result.fail(REPORTS_FULL)",
    replace: "if (state.reports.length < 0) return Result.fail(REPORTS_FULL)",
    also: [
      {
        file: "src/shared/session/snapshot.ts",
        find: "check(Schema.isMaxLength(REPORTS_OWED_MAX))",
        replace: "check(Schema.isMinLength(0))"
      }
    ],
    knownSeed: 19,
    breaks: ["C2"]
  },
  {
    name: "a-state-of-any-size",
    file: "src/shared/session/fitState.ts",
    find: "if (stateBytes(state) <= STATE_BYTES_MAX) return",
    replace: "if (stateBytes(state) >= 0) return",
    knownSeed: 19,
    breaks: ["C3"]
  },
  {
    name: "no-room-for-a-jobs-end",
    file: "src/agent/arbiter/decideCalls.ts",
    find: "return reports.length + cores.size + asked >= REPORTS_OWED_MAX",
    replace: "return reports.length + cores.size + asked < 0",
    knownSeed: 2,
    breaks: ["W2", "L1"]
  },
  {
    name: "large-message-vanishes",
    file: "src/agent/arbiter/Arbiter.ts",
    find: REFUSAL_IGNORED.find,
    replace: REFUSAL_IGNORED.replace,
    knownSeed: 69,
    breaks: ["L1", "L2", "I10"]
  },
  {
    name: "job-that-cannot-end",
    file: "src/agent/session/CoreJob.ts",
    find: "result: inlineResult(result, TOOL_RESULT_BYTES_MAX)",
    replace: "result",
    also: [REFUSAL_IGNORED],
    knownSeed: 207,
    breaks: ["L2", "J1"]
  },
  {
    name: "references-unbounded",
    file: "src/agent/memory/compaction.ts",
    find: "[...new Set([...new Set(references)].flatMap(resolve))].slice(-SUMMARY_REFERENCES_MAX)",
    replace: "references.flatMap(resolve)",
    also: [
      { file: "src/agent/memory/compaction.ts", find: "return affordable(deltas)", replace: "return deltas" },
      { file: "src/agent/arbiter/EventLog.ts", find: "> COMMIT_BYTES_MAX)", replace: "> Number.MAX_SAFE_INTEGER)" }
    ],
    knownSeed: 46,
    breaks: ["W1"]
  }
]
