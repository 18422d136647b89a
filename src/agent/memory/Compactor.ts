/**
 * Keeps the windows of lanes small: when one is full, or on request, a model says what to remember of the oldest
 * events, and one commit swaps them for that. The lane keeps running meanwhile; a call that fails leaves its window as it is.
 */
import { Context, Effect, FiberSet, Layer, Queue } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import type { AgentConfig } from "#schema/Config.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { compactionLimit } from "#src/shared/session/compacted.ts"
import { isUnheard } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { CoreLane, EdgeLane } from "#src/shared/session/State.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitEnd } from "#src/agent/arbiter/Arbiter.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { textsOf } from "#src/agent/model/Conversation.ts"
import { compactionPrompt, deltasOf, deltaTool, foldedCount, type Folding, foldingOf } from "./compaction.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ImageTexts } from "#src/agent/image/ImageTexts.ts"
import { ModelCalls, presentModel } from "#src/agent/model/ModelCalls.ts"
import { coreSystem, edgeSystem } from "#src/agent/model/prompt/Prompt.ts"
import type { IsMasked } from "#src/agent/model/prompt/promptMessages.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"
import { PROMPT_CHARS_PER_TOKEN, Tokens } from "#src/agent/model/Tokens.ts"

/** Orders to compact one lane that wait for the compaction under way; more than that are one (the oldest are sent again by choird). */
const COMPACTION_ORDERS_MAX = 100

/** Compacts the windows of lanes. */
export class Compactor extends Context.Service<
  Compactor,
  {
    /** Orders a compaction of all that can go, however small the window is. A signal's order ends in an event (docs/protocol.md, Push stream). */
    request(lane: LaneId, signal_id?: string): Effect.Effect<void>
    /** Compacts what is full or ordered, one call a lane at a time; `isMasked` as in prompts. */
    run(isMasked: IsMasked): Effect.Effect<never>
  }
>()("choir/agent/memory/Compactor") {
  static readonly layer = Layer.effect(
    Compactor,
    Effect.suspend(() => make())
  )
}

/** The part of a lane's window that a summary replaces. */
interface Plan {
  readonly memory: EdgeLane | CoreLane
  readonly folding: ReadonlyArray<Folding>
  readonly boundary_rev: number
}

const jobIdOf = (memory: EdgeLane | CoreLane | undefined) =>
  memory !== undefined && "job_id" in memory ? memory.job_id : undefined

/** After these a lane's window is measured: it grew by what a model said or a tool found. */
const GROWS: ReadonlySet<ChoirEvent["event_type"]> = new Set(["ModelOutput", "ToolResultCommitted", "AgentMessage"])

const modelOf = (config: AgentConfig, memory: EdgeLane | CoreLane): string =>
  "job_id" in memory ? presentModel(config, memory.lane, memory.model) : config.llm

/** Tokens that the window may take: a share of what the model's context leaves beside the parts that never go. */
const threshold = Effect.fnUntraced(function* (memory: EdgeLane | CoreLane) {
  const settings = yield* AgentSettings
  const skills = yield* SkillRegistry
  const texts = yield* ImageTexts
  const { config } = settings.current()
  const model = settings.model(modelOf(config, memory))
  const system = "job_id" in memory ? coreSystem(texts, skills) : edgeSystem(texts, skills)
  const fixed = Math.ceil((system.content ?? "").length / PROMPT_CHARS_PER_TOKEN)
  const context = model === undefined ? 0 : model.context_window - outputTokensMax(model) - fixed
  return Math.max(0, config.memory.compact_at * context)
})

const isFull = Effect.fnUntraced(function* (memory: EdgeLane | CoreLane, folding: ReadonlyArray<Folding>) {
  const settings = yield* AgentSettings
  const tokens = yield* Tokens
  const { config } = settings.current()
  if (memory.window.length >= config.memory.event_window) return true
  const limit = (yield* threshold(memory)) / tokens.factor(modelOf(config, memory))
  const window = textsOf(folding.flatMap(({ messages }) => messages))
  return !tokens.certainlyBelow(window, limit) && (yield* tokens.count(window)) > limit
})

/** The plan of a lane's compaction; undefined where its window is not full and nobody ordered one. */
const plan = Effect.fnUntraced(function* (
  memory: EdgeLane | CoreLane,
  limit_rev: number,
  ordered: boolean,
  isMasked: IsMasked
) {
  const log = yield* EventLog
  const settings = yield* AgentSettings
  const folding = foldingOf(log, memory, isMasked)
  if (!ordered && !(yield* isFull(memory, folding))) return undefined
  const { event_window } = settings.current().config.memory
  const limit = yield* threshold(memory)
  const stay = ordered
    ? { events: 0, chars: 0 }
    : { events: Math.floor(event_window / 2), chars: (limit * PROMPT_CHARS_PER_TOKEN) / 2 }
  const count = foldedCount(folding, stay, limit_rev, limit * PROMPT_CHARS_PER_TOKEN)
  const last = folding[count - 1]
  return last === undefined
    ? undefined
    : ({ memory, folding: folding.slice(0, count), boundary_rev: last.event.rev } satisfies Plan)
})

