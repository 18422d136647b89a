/** Planted bugs of spans (M1, N1). */
import type { Mutant } from "./Mutant.ts"

export const CLOCK_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "call-measured-by-the-time-of-day",
    file: "src/agent/calls/grantedCall.ts",
    find: `import { monotonicMs } from "#src/shared/monotonicMs.ts"`,
    replace: `import { Clock } from "effect"\nconst monotonicMs = Clock.currentTimeMillis`,
    knownSeed: 5,
    breaks: ["M1"]
  },
  {
    name: "job-measured-by-the-time-of-day",
    file: "src/agent/session/ageSince.ts",
    find: "Effect.map(monotonicMs, (now) => before + now - began)",
    replace: "Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, now - Date.parse(created_at)))",
    knownSeed: 10,
    breaks: ["M1", "J1"]
  },
  {
    name: "heartbeat-outwaits-the-threshold",
    file: "src/agent/control/Replication.ts",
    find: "threshold_ms === undefined ? RPC_TIMEOUT_MS",
    replace: "threshold_ms !== 0 ? RPC_TIMEOUT_MS",
    also: [{ file: "src/agent/control/Replication.ts", find: "isWaiting = true", replace: "isWaiting = false" }],
    knownSeed: 4,
    breaks: ["N1"]
  },
  {
    name: "verb-outwaits-the-threshold",
    file: "src/agent/control/ControlPlane.ts",
    find: "asked(verb, answerTime(silence_ms, given_up))(attempt)",
    replace: "asked(verb)(attempt)",
    knownSeed: 1,
    breaks: ["N1"]
  }
]
