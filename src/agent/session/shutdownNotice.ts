/** The orderly end of an epoch: the session's summary by its model, the last flush, the goodbye (D18). */
import { Effect, Option, Schedule } from "effect"
import { EDGE } from "#schema/Ids.ts"
import type { Summary } from "#schema/Summary.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { foldingOf } from "#src/agent/memory/compaction.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { jsonOf } from "#src/agent/model/partSizes.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { summaryOf, summaryPrompt, summaryTool } from "#src/agent/memory/summary.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { RPC_RETRY_MS } from "#src/agent/control/verbAnswer.ts"

/** Of the time that a graceful stop has, what is kept back for the last flush. */
export const STOP_RESERVE_MS = 5000
/** The last flush and the goodbye of an agent that ends by itself. */
const GOODBYE_MS_MAX = 30_000

/** Why an epoch ends, and until when it may take, in ms since 1970; a session at its limit has no such time. */
export interface ShutdownNotice {
  readonly reason: string
  readonly deadline_at_ms?: number
}

/**
 * The part of a stop's time that edge may take for the step that it is in: all but the summary's part and the reserve, and a third of it
 * at least, so that a long `memory.summary_timeout_ms` leaves no answer cut off.
 */
export const safePointMs = (deadline_ms: number, summary_timeout_ms: number): number => {
  const free = Math.max(0, deadline_ms - STOP_RESERVE_MS)
  return Math.max(free - summary_timeout_ms, free / 3)
}

const skipped = (why: string) => Effect.as(Effect.logWarning(`the session ends without a summary: ${why}`), undefined)

/**
 * The session's summary. One that the log ends with, because a crash came between it and the goodbye, is taken as it is; where nothing
 * happened since the last one none is made. A model that fails, is late, or may cost nothing more is skipped.
 */
export const summarize = Effect.fn("ShutdownNotice.summarize")(function* ({ deadline_at_ms }: ShutdownNotice) {
  const arbiter = yield* Arbiter
  const calls = yield* ModelCalls
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const settings = yield* AgentSettings
  if (log.head() === 0) return undefined
  const known = summaryOf(log.find(log.head()))
  if (known !== undefined) return known
  const { llm, memory } = settings.current().config
  const now = yield* monotonicMs
  const left = deadline_at_ms === undefined ? Infinity : deadline_at_ms - STOP_RESERVE_MS - now
  const limit = Math.min(memory.summary_timeout_ms, left)
  if (limit <= 0) return yield* skipped("the stop left no time for it")
  const { edge } = arbiter.state()
  const model = settings.model(llm)
  const tokens = yield* TokenCount
  const room = model === undefined ? 0 : (model.context_window - outputTokensMax(model)) / tokens.factor(llm)
  const tool_tokens = Math.ceil(jsonOf(summaryTool).length / 2)
  return yield* summaryPrompt(
    edge.summary,
    foldingOf(log, edge, { isMasked: registry.masked, offered: offeredOf([summaryTool]) }),
    room - tool_tokens
  ).pipe(
    Effect.flatMap((messages) => calls.ask(EDGE, "summary", llm, [summaryTool], () => ({ messages }))),
    Effect.timeoutOption(limit),
    Effect.flatMap((output) => {
      if (Option.isNone(output)) return skipped(`the model did not answer within ${limit} ms`)
      const error = output.value?.payload.error
      if (error !== undefined) return skipped(error.message)
      const summary = summaryOf(output.value)
      return summary === undefined ? skipped("the model answered without one") : Effect.succeed(summary)
    }),
    Effect.catch(({ limit }) => skipped(limit))
  )
})

/** Sends what is left and says goodbye; again when something was committed in between (NOT_FLUSHED). */
export const sayGoodbye = Effect.fn("ShutdownNotice.sayGoodbye")(
  function* (reason: string, summary: Summary | undefined) {
    const log = yield* EventLog
    const plane = yield* ControlPlane
    const replication = yield* Replication
    yield* replication.flush
    const final_rev = log.head()
    const goodbye = { reason, final_rev, final_hash: log.hashAt(final_rev) }
    yield* plane.terminate(summary === undefined ? goodbye : { ...goodbye, summary })
  },
  Effect.retry({
    while: (error) => error._tag === "Denied" && error.type === "NOT_FLUSHED",
    schedule: Schedule.spaced(RPC_RETRY_MS)
  }),
  Effect.timeout(GOODBYE_MS_MAX)
)
