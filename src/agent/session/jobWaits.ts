/**
 * The time that does not count in a job's: its waits for the provider, and while no agent ran. So neither a night without a provider nor one with the
 * computer off ends a job. Each wait begins with an output in the log, and the time off is in the next output, so a restart
 * forgets neither.
 */
import { Clock, Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { DAY_MS } from "#src/shared/days.ts"
import type { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { waitOf } from "#src/shared/session/providerWait.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { ageSince } from "./ageSince.ts"

/** The pauses before a job asks again: doubled from the first to the last. */
const PAUSE_MS_MIN = 5000
const PAUSE_MS_MAX = 300_000
/** How long a job waits for its provider at most; then it ends, and can be resumed (E12). */
export const PROVIDER_WAIT_MS_MAX = 86_400_000

/** The longest time off that ends no job. It bounds the life of one whose work crashes its agent now and then, before its model has answered. */
const OFF_MS_MAX = 7 * DAY_MS

/** The pause before a job's next attempt, of which `failed` were in vain since this agent started. */
export const pauseBefore = (failed: number): number => Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** Math.min(failed, 16))

type Find = (rev: number) => ChoirEvent | undefined

/** The milliseconds for which no agent ran a job that this epoch continues. 0 where a wait for its provider was open, which counts them. */
export const timeOff = Effect.fnUntraced(function* ({ output, started_rev }: CoreLane, log: EventLog["Service"]) {
  const last = log.find(log.restored())
  if (last === undefined || started_rev > last.rev || waitOf(log.find(output.rev)) !== undefined) return 0
  const off_ms = (yield* Clock.currentTimeMillis) - Date.parse(last.created_at)
  return Math.min(Math.max(0, off_ms), OFF_MS_MAX)
})

/** The milliseconds of a job's waits that have ended, by the times of their events, and those off that its outputs know. */
const endedWaits = ({ lane, output, started_rev }: CoreLane, find: Find): number => {
  let total = 0
  let since: string | undefined
  for (let rev = started_rev; rev <= output.rev; rev += 1) {
    const event = find(rev)
    if (event?.event_type !== "ModelOutput" || event.lane !== lane || event.payload.purpose !== "turn") continue
    if (since !== undefined) total += Math.max(0, Date.parse(event.created_at) - Date.parse(since))
    total += event.payload.prompt?.off_ms ?? 0
    since = waitOf(event)?.since
  }
  return total
}

interface Waited {
  /** Of all waits, the open one included, and of the time off. */
  readonly total_ms: number
  /** Of the open one. */
  readonly open_ms: number | undefined
}

/** The waits of a job that this epoch runs, counted from its start by a clock that nobody sets, beside the time off before it. */
export const makeJobWaits = (first: CoreLane, find: Find, off_ms: number) => {
  let ended_ms = endedWaits(first, find) + off_ms
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
