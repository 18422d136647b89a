/** A database that may be away, for doubles of the stores. */
import { Effect } from "effect"
import { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"

/** A value of the database; a failure while the database is away, as the stores make it. */
export const stored = <A>(world: { readonly away: boolean }, value: A) =>
  Effect.suspend(() =>
    world.away ? Effect.fail(new DatabaseAway({ problem: "ECONNREFUSED" })) : Effect.succeed(value)
  )
