/** The steps of one time of a scheduled skill: claimed, ordered in a session, answered. Each may be repeated after a crash. */
import { Clock, DateTime, Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import type { SkillName } from "#schema/Skill.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { inTransaction, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { insertOutbox, Outbox } from "#src/choird/queues/Outbox.ts"
import { unaskedPlace } from "#src/choird/queues/unaskedPlace.ts"
import { withdrawSignal } from "#src/choird/queues/Signals.ts"
import type { SessionRow } from "#src/choird/sessions/SessionStore.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { zoneOf } from "#src/shared/config/people.ts"
import type { SkillSchedule } from "#src/shared/image/skillSchedule.ts"
import { localMinute } from "#src/shared/text/localTime.ts"
import { decideSlot, isLate, type LastSlot, scheduleText, SLOT_LATE_MS_MAX, SLOTS_MISSED_MAX } from "./decideSlot.ts"
import { claimSlot, moveSlot, type OpenSlot, type Slot } from "./slotRows.ts"

const LATE = `${SLOT_LATE_MS_MAX / 3_600_000} hours`

type Told = Pick<Slot, "skill" | "slot_ms"> & { readonly agent_id: AgentId }

/** A notice about a time, for the one who reads it at a DM: in their time zone, with advice that they can follow there. */
type Notice = (config: Config, dm: ResourceName) => string

const due = ({ agent_id, skill, slot_ms }: Told, config: Config, dm: ResourceName) =>
  `The skill ${skill} of ${agent_id} was due at ${localMinute(new Date(slot_ms).toISOString(), zoneOf(config, dm))}`

/** How a skipped skill is run now. Only those at a console have choirctl. */
const runNow = ({ agent_id, skill }: Told, config: Config, dm: ResourceName): string => {
  const gateway = config.dms[dm]?.gateway
  return gateway !== undefined && traitsOf(config, gateway).is_local
    ? `To run it now: choirctl skill run ${agent_id} ${skill}`
    : "Ask me to run it now."
}

/** Of times that passed while the agent or choird was off. `runs`: the newest of all is not too old and runs now. */
const skippedText =
  (slot: Told, missed: number, runs: boolean): Notice =>
  (config, dm) => {
    const count = missed >= SLOTS_MISSED_MAX ? `at least ${SLOTS_MISSED_MAX}` : String(missed)
    const times = missed === 1 ? "1 run" : `${count} runs`
    const off = `${times} came due while the agent or choird was off, more than ${LATE} ago`
    return runs
      ? `${due(slot, config, dm)} and is running now. Skipped: ${off}.`
      : `${due(slot, config, dm)} and was skipped: ${off}. ${runNow(slot, config, dm)}`
  }

/** Of a time that could not be ordered until it was too late. */
const lateText =
  (slot: Told, reason: string): Notice =>
  (config, dm) =>
    `${due(slot, config, dm)} and was skipped after ${LATE}: ${reason}. ${runNow(slot, config, dm)}`

/** Of a time at which the agent did not begin it. */
const refusedText =
  (slot: Told, reason: string): Notice =>
  (config, dm) =>
    `${due(slot, config, dm)} and did not start: ${reason}`

/** Characters of a reason in a row. */
const REASON_CHARS_MAX = 500

const ENDED_BEFORE = "the session that was to run it ended before the agent began"

/** The second step where the first one did something. */
const both = <E, R>(first: Effect.Effect<boolean, E, R>, second: Effect.Effect<boolean, E, R>) =>
  Effect.flatMap(first, (done) => (done ? second : Effect.succeed(false)))

/** An agent that runs, in its session. */
export interface Place {
  readonly agent_id: AgentId
  readonly image_version: string
  readonly session: SessionRow
}

/** The name of a time in requests and messages. */
const slotName = ({ skill, slot_ms }: Slot) => `schedule:${skill}:${new Date(slot_ms).toISOString()}`

const makeSettle = Effect.gen(function* () {
  const config = yield* ConfigStore
  const onDatabase = yield* useDatabase
  const outbox = yield* Outbox
  const sql = yield* SqlClient.SqlClient

  /** Stores a row together with the message about it; `write` says whether the row is this choird's, and so is the answer. */
  return <E>(
    place: Place,
    slot: Slot,
    write: Effect.Effect<boolean, E, SqlClient.SqlClient>,
    notice: Notice | undefined
  ) =>
    Effect.gen(function* () {
      if (!(yield* write)) return false
      const { agent_id, session } = place
      const current = (yield* config.current).config
      if (notice === undefined) return true
      const bound = yield* unaskedPlace(current, agent_id, boundDms(session.resource_bindings))
      if (bound === undefined) return true
      const row = { ...bound, agent_id, session_id: null, kind: "notice", in_reply_to: null } as const
      yield* insertOutbox(current, [
        { ...row, source: "choird", source_id: `${agent_id}:${slotName(slot)}`, text: notice(current, bound.dm) }
      ])
      yield* sql.afterCommit(outbox.wake(bound.dm))
      return true
    }).pipe(inTransaction, onDatabase)
})

export const makeSlotSteps = Effect.gen(function* () {
  const audit = yield* Audit
  const onDatabase = yield* useDatabase
  const settle = yield* makeSettle
  const steering = yield* Steering
  const zone = DateTime.zoneMakeLocal()

  const skip = Effect.fnUntraced(function* (
    place: Place,
    slot: OpenSlot,
    reason: string,
    first: Effect.Effect<boolean, SqlError.SqlError, SqlClient.SqlClient> = Effect.succeed(true)
  ) {
    const short = reason.slice(0, REASON_CHARS_MAX)
    const moved = both(first, moveSlot(slot, { state: "skipped", reason: short }))
    if (!(yield* settle(place, slot, moved, lateText(slot, reason)))) return
    const { agent_id, skill } = slot
    yield* audit.record({ who: "schedule", action: "skill.skip", agent_id, detail: { skill, reason: short } })
  })

  /** Orders a claimed time in its session. A session that ended without the order gives the time to the one that runs. */
  const order = Effect.fnUntraced(function* (place: Place, slot: OpenSlot) {
    const now_ms = yield* Clock.currentTimeMillis
    const { schedule, session_id, skill } = slot
    const request = { session_id, request_id: slotName(slot), who: "schedule", wait_ms: 0 }
    const ordered = yield* Effect.result(
      steering.order(request, { type: "StartSkill", skill, trigger: `schedule: ${schedule}` })
    )
    if (Result.isSuccess(ordered)) return yield* onDatabase(inTransaction(moveSlot(slot, { state: "ordered" })))
    const { failure } = ordered
    if (failure._tag === "DatabaseAway") return yield* failure
    if (isLate(slot.slot_ms, now_ms)) return yield* skip(place, slot, failure.message)
    const isGone = failure._tag === "SessionUnknown" || failure.kind === "NOT_RUNNING"
    if (isGone && session_id !== place.session.session_id)
      yield* onDatabase(inTransaction(moveSlot(slot, { state: "claimed", session_id: place.session.session_id })))
  })

  /**
   * Gives an order to the session that runs, where its own ended before the agent took it. It is withdrawn there in the same transaction, so that
   * no two sessions have it.
   */
  const orderElsewhere = Effect.fnUntraced(function* (place: Place, slot: OpenSlot) {
    const withdraw = withdrawSignal(slot.session_id, slotName(slot))
    if (isLate(slot.slot_ms, yield* Clock.currentTimeMillis)) return yield* skip(place, slot, ENDED_BEFORE, withdraw)
    const { session_id } = place.session
    yield* settle(place, slot, both(withdraw, moveSlot(slot, { state: "claimed", session_id })), undefined)
  })

  /** Asks for the outcome of an order. A person gets a message about one that the agent refused. */
  const ask = Effect.fnUntraced(function* (place: Place, slot: OpenSlot) {
    const answer = yield* steering.answer(slot.session_id, slotName(slot))
    if (answer?.ended === null) {
      if (slot.session_id !== place.session.session_id) yield* orderElsewhere(place, slot)
      return
    }
    const refused = answer === undefined ? undefined : (answer.ended.refused ?? undefined)
    yield* settle(
      place,
      slot,
      refused === undefined
        ? moveSlot(slot, { state: "started" })
        : moveSlot(slot, { state: "refused", reason: refused.slice(0, REASON_CHARS_MAX) }),
      refused === undefined ? undefined : refusedText(slot, refused)
    )
  })

  /** Claims the time that a skill is due at, or notes that it is skipped. */
  const claim = Effect.fnUntraced(function* (
    place: Place,
    skill: SkillName,
    schedules: ReadonlyArray<SkillSchedule>,
    last: LastSlot | undefined
  ) {
    const decided = decideSlot(schedules, zone, last, yield* Clock.currentTimeMillis)
    if (decided === undefined) return
    const { agent_id } = place
    const slot: Slot = { agent_id, skill, slot_ms: decided.slot_ms }
    const missed = decided.type === "begin" ? 0 : decided.missed
    const state = ({ begin: "passed", run: "claimed", skip: "skipped" } as const)[decided.type]
    const row = {
      state,
      schedule: scheduleText(schedules),
      session_id: state === "claimed" ? place.session.session_id : null,
      missed
    }
    yield* settle(
      place,
      slot,
      claimSlot(slot, row),
      missed === 0 ? undefined : skippedText(slot, missed, decided.type === "run")
    )
    if (missed > 0) yield* audit.record({ who: "schedule", action: "skill.skip", agent_id, detail: { skill, missed } })
  })

  return { ask, claim, order }
})
