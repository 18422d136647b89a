/** A database that may be away, for doubles of the stores. */
import { Effect } from "effect"
import { SqlError } from "effect/sql"

const lost = new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("ECONNREFUSED") }) })

/** What the database has; a defect while it is away, as the stores make it. */
export const stored = <A>(world: { readonly away: boolean }, value: A) =>
  Effect.suspend(() => (world.away ? Effect.die(lost) : Effect.succeed(value)))
