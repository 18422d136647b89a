/**
 * The place of a home that is restored. The new one is built beside it and takes its place in the end, so that a death leaves the old home
 * or the new one.
 */
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Clock, DateTime, Effect, Schedule } from "effect"
import { homePlace } from "#src/choirctl/home/homeFiles.ts"
import { CommandFailed, EXIT, failed } from "#src/choirctl/terminal/failure.ts"
import { earlierChoirdRuns, homeHolder, homeLockPath } from "#src/shared/files/homeLocks.ts"
import { asideOf, finishRestore, restoredBeside, restoreTimeIn } from "#src/shared/files/interruptedRestore.ts"
import { holdLockFile } from "#src/shared/files/lockFile.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { HOME_BYTES_MAX } from "#src/shared/files/hostProblems.ts"
import { isOwnName, isUsersFolder, makeOwnFolder } from "./freshFiles.ts"

/** How long a choird may still work in the folder of a restore that was killed. */
const LEFTOVER_MS_MAX = 20_000
const LEFTOVER_LOOK_MS = 200

const stagingPrefix = (home: string) => `${basename(home)}.restoring-`

/** Whether a name beside the home is one that a killed restore left there. Its neighbours may begin with the same words. */
const isLeftover = (home: string, name: string) =>
  isOwnName(stagingPrefix(home), name) || restoreTimeIn(home, name) !== undefined

const attempt = <A>(home: string, run: () => A) =>
  Effect.try({
    try: run,
    catch: (cause) =>
      failed(
        "FILE",
        `${home} cannot be made: ${String(cause)}`,
        "check the owner of its folder and the free space on its disk; a mount point cannot be replaced, only a folder in it"
      )
  })

const unusable =
  (home: string) =>
  ({ message }: Error) =>
    failed(
      "FILE",
      `${home} cannot be replaced: ${message}`,
      "check the owner of its folder and the free space on its disk"
    )

const choirdRuns = (home: string) =>
  failed(
    "CHOIRD_RUNS",
    `choird is running in ${home}, or another restore is in progress there`,
    `choirctl --home ${shellQuoted(home)} daemon stop`
  )

/** Holds a lock of the place until the scope closes. */
const hold = (home: string, path: string) =>
  holdLockFile(path).pipe(
    Effect.map(({ lost }) => Effect.mapError(lost, unusable(home))),
    Effect.catchTags({ LockTaken: () => choirdRuns(home), LockUnusable: unusable(home) })
  )

/** Removes folders that killed restores left beside the home. A choird that they started may take a moment to notice. */
const clearLeftovers = Effect.fnUntraced(function* (home: string) {
  const folder = dirname(home)
  const left = readdirSync(folder).filter((name) => isLeftover(home, name) && isUsersFolder(join(folder, name)))
  for (const name of left) {
    const path = join(folder, name)
    yield* Effect.repeat(homeHolder(path), {
      until: ({ held }) => !held,
      schedule: Schedule.spaced(LEFTOVER_LOOK_MS).pipe(Schedule.upTo({ duration: LEFTOVER_MS_MAX }))
    })
    if ((yield* homeHolder(path)).held)
      return yield* new CommandFailed({
        type: "BUSY",
        problem: `a restore that was killed is still working in ${path}`,
        hint: "try again in a minute",
        exit_code: EXIT.again
      })
    yield* attempt(home, () => rmSync(path, { recursive: true, force: true }))
  }
  return undefined
})

/** Where a home is to stand, held for this restore alone. */
export interface RestorePlace {
  /** Its real path. */
  readonly home: string
  /** Whether something is there that has to be moved aside. */
  readonly occupied: boolean
  /** The folder in which the new home is made. It is gone with the scope unless it took its place. */
  readonly staging: string
  /** When the restore began, as part of a name. */
  readonly time: string
  /** Fails when another program may use the place as well, until the old home is moved aside. */
  readonly lost: Effect.Effect<never, CommandFailed>
}

/** Takes the place of a home for the scope. Clears what killed restores left, and finishes one that had only its last step to do. */
export const takePlace = Effect.fn("restorePlace.take")(function* (wanted: string) {
  yield* attempt(wanted, () => mkdirSync(dirname(wanted), { recursive: true }))
  const home = yield* attempt(wanted, () => join(realpathSync(dirname(wanted)), basename(wanted)))
  if (Buffer.byteLength(home) > HOME_BYTES_MAX)
    return yield* failed(
      "HOME_TOO_LONG",
      `the path of a home has at most ${HOME_BYTES_MAX} bytes, since it contains sockets: ${home}`,
      "choose a shorter --to"
    )
  // Beside the home, since there may be none yet.
  const placeLost = yield* hold(wanted, join(dirname(home), `.${basename(home)}.restore.lock`))
  yield* attempt(home, () => finishRestore(home))
  yield* clearLeftovers(home)
  const found = yield* attempt(home, () => homePlace(home, "--to"))
  if (found.type === "unusable") return yield* failed("HOME", `${home} cannot be replaced: ${found.problem}`, found.fix)
  const occupied = found.type === "folder" && !found.empty
  // No choird starts in an empty folder, and only an empty one can be replaced by one rename.
  const homeLost = occupied ? yield* hold(wanted, homeLockPath(home)) : Effect.never
  if (yield* earlierChoirdRuns(home)) return yield* choirdRuns(wanted)
  const made = yield* Effect.acquireRelease(
    attempt(home, () => makeOwnFolder(dirname(home), stagingPrefix(home))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )
  const time = DateTime.formatIso(DateTime.makeUnsafe(yield* Clock.currentTimeMillis)).replaceAll(/[:.]/gu, "-")
  return { home, occupied, staging: made, time, lost: Effect.raceFirst(placeLost, homeLost) } satisfies RestorePlace
})

/** Where the new home stands once it is whole: the place of an empty or missing home can be taken with one rename. */
const wholeOf = ({ home, occupied, staging, time }: RestorePlace) => (occupied ? restoredBeside(home, time) : staging)

/** Says that the new home is whole: from here on only renames are left. */
export const finishStaging = (place: RestorePlace) =>
  attempt(place.home, () => {
    if (place.occupied) renameSync(place.staging, wholeOf(place))
  })

/** Moves the old home aside, and answers where to. */
export const moveAside = ({ home, occupied, time }: RestorePlace) =>
  attempt(home, () => {
    if (!occupied) return undefined
    renameSync(home, asideOf(home, time))
    return asideOf(home, time)
  })

/** Puts the new home in its place, unless a program that found none has already done so. */
export const putHome = (place: RestorePlace) =>
  attempt(place.home, () => {
    if (!place.occupied || existsSync(wholeOf(place))) renameSync(wholeOf(place), place.home)
  })
