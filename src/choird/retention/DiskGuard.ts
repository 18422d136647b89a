/**
 * Watches the home's file system (R50): agents are paused before the database has no room left, those that hold the most first, and woken
 * when there is space again. The operator only has to make room.
 */
import { Cause, Clock, Context, Effect, Layer, Result, Schedule, Semaphore } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import type { Config } from "#schema/Config.ts"
import { boundDms } from "#schema/ResourceBindings.ts"
import type { DiskStatus } from "#schema/SystemApi.ts"
import { logDeath, restarted } from "#src/shared/background.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { DISK_FIX, diskLimit, fileLimit } from "#src/shared/config/diskLimit.ts"
import { Disk, type Space } from "./Disk.ts"
import { DiskHolders, firstToPause } from "./DiskHolders.ts"
import { WorkspaceUsage } from "./WorkspaceUsage.ts"

/** The time between two looks at the free disk. */
const DISK_LOOK_MS = 5000
/** How far above its limit the free disk has to come before agents are woken. */
const DISK_WAKE_FACTOR = 1.1
/** The share of that limit below which all agents are paused; above it only those that hold the most. */
const DISK_ALL_SHARE = 0.5

/** Whether the disk is low now. Once it is, a little more than the limit has to be free before it no longer is. */
export const isLow = (wasLow: boolean, free: number, limit: number): boolean =>
  free < (wasLow ? Math.floor(limit * DISK_WAKE_FACTOR) : limit)

type Found = Omit<DiskStatus, "paused">

/** The state of a disk, by its bytes and by its files. Pure. */
const found = (before: Found | undefined, space: Space, retention: Config["retention"]): Found => {
  const { files, ...bytes } = space
  const limit_bytes = diskLimit(retention, space.total_bytes)
  const counted = files && { ...files, limit: fileLimit(retention, files.total) }
  const lacks_bytes = isLow(before?.lacks.includes("bytes") ?? false, space.free_bytes, limit_bytes)
  const lacks_files =
    counted !== undefined && isLow(before?.lacks.includes("files") ?? false, counted.free, counted.limit)
  const lacks = [...(lacks_bytes ? (["bytes"] as const) : []), ...(lacks_files ? (["files"] as const) : [])]
  return { ...bytes, limit_bytes, ...(counted === undefined ? {} : { files: counted }), low: lacks.length > 0, lacks }
}

/** Whether so little is left of the disk that all agents are paused. */
const isForAll = ({ files, free_bytes, limit_bytes }: Found): boolean =>
  free_bytes < limit_bytes * DISK_ALL_SHARE || (files !== undefined && files.free < files.limit * DISK_ALL_SHARE)

const lack = (free: string, limit: string, half: string, wake: string) =>
  `${free} are free; agents that hold the most are paused below ${limit}, all of them below ${half}, and they continue above ${wake}`

/** The cause and the fix, for `status`, doctor and refusals. */
export const lowText = (home: string, { files, free_bytes, lacks, limit_bytes }: Found) => {
  const texts = lacks.map((what) =>
    what === "bytes" || files === undefined
      ? lack(
          bytesText(free_bytes),
          bytesText(limit_bytes),
          bytesText(limit_bytes * DISK_ALL_SHARE),
          bytesText(limit_bytes * DISK_WAKE_FACTOR)
        )
      : lack(
          plural(files.free, "file"),
          plural(files.limit, "file"),
          plural(Math.floor(files.limit * DISK_ALL_SHARE), "file"),
          plural(Math.floor(files.limit * DISK_WAKE_FACTOR), "file")
        )
  )
  return `the disk of ${home} is almost full: ${texts.join("; ")}`
}

export class DiskGuard extends Context.Service<
  DiskGuard,
  {
    /** The result of the newest look; `undefined` where the file system does not report its space. */
    readonly status: Effect.Effect<DiskStatus | undefined>
    /** Looks at once. */
    readonly look: Effect.Effect<void>
  }
>()("choir/choird/DiskGuard") {
  /** Looks every DISK_LOOK_MS until the scope closes. */
  static readonly layer = Layer.effect(
    DiskGuard,
    Effect.suspend(() => make)
  )
}

/** Tells the person. A failure, as of a database without room, is only logged: `status` has the same news. */
const tell = Effect.fnUntraced(
  function* ({ agent_id, bindings }: AgentView, what: "paused" | "woken", text: string) {
    const outbox = yield* Outbox
    if (bindings === null) return
    const source_id = `disk:${what}:${agent_id}:${yield* Clock.currentTimeMillis}`
    yield* outbox.notify({ agent_id, dms: boundDms(bindings), source_id, text })
  },
  Effect.catchCause((cause) => Effect.logWarning("notification failed", cause))
)

