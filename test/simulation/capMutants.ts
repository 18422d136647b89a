/** Planted bugs of what has a limit. What hardly fits an event is said only in seeds that 23 divides. */
import type { Mutant } from "./Mutant.ts"

export const CAP_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "last-words-uncut",
    file: "src/agent/CoreJob.ts",
    find: "result: inlineResult(result, TOOL_RESULT_BYTES_MAX)",
    replace: "result",
    also: {
      file: "src/agent/commits.ts",
      find: "if (refused.unfit === true && smaller !== undefined) return commitEnd(arbiter, smaller(refused.reason), isOpen)",
      replace: "if (refused.unfit === true) return Effect.void"
    },
    knownSeed: 23,
    breaks: ["L1", "L2", "J1"]
  },
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
  },
  {
    name: "references-unbounded",
    file: "src/agent/compaction.ts",
    find: `[...new Set([...new Set(references)].flatMap(resolve))].slice(-SUMMARY_REFERENCES_MAX)

/** The first deltas, as many as one commit takes. */
const affordable = (deltas: ReadonlyArray<MemoryDelta>): ReadonlyArray<MemoryDelta> => {
  let bytes = 0
  return deltas.filter((delta) => {
    bytes += jsonBytes(delta)
    return bytes <= COMPACTION_BYTES_MAX`,
    replace: `references.flatMap(resolve)

/** The first deltas, as many as one commit takes. */
const affordable = (deltas: ReadonlyArray<MemoryDelta>): ReadonlyArray<MemoryDelta> => {
  let bytes = 0
  return deltas.filter((delta) => {
    bytes += jsonBytes(delta)
    return true`,
    also: {
      file: "src/agent/EventLog.ts",
      find: "bytes, 0) > COMMIT_BYTES_MAX",
      replace: "bytes, 0) < 0"
    },
    knownSeed: 23,
    breaks: ["W1", "W2", "L1"]
  },
  {
    name: "job-of-a-skill-starts-a-skill",
    file: "src/agent/decideSkills.ts",
    find: `if ("job_id" in memory && memory.in_skill !== undefined)`,
    replace: "if (false)",
    knownSeed: 23,
    breaks: ["K4"]
  },
  {
    name: "job-of-a-skill-leaves-its-tools",
    file: "src/agent/decideCores.ts",
    find: "if (rules === undefined) return wanted",
    replace: "if (rules !== undefined || wanted.length >= 0) return wanted",
    knownSeed: 23,
    breaks: ["K4"]
  }
]
