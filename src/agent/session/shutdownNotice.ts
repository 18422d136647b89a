/** The orderly end of an epoch: the session's summary by its model, the last flush, the goodbye (D18). */
import { Effect, Option, Schedule, Schema } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { type Summary, SUMMARY_LIMITS } from "#schema/Summary.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import type { ReferenceSummary } from "#src/shared/session/State.ts"
import { storableJson } from "#src/shared/text/canonicalJson.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { type Folding, foldingLine, foldingOf } from "#src/agent/memory/compaction.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { answerTool } from "#src/agent/model/llmView.ts"
import { jsonOf } from "#src/agent/model/partSizes.ts"
import { SUMMARY_INSTRUCTIONS } from "#src/agent/model/prompt/instructions.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { ToolRegistry } from "#src/agent/calls/ToolRegistry.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { RPC_RETRY_MS } from "#src/agent/control/verbAnswer.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

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

const Answer = Schema.Struct({
  title: Schema.NonEmptyString.annotate({ description: "A few words" }),
  summary: Schema.NonEmptyString.annotate({ description: "What was asked, done and how it ended" }),
  decisions: Schema.Array(Schema.String).annotate({ description: "What was decided, and why" }),
  open_points: Schema.Array(Schema.String).annotate({ description: "What was asked for or promised and is not done" }),
  facts: Schema.Array(Schema.String).annotate({ description: "What is worth knowing later" })
})
const ANSWER = answerTool("choir.session.summary", "Give the summary of the session.", Answer)

/** The one tool of a summary. */
export const summaryTool = ANSWER.tool

/** Edge's reference summary and, of its window, the newest events that fit the tokens that the model has room for. */
export const summaryPrompt = Effect.fnUntraced(function* (
  reference: ReferenceSummary,
  window: ReadonlyArray<Folding>,
  room: number
) {
  const tokens = yield* TokenCount
  const messages = (lines: ReadonlyArray<string>): ReadonlyArray<Message> => [
    { role: "system", content: SUMMARY_INSTRUCTIONS },
    {
      role: "user",
      content: `Reference summary of what came before:\n${JSON.stringify(reference)}\n\nEvents, oldest first:\n${lines.join("\n")}`
    }
  ]
  const lines = window.map(foldingLine)
  const whole = messages(lines)
  if (tokens.certainlyBelow(whole, room)) return whole
  let left = room - (yield* tokens.count(messages([])))
  const sizes = yield* Effect.forEach(lines, (line) => tokens.count([line, "\n"]))
  const from = sizes.findLastIndex((size) => {
    left -= size
    return left < 0
  })
  return messages(lines.slice(from + 1))
})

const cut = (text: string, chars: number): string => firstPart(text, chars)
const cutList = (entries: ReadonlyArray<string>): ReadonlyArray<string> =>
  entries.slice(0, SUMMARY_LIMITS.entries).map((entry) => cut(entry, SUMMARY_LIMITS.entry_chars))

/** The summary that an event holds, cut to its limits; nothing when it is not a summary, or not one that can be read. */
export const summaryOf = (event: ChoirEvent | undefined): Summary | undefined => {
  if (event?.event_type !== "ModelOutput" || event.payload.purpose !== "summary") return undefined
  const [answer] = ANSWER.answers(event.payload.tool_calls)
  if (answer === undefined) return undefined
  const { decisions, facts, open_points, summary, title } = answer
  return storableJson({
    title: cut(title, SUMMARY_LIMITS.title_chars),
    summary: cut(summary, SUMMARY_LIMITS.text_chars),
    decisions: cutList(decisions),
    open_points: cutList(open_points),
    facts: cutList(facts)
  })
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
