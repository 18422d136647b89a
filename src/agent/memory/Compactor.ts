/**
 * Keeps the windows of lanes small: when one is full, or on request, the lane's own model says what to remember of the oldest events, at the end
 * of the very prompt that it continues from, and one commit swaps them for that. The lane keeps running meanwhile and waits only where its next
 * prompt would be over the limit. Where the model gives nothing usable twice, lines made without a model stand in (D51).
 */
import { Clock, Context, Deferred, Effect, FiberSet, Layer, Queue } from "effect"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { logDeath } from "#src/shared/background.ts"
import { compactionLimit } from "#src/shared/session/compactWindow.ts"
import { isUnheard } from "#src/shared/session/fold.ts"
import { endOfLabel, hasExpired, isDue, mayEnd } from "#src/shared/session/labels.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { CoreLane, EdgeLane, SessionState } from "#src/shared/session/State.ts"
import { pictureTokens } from "#src/shared/model/pictures.ts"
import { withServices } from "#src/shared/withServices.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { lanesMap } from "#src/agent/arbiter/LivingMap.ts"
import { foldingOf, leavingCount } from "./compaction.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ModelCalls, type Shortening } from "#src/agent/model/ModelCalls.ts"
import type { Reading } from "#src/agent/model/prompt/promptMessages.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { newestWords, type Plan, writeSummary } from "./writeSummary.ts"
import { isClearlySmall, promptTokens, windowFill, windowLimit } from "./windowSize.ts"
import type { LanePrefix } from "./LanePrefix.ts"

/** Orders to compact one lane that wait for the compaction under way; more than that are one (the oldest are sent again by choird). */
const COMPACTION_ORDERS_MAX = 100
/** The share of the limit at which a compaction begins, so that most lanes never wait for one. */
const BEGINS_AT = 0.92
/** Of what a window may hold, the share that stays after a compaction at most. */
const STAYS_MAX = 1 / 3
/** A compaction that freed nothing is not tried again before the prompt has grown by this share of the limit. */
const BACK_OFF = 0.1
/** The fill of a window at which a compaction begins whatever its tokens, and at which the lane waits for it. */
const FILL_BEGINS_AT = 0.7
const FILL_WAITS_AT = 0.85
/** The prefixes of lanes, and what of results stays out of prompts. */
export interface LaneView {
  readonly isMasked: Reading["isMasked"]
  /** `undefined` for a job that does not run. */
  readonly prefix: (lane: LaneId) => Effect.Effect<LanePrefix | undefined>
}

/** Compacts the windows of lanes. */
export class Compactor extends Context.Service<
  Compactor,
  {
    /** Orders a compaction of all that can go, however small the window is. A signal's order ends in an event (docs/protocol.md, Push stream). */
    request(lane: LaneId, signal_id?: string): Effect.Effect<void>
    /** Begins a compaction where a lane's next call would pass the limit soon, and waits for it where it would pass it now. */
    before(lane: LaneId, prefix: LanePrefix): Effect.Effect<void>
    /** Compactions for a call of the lane whose provider finds the prompt too long. */
    shortening(lane: LaneId): Shortening
    /** Compacts what is full or ordered, one call a lane at a time. */
    run(view: LaneView): Effect.Effect<never>
  }
>()("choir/agent/Compactor") {
  static readonly layer = Layer.effect(
    Compactor,
    Effect.suspend(() => make())
  )
}

const jobIdOf = (memory: EdgeLane | CoreLane | undefined) =>
  memory !== undefined && "job_id" in memory ? memory.job_id : undefined

/**
 * The reason of a compaction: a person ordered it, the window is full, or the provider refused its prompt. Then the model's context is smaller than
 * config.json says, and only what was refused tells how small.
 */
type Reason = "ordered" | "full" | "refused"

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((all, each) => all + each, 0)

/**
 * Whether all text from outside could leave edge now: no output is open that would stay. While a turn is open its call may be under way, whose
 * prompt shows such text, unless the lane waits for the compaction.
 */
const mayLeave = (state: SessionState, isAwaited: boolean): boolean =>
  state.edge.output_rev === 0 && (state.edge.turn === undefined || isAwaited) && mayEnd(state)

