/** The eleven design invariants: what each says, and the test that holds the code to it. */
import type { Effect, Scope } from "effect"

export interface Invariant {
  readonly number: number
  /** The invariant in one sentence. */
  readonly title: string
  /** Loaded when it is run, so that a mutation brings along no more of the sources than its test needs. */
  readonly load: () => Promise<Effect.Effect<void, unknown, Scope.Scope>>
}

export const INVARIANTS: ReadonlyArray<Invariant> = [
  {
    number: 1,
    title: "core lifetime is a strict subset of edge lifetime",
    load: async () => (await import("./lifetimes.ts")).coreWithinEdge
  },
  {
    number: 2,
    title: "mutual exclusion on each resource",
    load: async () => (await import("./locking.ts")).exclusivePerResource
  },
  {
    number: 3,
    title: "injection is append-only",
    load: async () => (await import("./injection.ts")).injectionOnlyAppends
  },
  {
    number: 4,
    title: "the true log is immutable and authoritative",
    load: async () => (await import("./trueLog.ts")).logIsTheTruth
  },
  {
    number: 5,
    title: "no hidden recursion: explicit states, explicit transitions",
    load: async () => (await import("./transitions.ts")).explicitTransitions
  },
  {
    number: 6,
    title: "core never sends raw chain-of-thought, only workflow summaries",
    load: async () => (await import("./oneAgent.ts")).noRawThought
  },
  {
    number: 7,
    title: "agent identity is unified: edge and core are one agent to the user",
    load: async () => (await import("./oneAgent.ts")).oneVoice
  },
  {
    number: 8,
    title: "the container is disposable and its secrets are ephemeral",
    load: async () => (await import("./disposable.ts")).disposable
  },
  {
    number: 9,
    title: "the model proposes, the control plane decides",
    load: async () => (await import("./authority.ts")).onlyCommittedEffects
  },
  {
    number: 10,
    title: "keep it boring: one host, one database, few components",
    load: async () => (await import("./structure.ts")).boring
  },
  {
    number: 11,
    title: "at most one active instance per agent",
    load: async () => (await import("./instances.ts")).oneInstance
  }
]

export const nameOf = ({ number, title }: Invariant): string => `Invariant ${number}: ${title}`