/** The model's answer; no deltas when the call failed, which may also mean that the session's limit is reached. */
const ask = Effect.fnUntraced(function* (lane: LaneId, { folding, memory }: Plan) {
  const calls = yield* ModelCalls
  const settings = yield* AgentSettings
  const model = modelOf(settings.current().config, memory)
  return yield* calls
    .ask(lane, "compaction", model, [deltaTool], () => compactionPrompt(memory.summary, folding))
    .pipe(
      Effect.map((output) => (output === undefined ? [] : deltasOf(output, memory.summary, folding))),
      Effect.orElseSucceed(() => [])
    )
})

const compaction = (lane: LaneId, deltas: ReturnType<typeof deltasOf>, boundary_rev: number, signal_id?: string) =>
  ({ type: "Compact", lane, deltas, boundary_rev, ...(signal_id === undefined ? {} : { signal_id }) }) as const

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const settings = yield* AgentSettings
  // Only these: the loggers and spans of who runs it stay as they are.
  const context = Context.pick(
    AgentSettings,
    EventLog,
    ImageTexts,
    ModelCalls,
    SkillRegistry,
    Tokens
  )(yield* Effect.context<AgentSettings | EventLog | ImageTexts | ModelCalls | Tokens>())
  const wake = yield* Queue.sliding<void>(1)
  const grown = new Set<LaneId>()
  const orders = new Map<LaneId, ReadonlyArray<string | undefined>>()
  // The length of a window whose compaction failed: it is tried again when it has grown by a quarter of `event_window`.
  const failedAt = new Map<LaneId, number>()

  yield* arbiter.onCommit((events) => {
    for (const { event_type, lane } of events) if (GROWS.has(event_type)) grown.add(lane)
    if (grown.size > 0) Queue.offerUnsafe(wake, undefined)
  })

  const hasJustFailed = (memory: EdgeLane | CoreLane): boolean => {
    const { length } = memory.window
    const failed = failedAt.get("job_id" in memory ? memory.lane : EDGE)
    return (
      failed !== undefined && length >= failed && length < failed + settings.current().config.memory.event_window / 4
    )
  }

  const failed = (lane: LaneId, why: string) => {
    for (const known of failedAt.keys()) if (laneOf(arbiter.state(), known) === undefined) failedAt.delete(known)
    failedAt.set(lane, laneOf(arbiter.state(), lane)?.window.length ?? 0)
    return Effect.logWarning(`the compaction of ${lane} failed; its window stays as it is`, why)
  }

  const compact = Effect.fn("Compactor.compact")(function* (lane: LaneId, isMasked: IsMasked) {
    const ordered = orders.get(lane) ?? []
    orders.delete(lane)
    const signals = ordered.flatMap((signal_id) => signal_id ?? [])
    const isOrdered = ordered.length > 0
    const before = laneOf(arbiter.state(), lane)
    const isDue = before !== undefined && (isOrdered || !hasJustFailed(before))
    const planned = isDue ? yield* plan(before, compactionLimit(arbiter.state(), lane), isOrdered, isMasked) : undefined
    if (planned !== undefined) {
      const deltas = yield* ask(lane, planned)
      const memory = laneOf(arbiter.state(), lane)
      const isSame = memory !== undefined && jobIdOf(memory) === jobIdOf(planned.memory)
      if (deltas.length > 0 && isSame)
        yield* arbiter.commit(compaction(lane, deltas, planned.boundary_rev, signals[0])).pipe(
          Effect.andThen(Effect.sync(() => failedAt.delete(lane))),
          Effect.catch(({ reason }) => failed(lane, reason))
        )
      else yield* failed(lane, "the model gave no change that can be applied")
    }
    for (const signal_id of signals.filter((each) => isUnheard(each)(arbiter.state())))
      yield* commitEnd(arbiter, compaction(lane, [], 0, signal_id), isUnheard(signal_id))
  })

  const run = (isMasked: IsMasked) =>
    Effect.gen(function* () {
      const fibers = yield* FiberSet.make<void>()
      const busy = new Set<LaneId>()
      // The lane is free before the wake: an order that came meanwhile would else be passed over, and nothing wakes for it again.
      const done = (lane: LaneId) =>
        Effect.sync(() => {
          busy.delete(lane)
          Queue.offerUnsafe(wake, undefined)
        })
      return yield* Effect.forever(
        Effect.gen(function* () {
          yield* Queue.take(wake)
          for (const lane of new Set([...grown, ...orders.keys()])) {
            if (busy.has(lane)) continue
            busy.add(lane)
            grown.delete(lane)
            yield* FiberSet.run(fibers, Effect.ensuring(compact(lane, isMasked), done(lane)))
          }
        })
      )
    }).pipe(Effect.scoped, Effect.provide(context))

  return Compactor.of({
    request: (lane, signal_id) =>
      Effect.sync(() => {
        orders.set(lane, [...(orders.get(lane) ?? []), signal_id].slice(-COMPACTION_ORDERS_MAX))
        Queue.offerUnsafe(wake, undefined)
      }),
    run
  })
})
