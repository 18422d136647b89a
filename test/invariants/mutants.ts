/** The test of each invariant, over the sources as they are and over each of its mutations. `mutations.test.ts` runs this file. */
import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { INVARIANTS, type Invariant, nameOf } from "./invariants.ts"
import { MUTATIONS } from "./mutations.ts"

/** The same test with all that it imports, which the plugin of mutants.config.ts loads anew for the mutation. */
const under = async (id: string, number: number): Promise<Invariant> => {
  const module = (await import(/* @vite-ignore */ `./invariants.ts?mutation=${id}`)) as typeof import("./invariants.ts")
  const found = module.INVARIANTS.find((invariant) => invariant.number === number)
  if (found === undefined) throw new Error(`there is no invariant ${number}`)
  return found
}

const run = (invariant: Effect.Effect<Invariant>) =>
  Effect.flatMap(invariant, ({ load }) => Effect.flatten(Effect.promise(load)))

for (const invariant of INVARIANTS)
  describe(nameOf(invariant), () => {
    it.effect("as it is", () => run(Effect.succeed(invariant)))
    for (const { id, invariant: number } of MUTATIONS)
      if (number === invariant.number) it.effect(id, () => run(Effect.promise(() => under(id, number))))
  })
