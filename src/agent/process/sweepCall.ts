/** Ends the processes that are left of a call (R22). */
import { Effect } from "effect"
import { identityOf, type Remains } from "./ProcessTable.ts"

/** Rounds of looking for what is left of a call and killing it; with the waits between them about a second (R22). */
const PROCESS_SWEEPS_MAX = 100
/** The pause between two such rounds, in which the kernel buries what was killed and lays out the memory of what begins a program. */
const PROCESS_SWEEP_PAUSE_MS = 5
/** Looks within one round that stop what a call forks while it is being found. */
const PROCESS_FREEZES_MAX = 20
/** Looks in a row that must find nothing where forks, or processes without an environment, leave room for doubt. */
const PROCESS_CLEAN_LOOKS = 10

/** Best effort: the process may be gone. */
const signal = (pid: number, name: NodeJS.Signals) =>
  Effect.ignore(Effect.try({ try: () => process.kill(pid, name), catch: () => undefined }))

/** Stops what is found until a look finds nothing new, then kills it all: a fork does not outrun the search. */
const killAll = Effect.fnUntraced(function* (look: Effect.Effect<Remains>) {
  const found = new Map<string, number>()
  let remains = yield* look
  for (let freeze = 0; freeze < PROCESS_FREEZES_MAX; freeze++) {
    const fresh = remains.processes.filter((entry) => !found.has(identityOf(entry)))
    if (fresh.length === 0) break
    for (const entry of fresh) {
      found.set(identityOf(entry), entry.pid)
      yield* signal(entry.pid, "SIGSTOP")
    }
    remains = yield* look
  }
  for (const pid of found.values()) yield* signal(pid, "SIGKILL")
  return { clean: found.size === 0, complete: remains.complete }
})

/**
 * Kills until nothing is left, and answers how many processes could not be killed. Where others fork all the time, or wiped their
 * environment for good, no look is complete, and several clean ones must do.
 */
export const sweepCall = Effect.fnUntraced(function* (look: Effect.Effect<Remains>) {
  let clean_looks = 0
  for (let round = 0; round < PROCESS_SWEEPS_MAX; round++) {
    const { clean, complete } = yield* killAll(look)
    clean_looks = clean ? clean_looks + 1 : 0
    if (clean_looks === PROCESS_CLEAN_LOOKS || (clean && complete)) return 0
    yield* Effect.sleep(PROCESS_SWEEP_PAUSE_MS)
  }
  const { processes } = yield* look
  if (processes.length > 0) yield* Effect.logWarning("processes of a tool call could not be killed", processes)
  return processes.length
})
