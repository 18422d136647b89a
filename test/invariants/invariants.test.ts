/** One test for each design invariant; docs/invariants.md says which code holds it, and what breaks it. */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { INVARIANTS, nameOf } from "./invariants.ts"

describe("the design invariants", () => {
  for (const invariant of INVARIANTS) it.effect(nameOf(invariant), () => Effect.flatten(Effect.promise(invariant.load)))
})
