/** `choirctl home accept`: a home that was moved or copied works at its new place, and its configuration names that place. */
import { existsSync, readFileSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { CONFIG_FILE, LAST_GOOD_FILE } from "#src/shared/config/configFiles.ts"
import { withHomeFilesLock } from "#src/shared/files/homeFilesLock.ts"
import { homeHolder } from "#src/shared/files/homeLocks.ts"
import {
  homePlacement,
  type HomePlacement,
  newHomeRecord,
  placementFix,
  placementProblem,
  writeHomeRecord
} from "#src/shared/files/homeRecord.ts"
import { withMovedPaths } from "#src/shared/files/movedPaths.ts"
import { fileText, requireHome, writePrivate } from "./homeFiles.ts"

/** Where a home is, and which place it knew. */
export interface AcceptedHome {
  readonly home: string
  /** The place that it knew before; none for a home that had not moved. */
  readonly from: string | null
  readonly copied: boolean
  /** Files in which paths were corrected. */
  readonly corrected: ReadonlyArray<string>
}

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** Lets a file's paths below the old place lead to the new one; answers whether there were any. */
const correct = Effect.fnUntraced(function* (path: string, from: string, to: string) {
  if (!existsSync(path)) return false
  const before = parse(readFileSync(path, "utf8"))
  if (before._tag === "None") return false
  const after = withMovedPaths(before.value, { from: [from], to })
  if (JSON.stringify(after) === JSON.stringify(before.value)) return false
  yield* writePrivate(path, fileText(after))
  return true
})

const runs = (home: string, pid: number | null) =>
  failed(
    "CHOIRD_RUNS",
    `choird runs in ${home}${pid === null ? "" : ` (pid ${pid})`}`,
    "choirctl daemon stop, then run this again"
  )

const accepted = Effect.fnUntraced(function* (home: string, placement: HomePlacement) {
  if (placement.type === "here") return { home, from: null, copied: false, corrected: [] } satisfies AcceptedHome
  if (placement.type === "unrecorded") {
    writeHomeRecord(home, newHomeRecord(home))
    return { home, from: null, copied: false, corrected: [] } satisfies AcceptedHome
  }
  const copied = placement.type === "copied"
  const { id, path: from } = placement.record
  const corrected: Array<string> = []
  for (const name of [CONFIG_FILE, LAST_GOOD_FILE])
    if (yield* correct(join(home, name), from, home)) corrected.push(name)
  // Last: until then the command may be given again.
  writeHomeRecord(home, { id: copied ? newHomeRecord(home).id : id, path: home, moved_from: from })
  return { home, from, copied, corrected } satisfies AcceptedHome
})

/** @param copy whether a copy is to be a home of its own. */
export const acceptHome = Effect.fn("acceptHome")(function* (named: string, copy: boolean) {
  yield* requireHome(named)
  const home = realpathSync(named)
  const { held, pid } = yield* homeHolder(home)
  if (held) return yield* runs(home, pid)
  const placement = homePlacement(home)
  if (placement.type === "copied" && !copy)
    return yield* failed("HOME_COPIED", placementProblem(home, placement) ?? "", placementFix(placement))
  return yield* withHomeFilesLock(home)(accepted(home, placement))
})
