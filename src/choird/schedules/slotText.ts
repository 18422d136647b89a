/** Messages to a person about a time at which a skill did not begin. Pure. */
import { DateTime } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { SLOT_LATE_MS_MAX, SLOTS_MISSED_MAX } from "./decideSlot.ts"
import type { Slot } from "./slotRows.ts"

const LATE = `${SLOT_LATE_MS_MAX / 3_600_000} hours`

const when = (slot_ms: number, zone: DateTime.TimeZone): string => {
  const { day, hour, minute, month, year } = DateTime.toParts(DateTime.makeZonedUnsafe(slot_ms, { timeZone: zone }))
  const two = (value: number) => String(value).padStart(2, "0")
  return `${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}`
}

type Told = Pick<Slot, "skill" | "slot_ms"> & { readonly agent_id: AgentId }

const due = ({ agent_id, skill, slot_ms }: Told, zone: DateTime.TimeZone) =>
  `The skill ${skill} of ${agent_id} was due at ${when(slot_ms, zone)}`

/** Of times that passed while the agent or choird was off. `runs`: the newest of all is not too old and runs now. */
export const skippedText = (slot: Told, zone: DateTime.TimeZone, missed: number, runs: boolean): string => {
  const count = missed >= SLOTS_MISSED_MAX ? `at least ${SLOTS_MISSED_MAX}` : String(missed)
  const times = missed === 1 ? "1 time" : `${count} times`
  const off = `${times} passed while the agent or choird was off, more than ${LATE} ago`
  return runs
    ? `${due(slot, zone)} and runs now. Skipped: ${off}.`
    : `${due(slot, zone)} and was skipped: ${off}. To run it now: choirctl skill run ${slot.agent_id} ${slot.skill}`
}

/** Of a time that could not be ordered until it was too late. */
export const lateText = (slot: Told, zone: DateTime.TimeZone, reason: string): string =>
  `${due(slot, zone)} and was skipped after ${LATE}: ${reason}. To run it now: choirctl skill run ${slot.agent_id} ${slot.skill}`

/** Of a time at which the agent did not begin it. */
export const refusedText = (slot: Told, zone: DateTime.TimeZone, reason: string): string =>
  `${due(slot, zone)} and did not start: ${reason}`
