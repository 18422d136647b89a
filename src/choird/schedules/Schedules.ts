/**
 * The skills that begin at a time. choird owns the clock: each time is one row, which is claimed before the agent is asked and holds the session
 * that is asked, so that a crash between any two steps neither loses a time nor begins a skill twice.
 */
import { Clock, Context, Cron, DateTime, Effect, Exit, FileSystem, Layer, Result, type Scope } from "effect"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import { restarted } from "#src/shared/background.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"
import { imageSkills } from "#src/choird/images/ImageFolder.ts"
import { Images } from "#src/choird/images/Images.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { schedulesOf, type SkillSchedule } from "#src/shared/image/skillSchedule.ts"
import { forgetSlots, lastSlots, openSlots } from "./slotRows.ts"
import { makeSlotSteps, type Place } from "./slotSteps.ts"

/** The time between two looks, and so how late a skill may begin. */
const SCHEDULE_LOOK_MS = 15_000
/** Agents whose schedules are remembered between looks. */
const SCHEDULES_CACHED_MAX = 1000

/** The scheduled skills of an image. */
type Scheduled = ReadonlyMap<SkillName, ReadonlyArray<SkillSchedule>>

/** When a skill begins next. */
export interface NextRun {
  readonly skill: SkillName
  readonly at_ms: number
}

/** Begins skills at their times. */
export class Schedules extends Context.Service<
  Schedules,
  {
    /** Begins what is due in running agents, and finds out how what was begun earlier ended. */
    readonly look: Effect.Effect<void, DatabaseAway>
    /** The scheduled skills of an agent with their next times, the soonest first. */
    next(agent_id: AgentId): Effect.Effect<ReadonlyArray<NextRun>, DatabaseAway>
    /** Looks every SCHEDULE_LOOK_MS for as long as the scope lives. */
    readonly run: Effect.Effect<void, never, Scope.Scope>
  }
>()("choir/choird/Schedules") {
  static readonly layer = Layer.effect(
    Schedules,
    Effect.suspend(() => make)
  )
}

/** The next times of skills, the soonest first. */
const nextRuns = Effect.fnUntraced(function* (scheduled: Scheduled) {
  const zone = DateTime.zoneMakeLocal()
  const now = new Date(yield* Clock.currentTimeMillis)
  const runs = [...scheduled].map(([skill, schedules]) => ({
    skill,
    at_ms: Math.min(...schedules.map(({ times }) => Cron.next(times(zone), now).getTime()))
  }))
  return runs.toSorted((a, b) => a.at_ms - b.at_ms)
})

const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  const onDatabase = yield* useDatabase
  const sessions = yield* SessionStore
  const { ask, claim, order } = yield* makeSlotSteps
  const known = new BoundedMap<AgentId, { readonly image_version: string; readonly scheduled: Scheduled }>(
    SCHEDULES_CACHED_MAX
  )

  /** The scheduled skills of the image that the agent runs. One that cannot be read is left to those that report it. */
  const scheduledIn = Effect.fnUntraced(function* ({ agent_id, image_version }: Omit<Place, "session">) {
    const cached = known.get(agent_id)
    if (cached?.image_version === image_version) return cached.scheduled
    const read = yield* Effect.flatMap(images.pathOf(agent_id, image_version), imageSkills).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.result
    )
    if (Result.isFailure(read)) return new Map<SkillName, ReadonlyArray<SkillSchedule>>()
    const scheduled: Scheduled = new Map(
      read.success.flatMap((spec) => {
        const schedules = schedulesOf(spec)
        return schedules.length === 0 ? [] : [[spec.name, schedules] as const]
      })
    )
    yield* onDatabase(forgetSlots(agent_id, [...scheduled.keys()]))
    known.set(agent_id, { image_version, scheduled })
    return scheduled
  })

  const lookAt = Effect.fnUntraced(function* (place: Place) {
    const scheduled = yield* scheduledIn(place)
    const last = scheduled.size === 0 ? new Map() : yield* onDatabase(lastSlots(place.agent_id))
    for (const [skill, schedules] of scheduled) yield* claim(place, skill, schedules, last.get(skill))
    for (const slot of yield* onDatabase(openSlots(place.agent_id)))
      yield* slot.state === "claimed" ? order(place, slot) : ask(place, slot)
  })

  /** The session of an agent that runs. One that is stopped, paused or starting keeps its times until it runs. */
  const placeOf = Effect.fnUntraced(function* (agent_id: AgentId, session_id: SessionId, image_version: string) {
    const session = yield* sessions.get(session_id)
    return session._tag === "Some" && session.value.status === "active"
      ? { agent_id, image_version, session: session.value }
      : undefined
  })

  /** Agents whose look fails do not keep the others from theirs; the first failure is the look's. */
  const look = Effect.gen(function* () {
    const failures: Array<Exit.Exit<void, DatabaseAway>> = []
    for (const { agent_id, image_version, session_id, status } of yield* lifecycle.list) {
      if (status !== "running" || session_id === null || image_version === null) continue
      const place = yield* placeOf(agent_id, session_id, image_version)
      const looked = place === undefined ? Exit.void : yield* Effect.exit(lookAt(place))
      if (Exit.isFailure(looked)) failures.push(looked)
    }
    yield* failures[0] ?? Effect.void
  })

  const next = Effect.fn("Schedules.next")(function* (agent_id: AgentId) {
    const image_version = (yield* lifecycle.list).find((one) => one.agent_id === agent_id)?.image_version ?? null
    return image_version === null ? [] : yield* nextRuns(yield* scheduledIn({ agent_id, image_version }))
  })

  const loop = Effect.andThen(
    Effect.catchCause(look, (cause) => Effect.logWarning("schedules are checked again later", cause)),
    Effect.sleep(SCHEDULE_LOOK_MS)
  ).pipe(Effect.forever)

  return Schedules.of({ look, next, run: Effect.asVoid(Effect.forkScoped(restarted("the look at schedules")(loop))) })
})
