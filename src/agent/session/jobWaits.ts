/**
 * How long a job has waited for its provider. That does not count in its time: a night without a provider ends no job. Each wait
 * begins with an output in the log, so a restart continues it.
 */
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { waitOf } from "#src/shared/session/providerWait.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { ageSince } from "./ageSince.ts"

/** The pauses before a job asks again: doubled from the first to the last. */
const PAUSE_MS_MIN = 5000
const PAUSE_MS_MAX = 300_000
/** How long a job waits for its provider at most; then it ends, and can be resumed (E12). */
export const PROVIDER_WAIT_MS_MAX = 86_400_000

/** The pause before a job's next attempt, of which `failed` were in vain since this agent started. */
export const pauseBefore = (failed: number): number => Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(failed, 16))

type Find = (rev: number) => ChoirEvent | undefined

/** The milliseconds of a job's waits that have ended, by the times of their events. */
const endedWaits = ({ lane, output, started_rev }: CoreLane, find: Find): number => {
  let total = 0
  let since: string | undefined
  for (let rev = started_rev; rev <= output.rev; rev += 1) {
    const event = find(rev)
    if (event?.event_type !== "ModelOutput" || event.lane !== lane || event.payload.purpose !== "turn") continue
    if (since !== undefined) total += Math.max(0, Date.parse(event.created_at) - Date.parse(since))
    since = waitOf(event)?.since
  }
  return total
}

interface Waited {
  /** Of all waits, the open one included. */
  readonly total_ms: number
  /** Of the open one. */
  readonly open_ms: number | undefined
}

/** The waits of a job that this epoch runs, counted from its start by a clock that nobody sets. */
export const makeJobWaits = (first: CoreLane, find: Find) => {
  let ended_ms = endedWaits(first, find)
  let open: { readonly rev: number; readonly age: Effect.Effect<number> } | undefined
  return Effect.fnUntraced(function* ({ output }: CoreLane) {
    const wait = output.rev === 0 ? undefined : waitOf(find(output.rev))
    if (open !== undefined && open.rev !== wait?.rev) {
      ended_ms += yield* open.age
      open = undefined
    }
    if (wait === undefined) return { total_ms: ended_ms, open_ms: undefined } satisfies Waited
    open ??= { rev: wait.rev, age: yield* ageSince(wait.since) }
    const open_ms = yield* open.age
    return { total_ms: ended_ms + open_ms, open_ms } satisfies Waited
  })
}
