/** The place of a home: choird starts only where the home last was, unless its operator says that it has moved. */
import { Effect, Runtime, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { onHome } from "#src/shared/files/homeFolder.ts"
import {
  homePlacement,
  type HomeRecord,
  newHomeRecord,
  placementFix,
  placementProblem,
  writeHomeRecord
} from "#src/shared/files/homeRecord.ts"

/** A home that was moved or copied, and its operator has not said so. */
export class HomeElsewhere extends Schema.TaggedError<HomeElsewhere>()("HomeElsewhere", {
  problem: Schema.String,
  fix: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `${this.problem}. To fix it: ${this.fix}`
  }
}

/** The record of a home at its place, made for one that has none yet. @param home its real path. */
export const homeInPlace = Effect.fn("homeInPlace")(function* (
  home: string
): Effect.fn.Return<HomeRecord | undefined, HomeElsewhere> {
  const placement = homePlacement(home)
  if (placement.type === "unrecorded") return undefined
  const problem = placementProblem(home, placement)
  if (problem !== undefined) return yield* new HomeElsewhere({ problem, fix: onHome(home, placementFix(placement)) })
  return placement.record
})

/** Records a home that has no record yet. Only for the holder of its lock. Throws what the system says. */
export const recordHome = (home: string, record: HomeRecord | undefined): HomeRecord => {
  if (record !== undefined) return record
  const made = newHomeRecord(home)
  writeHomeRecord(home, made)
  return made
}

/** Lets what the database knows of the folders in a home follow it to its new place: which of them hold text from outside. */
export const followMove = Effect.fn("followMove")(function* (home: string, record: HomeRecord) {
  const { moved_from, ...settled } = record
  if (moved_from === undefined) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE choir_control.workspace_labels SET path = ${home} || substr(path, length(${moved_from}) + 1)
    WHERE path = ${moved_from} OR starts_with(path, ${`${moved_from}/`})`
  yield* Effect.sync(() => writeHomeRecord(home, settled))
})
