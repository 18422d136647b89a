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
import { foldingLine, foldingOf } from "#src/agent/memory/compaction.ts"
import type { Folding } from "#src/agent/memory/Folding.ts"
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
import { lastChars } from "#src/shared/session/textEnds.ts"
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

/** Events of the end of a session that come after its summary. */
const END_EVENTS_MAX = 128

/** The newest events that belong to the end of the session itself, the newest first, and the event before them. */
const endOf = (log: EventLog["Service"], isOver: boolean) => {
  const ended: Array<ChoirEvent> = []
  for (let rev = log.head(); rev > Math.max(0, log.head() - END_EVENTS_MAX); rev -= 1) {
    const event = log.find(rev)
    if (!isOver || event === undefined || event.event_type === "ModelOutput") return { before: event, ended }
    ended.push(event)
  }
  return { before: undefined, ended }
}

/** A summary with what the log says is left open, before what its model says of it. */
const withOpen = (summary: Summary, ended: ReadonlyArray<ChoirEvent>): Summary => {
  const open = ended.flatMap((event) => (event.event_type === "Cancelled" ? (event.payload.open ?? []) : []))
  return open.length === 0 ? summary : { ...summary, open_points: cutList([...open, ...summary.open_points]) }
}

/** The newest messages and answers that a summary without a model quotes. */
const QUOTED_MAX = 12
const QUOTED_CHARS_MAX = 400

/** The summary of a session whose model gave none: what is known of its older part, and its newest messages and answers. */
const plainSummary = (reference: ReferenceSummary, window: ReadonlyArray<Folding>): Summary => {
  const quoted = window.flatMap(({ event }) => {
    const { event_type, payload } = event
    const who = event_type === "UserMsg" ? "The user" : event_type === "AgentMessage" ? "The agent" : undefined
    return who === undefined || !("text" in payload) || payload.text === undefined
      ? []
      : [`${who}: ${cut(payload.text, QUOTED_CHARS_MAX)}`]
  })
  const first = [...reference.words, ...quoted][0] ?? "nothing was said"
  const text = [...(reference.summary === "" ? [] : [reference.summary]), ...quoted.slice(-QUOTED_MAX)].join("\n")
  return storableJson({
    title: cut(first.replaceAll(/\s+/gu, " "), SUMMARY_LIMITS.title_chars / 2),
    summary: lastChars(text === "" ? first : text, SUMMARY_LIMITS.text_chars),
    decisions: [],
    open_points: [],
    facts: cutList(reference.facts.map(({ key, value }) => `${key}: ${value}`))
  })
}

/** The reasons of sessions that end for good, with which another one begins. */
const FINAL_REASONS: ReadonlySet<string> = new Set(["budget", "user"])

/** The reason of a goodbye: a person who ends the session wants a new one. */
export const goodbyeOf = (reason: string): string => (reason === "user" ? "new" : reason)

const skipped = (why: string) => Effect.as(Effect.logWarning(`the session ends without a summary: ${why}`), undefined)

/**
 * The session's summary. One that the log ends with, because a crash came between it and the goodbye, is taken as it is; where nothing
 * happened since the last one none is made. A model that fails, is late, or is not asked any more is skipped; a session that ends for good has
 * a summary all the same, made of its log.
 */
export const summarize = Effect.fn("ShutdownNotice.summarize")(function* ({ deadline_at_ms, reason }: ShutdownNotice) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  if (log.head() === 0) return undefined
  const { edge, ended: over } = arbiter.state()
  const { before, ended } = endOf(log, over !== undefined)
  const known = summaryOf(before)
  if (known !== undefined) return withOpen(known, ended)
  const window = foldingOf(log, edge, { isMasked: registry.masked, offered: offeredOf([summaryTool]) })
  const made = over === undefined ? yield* askForSummary(edge.summary, window, deadline_at_ms) : undefined
  if (made !== undefined || !FINAL_REASONS.has(reason)) return made
  return withOpen(plainSummary(edge.summary, window), ended)
})

/** Asks edge's model, whatever the session has spent: the price of its summary is not a part of its limits. */
const askForSummary = Effect.fnUntraced(function* (
  reference: ReferenceSummary,
  window: ReadonlyArray<Folding>,
  deadline_at_ms: number | undefined
) {
  const calls = yield* ModelCalls
  const settings = yield* AgentSettings
  const tokens = yield* TokenCount
  const { llm, memory } = settings.current().config
  const now = yield* monotonicMs
  const left = deadline_at_ms === undefined ? Infinity : deadline_at_ms - STOP_RESERVE_MS - now
  const limit = Math.min(memory.summary_timeout_ms, left)
  if (limit <= 0) return yield* skipped("the stop left no time for it")
  const model = settings.model(llm)
  const room = model === undefined ? 0 : (model.context_window - outputTokensMax(model)) / tokens.factor(llm)
  const tool_tokens = Math.ceil(jsonOf(summaryTool).length / 2)
  return yield* summaryPrompt(reference, window, room - tool_tokens).pipe(
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