/** The plan of a lane's compaction; undefined where nothing can leave. An order takes all that can go. */
const plan = Effect.fnUntraced(function* (lane: LaneId, view: LaneView, reason: Reason, isAwaited: () => boolean) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const settings = yield* AgentSettings
  const tokens = yield* TokenCount
  const prefix = yield* view.prefix(lane)
  const state = arbiter.state()
  const memory = laneOf(state, lane)
  if (memory === undefined || prefix === undefined) return undefined
  const folding = foldingOf(log, memory, { isMasked: view.isMasked, offered: offeredOf(prefix.tools) })
  const isEnding = lane === EDGE && mayLeave(state, isAwaited()) && isDue(state.edge, yield* Clock.currentTimeMillis)
  const limit = yield* windowLimit(prefix)
  const factor = tokens.factor(prefix.model)
  const sizes = yield* Effect.forEach(folding, ({ messages }) =>
    Effect.map(tokens.count(messages), (counted) => counted * factor + pictureTokens(messages))
  )
  const limit_rev = compactionLimit(state, lane)
  const room = reason === "refused" ? Math.min(limit, sum(sizes)) : limit
  const stay =
    reason === "ordered" || isEnding
      ? { events: 0, tokens: 0 }
      : { events: settings.current().config.memory.event_window, tokens: room * STAYS_MAX }
  const count = leavingCount(folding, sizes, stay, isEnding ? endOfLabel(state, limit_rev) : limit_rev)
  // A quotation may be all that is left of text from outside.
  const boundary_rev = folding[count - 1]?.event.rev ?? (isEnding ? memory.boundary : 0)
  return boundary_rev < memory.boundary || (boundary_rev === memory.boundary && !isEnding)
    ? undefined
    : ({
        memory,
        prefix,
        isMasked: view.isMasked,
        leaving: folding.slice(0, count),
        staying: folding.slice(count),
        boundary_rev,
        isEnding
      } satisfies Plan)
})

/** Compacts one lane; whether its window became shorter. */
const compact = Effect.fn("Compactor.compact")(function* (
  lane: LaneId,
  view: LaneView,
  reason: Reason,
  signal_id: string | undefined,
  isAwaited: () => boolean
) {
  const arbiter = yield* Arbiter
  const planned = yield* plan(lane, view, reason, isAwaited)
  if (planned === undefined) return false
  const { deltas, split } = yield* writeSummary(lane, planned)
  const memory = laneOf(arbiter.state(), lane)
  if (memory === undefined || jobIdOf(memory) !== jobIdOf(planned.memory)) return false
  const { boundary_rev } = planned
  const words = yield* newestWords(planned)
  const order = { is_awaited: isAwaited(), ...(signal_id === undefined ? {} : { signal_id }) }
  return yield* arbiter.commit({ type: "Compact", lane, deltas, boundary_rev, words, ...split, ...order }).pipe(
    Effect.as(true),
    Effect.catch(({ reason }) => Effect.as(Effect.logWarning(`the compaction of ${lane} failed`, reason), false))
  )
})

/** The orders to compact, by lane, with the ids of their signals; the newest of many. */
const makeOrders = () => {
  const orders = new Map<LaneId, ReadonlyArray<string | undefined>>()
  return {
    lanes: () => orders.keys(),
    add: (lane: LaneId, signal_id: string | undefined) =>
      orders.set(lane, [...(orders.get(lane) ?? []), signal_id].slice(-COMPACTION_ORDERS_MAX)),
    take: (lane: LaneId): ReadonlyArray<string | undefined> => {
      const known = orders.get(lane) ?? []
      orders.delete(lane)
      return known
    }
  }
}

/** The compactions that are due or ordered, one a lane at a time; `settle` is the whole of one. */
const makeTurns = Effect.fnUntraced(function* () {
  const wake = yield* Queue.sliding<void>(1)
  const orders = makeOrders()
  const due = new Map<LaneId, Deferred.Deferred<void>>()
  const waiting = new Set<LaneId>()
  let isRunning = false

  /** The lane's compaction that began or is about to. */
  const begin = (lane: LaneId) =>
    Effect.sync(() => {
      const done = due.get(lane) ?? Deferred.makeUnsafe<void>()
      due.set(lane, done)
      Queue.offerUnsafe(wake, undefined)
      return done
    })
  const run = <R>(
    settle: (lane: LaneId, ordered: ReadonlyArray<string | undefined>) => Effect.Effect<void, never, R>
  ) =>
    Effect.gen(function* () {
      const fibers = yield* FiberSet.make<void>()
      const busy = new Set<LaneId>()
      // The lane is free before the wake: an order that came meanwhile would else be passed over, and nothing wakes for it again.
      const over = (lane: LaneId) =>
        Effect.suspend(() => {
          const done = due.get(lane)
          due.delete(lane)
          busy.delete(lane)
          Queue.offerUnsafe(wake, undefined)
          return done === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(done, undefined))
        })
      const ended = Effect.suspend(() => {
        isRunning = false
        return Effect.forEach([...due.keys()], over, { discard: true })
      })
      yield* Effect.addFinalizer(() => ended)
      isRunning = true
      return yield* Effect.forever(
        Effect.gen(function* () {
          yield* Queue.take(wake)
          for (const lane of new Set([...due.keys(), ...orders.lanes()])) {
            if (busy.has(lane)) continue
            busy.add(lane)
            const work = logDeath(`the compaction of ${lane}`)(settle(lane, orders.take(lane)))
            yield* FiberSet.run(fibers, Effect.ensuring(work, over(lane)))
          }
        })
      )
    }).pipe(Effect.scoped)
  return {
    order: (lane: LaneId, signal_id?: string) =>
      Effect.sync(() => {
        orders.add(lane, signal_id)
        Queue.offerUnsafe(wake, undefined)
      }),
    begin,
    /** Begins one and waits until it is over; at once where nothing runs them any more. */
    done: (lane: LaneId) =>
      Effect.sync(() => waiting.add(lane)).pipe(
        Effect.andThen(begin(lane)),
        Effect.flatMap((done) => (isRunning ? Deferred.await(done) : Effect.void)),
        Effect.ensuring(Effect.sync(() => waiting.delete(lane)))
      ),
    /** Whether the lane waits for the compaction under way, so that no call of it is under way. */
    isAwaited: (lane: LaneId) => waiting.has(lane),
    isUnderWay: (lane: LaneId) => due.has(lane),
    run
  }
})

