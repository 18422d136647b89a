import { assert, describe, it } from "@effect/vitest"
import { decideRestart, type EpochEnd, type EpochFacts } from "#src/choird/agents/decideRestart.ts"
import { BREAKER, BREAKER_CRASHES_MAX } from "#src/choird/agents/Breaker.ts"

const NOW_MS = 1_000_000
const facts = (more: Partial<EpochFacts> = {}): EpochFacts => ({
  now_ms: NOW_MS,
  breaker: BREAKER,
  frozen_reason: null,
  newer: undefined,
  full: undefined,
  last_rev: 7,
  proven: true,
  ...more
})
const crashed: EpochEnd = { type: "crashed", reason: "it was killed", ready: true }
const outOfBudget: EpochEnd = { type: "goodbye", reason: "budget" }
const once = { crashes_ms: [NOW_MS] }
const tripping = { crashes_ms: Array.from({ length: BREAKER_CRASHES_MAX - 1 }, (_, index) => NOW_MS - 1 - index) }

const ROWS: ReadonlyArray<readonly [string, EpochEnd, Partial<EpochFacts>, object]> = [
  ["a goodbye ends the run", { type: "goodbye", reason: "done" }, {}, { type: "end", status: "stopped" }],
  ["a session at its budget waits for a message", outOfBudget, {}, { type: "await message" }],
  [
    "a session at its budget from the start counts as a crash",
    outOfBudget,
    { last_rev: 0 },
    { type: "restart", breaker: once, reason: "it ended before its first event" }
  ],
  [
    "a session that is always at its budget from the start stops in the end",
    outOfBudget,
    { last_rev: 0, breaker: tripping },
    { type: "end", status: "crashed", kind: "BREAKER" }
  ],
  ["a crash restarts", crashed, {}, { type: "restart", breaker: once, reason: "it was killed" }],
  ["one crash too many does not", crashed, { breaker: tripping }, { type: "end", status: "crashed", kind: "BREAKER" }],
  [
    "a first start that fails is not tried again",
    { type: "crashed", reason: "no program", ready: false },
    { proven: false },
    { type: "end", status: "crashed", kind: "START_FAILED", reason: "no program" }
  ],
  [
    "a later start that fails is",
    { type: "crashed", reason: "no program", ready: false },
    {},
    { type: "restart", breaker: once, reason: "no program" }
  ],
  [
    "a frozen session ends, whatever its agent said",
    outOfBudget,
    { frozen_reason: "x" },
    { type: "end", kind: "FROZEN" }
  ],
  ["a crash over a full log ends", crashed, { full: "its log is full" }, { type: "end", kind: "LOG_FULL" }],
  [
    "a crash over newer events ends",
    crashed,
    { newer: "event 3 is of a later Choir" },
    { type: "end", kind: "NEWER_EVENTS" }
  ],
  ["an operator's stop ends the run", { type: "stopped" }, {}, { type: "end", status: "stopped" }]
]

describe("the end of an epoch (R9, D19)", () => {
  for (const [what, end, more, next] of ROWS)
    it(what, () => {
      assert.deepInclude(decideRestart(end, facts(more)), next)
    })
})
