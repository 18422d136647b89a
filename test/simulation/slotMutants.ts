/** Planted bugs of the turns that tools take (E1). Only in seeds that 13 divides do jobs take up all that they may. */
import type { Mutant } from "./Mutant.ts"

export const SLOT_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "edge-starves-behind-jobs",
    file: "src/agent/calls/ToolSlots.ts",
    find: "reserved: TOOLS_RESERVED_FOR_EDGE",
    replace: "reserved: 0",
    knownSeed: 91,
    breaks: ["E1"]
  },
  {
    name: "slot-taken-while-choird-is-away",
    file: "src/agent/calls/grantedCall.ts",
    find: "behindBarrier(ready, grant, deadline, inSlot(running))",
    replace: "inSlot(behindBarrier(ready, grant, deadline, running))",
    knownSeed: 91,
    breaks: ["E1"]
  }
]
