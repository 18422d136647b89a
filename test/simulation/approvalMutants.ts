/** Planted bugs of approvals (I12, D31). */
import type { Mutant } from "./Mutant.ts"

export const APPROVAL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "a-no-is-taken-for-a-yes",
    file: "src/agent/calls/Confirmations.ts",
    find: `if (status === "approved") return`,
    replace: `if (status !== "pending") return`,
    knownSeed: 7,
    breaks: ["I12"]
  },
  {
    name: "nobody-is-asked",
    file: "src/agent/arbiter/decideCalls.ts",
    find: `if (confirm_external === "never") return undefined`,
    replace: "if (confirm_external !== undefined) return undefined",
    knownSeed: 2,
    breaks: ["J4"]
  },
  {
    name: "log-forgets-that-a-call-waits",
    file: "src/shared/session/calls.ts",
    find: "...(payload.confirm === undefined ? {} : { confirm",
    replace: "...(payload.call_id !== undefined ? {} : { confirm",
    knownSeed: 2,
    breaks: ["I12"]
  },
  {
    name: "decided-twice",
    file: "src/choird/approvals/approvalStatus.ts",
    find: `if (facts.status !== "pending")`,
    replace: `if (facts.status === "expired")`,
    knownSeed: 7,
    breaks: ["I12"]
  }
]
