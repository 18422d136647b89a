/** Planted bugs of turns that are answered, stopped or set aside (T1, T2, I7, I11, L1). */
import type { Mutant } from "./Mutant.ts"

export const STOP_MUTANTS: ReadonlyArray<Mutant> = [
  {
    name: "message-dropped-at-the-roll-over",
    file: "src/agent/arbiter/decideEnd.ts",
    find: "...(carried === undefined ? {} : { carried }),",
    replace: "",
    knownSeed: 3,
    breaks: ["I10", "L1"]
  },
  {
    name: "stopped-turn-runs-on",
    file: "src/agent/session/EdgeLane.ts",
    find: "yield* Effect.raceFirst(step, stopped)",
    replace: "yield* Effect.raceFirst(Effect.flatMap(Effect.forkDetach(step), Fiber.join), stopped)",
    also: [
      {
        file: "src/agent/session/EdgeLane.ts",
        find: `import { Deferred, Effect } from "effect"`,
        replace: `import { Deferred, Effect, Fiber } from "effect"`
      }
    ],
    knownSeed: 8,
    breaks: ["T1"]
  },
  {
    name: "stop-leaves-the-lock-held",
    file: "src/agent/calls/LockManager.ts",
    find: "Effect.ensuring(Effect.sync(() => apply(release(table, ticket))))",
    replace:
      "Effect.onExit((exit) => Effect.sync(() => void (JSON.stringify(exit).includes('Interrupt') || apply(release(table, ticket)))))",
    knownSeed: 2,
    breaks: ["T1", "I7", "J3"]
  },
  {
    name: "lock-is-free-before-the-result",
    file: "src/agent/calls/grantedCall.ts",
    find: "Effect.onInterrupt(() => finishInterrupted(lane, call, began))",
    replace: "Effect.onInterrupt(() => Effect.void)",
    knownSeed: 8,
    breaks: ["I7"]
  },
  {
    name: "stopped-turn-says-nothing",
    file: "src/agent/arbiter/decideStop.ts",
    find: "    lastWord(state, report, find),\n",
    replace: "",
    knownSeed: 8,
    breaks: ["T1"]
  },
  {
    name: "stop-replies-twice",
    file: "src/shared/session/fold.ts",
    find: "resumeTurn(withEdge(moved, { turn: undefined, step: 0, output_rev: 0 }))",
    replace:
      "resumeTurn(withEdge(moved, payload.text?.startsWith('Stopped.') ? { state: 'EDGE_REASONING' } : { turn: undefined, step: 0, output_rev: 0 }))",
    knownSeed: 8,
    breaks: ["I11"]
  },
  {
    name: "stop-ends-whatever-runs",
    file: "src/shared/session/turns.ts",
    find: "open.inbox_id === name.inbox_id",
    replace: "name.inbox_id !== undefined",
    knownSeed: 8,
    breaks: ["T2"]
  },
  {
    name: "stop-is-lost-in-a-correction",
    file: "src/agent/arbiter/finalWords.ts",
    find: `edge.state === "EDGE_FINALIZING" ? find(edge.output_rev) : undefined`,
    replace: "undefined as ChoirEvent | undefined",
    knownSeed: 40,
    breaks: ["T2"]
  },
  {
    name: "reply-lost",
    file: "src/agent/arbiter/decideEnd.ts",
    find: `if (turn?.kind === "turn") return [reply(turn, text, failed)]`,
    replace: `if (turn?.kind === "turn") return []`,
    knownSeed: 43,
    breaks: ["I10", "L1"]
  },
  {
    name: "parked-turn-is-forgotten",
    file: "src/shared/session/fold.ts",
    find: "resumeTurn(withEdge(moved, { turn: undefined, step: 0, output_rev: 0 }))",
    replace: "withEdge(moved, { turn: undefined, step: 0, output_rev: 0, parked: undefined })",
    knownSeed: 15,
    breaks: ["L1"]
  },
  {
    name: "jobs-of-an-ending-session-run-on",
    file: "src/agent/session/Session.ts",
    find: "  yield* endJobs(outcome, reason)\n",
    replace: "",
    knownSeed: 8,
    breaks: ["W2"]
  }
]
