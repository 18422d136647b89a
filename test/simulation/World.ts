/** What the parts of one simulation share. */
import type { Invariants } from "./Invariants.ts"
import type { Database } from "./Database.ts"
import type { Faults } from "./Faults.ts"
import type { IoFault } from "./IoFault.ts"
import type { Kernel } from "./Kernel.ts"
import type { Ledger } from "./Ledger.ts"
import type { Locks } from "./Locks.ts"
import type { Network } from "./Network.ts"
import type { Seed } from "./Seed.ts"
import type { Setup } from "./Setup.ts"

export interface World {
  readonly kernel: Kernel
  readonly faults: Faults
  /** The one fault of a run that has one at a given input or output. */
  readonly io: IoFault
  readonly network: Network
  readonly database: Database
  readonly locks: Locks
  readonly ledger: Ledger
  readonly invariants: Invariants
  readonly setup: Setup
  /** The newest version of the configuration. */
  config_version: number
  /** A stream of random numbers of its own for each name. */
  draw(name: string): Seed
  /** A line of the history that a failure prints. */
  note(line: string): void
}
