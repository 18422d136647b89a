/** Planted bugs of what is carried out after a person approved it (I12, R52, R54, R55). */
import type { Mutant } from "./Mutant.ts"

export const PROPOSAL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "carried-out-unapproved",
    file: "src/choird/approvals/ProofOfApproval.ts",
    find: `mayFollow(row.status, "executing") ?`,
    replace: `row.status === "pending" || mayFollow(row.status, "executing") ?`,
    knownSeed: 10,
    breaks: ["I12"]
  },
  {
    name: "carried-out-though-rejected",
    file: "src/choird/approvals/approvalStatus.ts",
    find: `  rejected: [],`,
    replace: `  rejected: ["executing"],`,
    knownSeed: 10,
    breaks: ["I12"]
  },
  {
    name: "carried-out-after-its-time",
    file: "src/choird/approvals/approvalStatus.ts",
    find: `  expired: [],`,
    replace: `  expired: ["executing"],`,
    knownSeed: 10,
    breaks: ["I12"]
  },
  {
    name: "approved-after-its-time",
    file: "src/choird/approvals/approvalStatus.ts",
    find: "if (facts.now_ms >= facts.expires_ms)",
    replace: "if (facts.now_ms >= facts.expires_ms * 2)",
    knownSeed: 64,
    breaks: ["I12"]
  },
  {
    name: "carried-out-twice",
    file: "src/choird/approvals/ProofOfApproval.ts",
    find: `return row.status === "executing" ?`,
    replace: `return row.status === "executing" || row.status === "done" ?`,
    knownSeed: 10,
    breaks: ["I12"]
  },
  {
    name: "another-payload-was-seen",
    file: "src/choird/approvals/approvalStatus.ts",
    find: "facts.hash.startsWith(hash8) ?",
    replace: "hash8.length === 8 ?",
    knownSeed: 10,
    breaks: ["I12"]
  },
  {
    name: "unreadable-proposal-blocks-the-others",
    file: "src/choird/approvals/Execution.ts",
    find: "if (Result.isFailure(asked)) return Result.fail(unreadable(asked.failure.reason))",
    replace: "if (Result.isFailure(asked)) throw new Error(asked.failure.reason)",
    knownSeed: 10,
    breaks: ["I12"]
  }
]