/** The agents that are paused until the disk has space again. */
const makePaused = Effect.gen(function* () {
  const audit = yield* Audit
  const lifecycle = yield* Lifecycle
  const provide = Effect.provideService(Outbox, yield* Outbox)
  const paused = new Map<AgentId, AgentView>()

  const pause = Effect.fnUntraced(function* (view: AgentView, reason: string) {
    const { agent_id } = view
    yield* provide(
      tell(
        view,
        "paused",
        "I am pausing: the disk that I work on is almost full. My operator has to make room (choirctl prune). I will then continue on my own; you can keep sending me messages."
      )
    )
    if (!(yield* lifecycle.pause(agent_id, reason))) return
    paused.set(agent_id, view)
    yield* audit.record({ who: "choird", action: "agent.pause", agent_id, detail: { reason } })
  })

  const wake = Effect.fnUntraced(function* (view: AgentView) {
    const { agent_id } = view
    paused.delete(agent_id)
    const woken = yield* Effect.result(lifecycle.wake(agent_id))
    if (Result.isFailure(woken)) return yield* Effect.logError(`${agent_id} was not woken: ${woken.failure.message}`)
    if (!woken.success) return
    yield* audit.record({ who: "choird", action: "agent.wake", agent_id, detail: {} })
    yield* provide(tell(view, "woken", "There is space on the disk again, and I am continuing."))
  })

  return {
    has: ({ agent_id }: AgentView) => paused.has(agent_id),
    all: () => [...paused.values()],
    pause,
    wake
  }
})

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const disk = yield* Disk
  const holders = yield* DiskHolders
  const lifecycle = yield* Lifecycle
  const scope = yield* Effect.scope
  const usage = yield* WorkspaceUsage
  const paused = yield* makePaused
  const one = yield* Semaphore.make(1)
  let status: Found | undefined

  const counting = Effect.catchCause(usage.look, (cause) => Effect.logWarning("measuring the workspaces failed", cause))
  const first = (running: ReadonlyArray<AgentView>, { lacks }: Found) =>
    Effect.map(holders.holdersOf([...running, ...paused.all()]), (held) =>
      lacks.flatMap((what) => firstToPause(held, what).map(({ view }) => view))
    )

  const low = Effect.fnUntraced(function* (now: Found, wasLow: boolean) {
    const reason = lowText(config.home, now)
    yield* lifecycle.hold({ reason, hint: DISK_FIX })
    if (!wasLow) {
      yield* Effect.logError(`${reason}; to fix it: ${DISK_FIX}`)
      // The agent that filled the disk did so after the last count.
      yield* Effect.forkIn(logDeath("the measuring of workspaces")(counting), scope)
    }
    const running = (yield* lifecycle.list).filter((view) => view.status === "running" && !paused.has(view))
    const chosen = new Set(isForAll(now) ? running : yield* first(running, now))
    const unpaused = [...chosen].filter((view) => !paused.has(view))
    yield* Effect.forEach(unpaused, (view) => paused.pause(view, reason), { concurrency: "unbounded", discard: true })
  })

  const look = Effect.gen(function* () {
    const space = yield* disk.space(config.home)
    if (space === undefined) return
    const wasLow = status?.low ?? false
    const { config: running } = yield* config.current
    const now = found(status, space, running.retention)
    status = now
    if (now.low) return yield* low(now, wasLow)
    if (!wasLow) return
    yield* lifecycle.hold(undefined)
    yield* Effect.logInfo(`the disk has space again: ${bytesText(space.free_bytes)} free`)
    yield* Effect.forEach(paused.all(), paused.wake, { concurrency: "unbounded", discard: true })
  }).pipe(one.withPermit)

  yield* look.pipe(
    Effect.catchCauseIf(
      (cause) => !Cause.hasInterruptsOnly(cause),
      (cause) => Effect.logError("checking the free space failed", cause)
    ),
    Effect.repeat(Schedule.spaced(DISK_LOOK_MS)),
    restarted("the look at the free space"),
    Effect.forkScoped
  )

  return DiskGuard.of({
    look,
    status: Effect.map(lifecycle.paused, (agents) => (status === undefined ? undefined : { ...status, paused: agents }))
  })
})
