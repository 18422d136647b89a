/** Planted bugs of two choirds on one database (D1). Only in seeds that 17 divides does another one want it. */
import type { Mutant } from "./Mutant.ts"

export const RIVAL_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "lost-lock-keeps-its-holder",
    file: "src/choird/database/DatabaseLock.ts",
    find: `Effect.catchTag("DatabaseTaken", (taken) => Deferred.fail(lost, taken))`,
    replace: `Effect.catchTag("DatabaseTaken", () => Effect.never)`,
    also: [
      {
        file: "src/choird/database/DatabaseFence.ts",
        find: "sqlState(error) === DISPLACED ? Deferred.fail(lost, new DatabaseDisplaced({ address })) : Effect.void",
        replace: "Effect.void"
      }
    ],
    knownSeed: 17,
    breaks: ["D1"]
  },
  {
    name: "displaced-choird-writes-on",
    file: "src/choird/database/DatabaseFence.ts",
    find: "if (token !== undefined) yield*",
    replace: "if (token === address.host) yield*",
    knownSeed: 17,
    breaks: ["D1"]
  }
]