/** Whether edge has text from outside whose time is over, and all of it could leave. */
const mayShed = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  return mayLeave(arbiter.state(), true) && hasExpired(arbiter.state().edge, yield* Clock.currentTimeMillis)
})

/** Does a lane's compaction and ends the orders that it answers. */
const settle = Effect.fnUntraced(function* (
  lane: LaneId,
  view: LaneView,
  ordered: ReadonlyArray<string | undefined>,
  isRefused: boolean,
  isAwaited: () => boolean
) {
  const arbiter = yield* Arbiter
  const signals = ordered.flatMap((signal_id) => signal_id ?? [])
  const reason = ordered.length > 0 ? "ordered" : isRefused ? "refused" : "full"
  yield* compact(lane, view, reason, signals[0], isAwaited)
  for (const signal_id of signals.filter((each) => isUnheard(each)(arbiter.state())))
    yield* commitEnd(arbiter, { type: "Compact", lane, deltas: [], boundary_rev: 0, signal_id }, isUnheard(signal_id))
})

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  // Only these: the loggers and spans of who runs it stay as they are.
  const provide = withServices(
    Context.pick(
      AgentSettings,
      Arbiter,
      EventLog,
      ModelCalls,
      TokenCount
    )(yield* Effect.context<AgentSettings | Arbiter | EventLog | ModelCalls | TokenCount>())
  )
  const log = yield* EventLog
  const turns = yield* makeTurns()
  // Lanes whose prompt their provider refused as too long, until their next compaction.
  const refused = lanesMap<true>(arbiter.state)
  // The tokens of a prompt whose window could not be made shorter.
  const backedOff = lanesMap<number>(arbiter.state)

  const boundaryOf = (lane: LaneId) => laneOf(arbiter.state(), lane)?.boundary ?? 0
  const backOff = (lane: LaneId, tokens: number, isShorter: boolean) => {
    if (isShorter) backedOff.delete(lane)
    else backedOff.set(lane, tokens)
  }

  const before = Effect.fnUntraced(function* (lane: LaneId, prefix: LanePrefix) {
    // Text from outside whose time is over leaves before a turn's first call, so that the turn begins without its label.
    if (lane === EDGE && (yield* mayShed)) return yield* turns.done(lane)
    const boundary = boundaryOf(lane)
    const fill = windowFill(log, laneOf(arbiter.state(), lane)?.window ?? [])
    if (fill <= FILL_BEGINS_AT && (yield* isClearlySmall(lane, prefix, BEGINS_AT))) return
    const limit = yield* windowLimit(prefix)
    const tokens = yield* promptTokens(lane, prefix)
    // A compaction that ended while tokens were counted has made another prompt of it.
    if (boundaryOf(lane) !== boundary) return
    if (tokens <= limit * BEGINS_AT && fill <= FILL_BEGINS_AT) return
    const failed = backedOff.get(lane)
    if (failed !== undefined && tokens < failed + limit * BACK_OFF) return
    const isOver = tokens > limit || fill > FILL_WAITS_AT
    yield* isOver ? turns.done(lane) : turns.begin(lane)
    if (!turns.isUnderWay(lane)) backOff(lane, tokens, boundaryOf(lane) > boundary)
  })

  return Compactor.of({
    request: turns.order,
    before: (lane, prefix) => provide(before(lane, prefix)),
    shortening: (lane) => {
      const refuse = Effect.sync(() => refused.set(lane, true))
      return {
        now: Effect.andThen(refuse, turns.done(lane)),
        later: Effect.asVoid(Effect.andThen(refuse, turns.begin(lane)))
      }
    },
    run: (view) =>
      provide(
        turns.run((lane, ordered) =>
          Effect.suspend(() => settle(lane, view, ordered, refused.delete(lane), () => turns.isAwaited(lane)))
        )
      )
  })
})
