/**
 * The words of a compaction: what the lane's model makes of the events that leave, or lines without a model where it gives nothing usable twice. Where
 * edge's window holds text from outside, its summary is written from what was said before, by a call that sees nothing else, and the rest is a short
 * quotation: only so can a label end when the text does (docs/security.md, Text from outside).
 */
import { Effect } from "effect"
import { type MemoryDelta, REST_CHARS_MAX } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { emptySummary, lossOf } from "#src/shared/session/memory.ts"
import type { CoreLane, EdgeLane, ReferenceSummary } from "#src/shared/session/State.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { offeredOf } from "#src/agent/model/offeredTools.ts"
import { summaryMessages } from "#src/agent/model/prompt/Prompt.ts"
import type { Reading } from "#src/agent/model/prompt/promptMessages.ts"
import { transcriptOf } from "#src/agent/model/prompt/transcript.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import type { LanePrefix } from "./LanePrefix.ts"
import {
  askedAgain,
  compactionNote,
  deltasOf,
  deltaTool,
  partsOf,
  restNote,
  restOf,
  restStubs,
  wordsOf
} from "./compaction.ts"
import type { Folding } from "./Folding.ts"
import { withLossNote } from "./lossNote.ts"
import { withStubs } from "./stubs.ts"
import { windowLimit } from "./windowSize.ts"

/** How often the model of a compaction is asked before lines without a model stand in. */
const COMPACTION_ASKS_MAX = 2
/** Tokens of people's own messages that stay in the summary as they were written, and their share of what a window may hold. */
const WORDS_TOKENS_MAX = 4000
const WORDS_MAX = 1 / 6
/** Tokens of what a summary quotes of text from outside. */
export const REST_TOKENS_MAX = 300

/** The part of a lane's window that a summary replaces, and the part that stays. */
export interface Plan {
  readonly memory: EdgeLane | CoreLane
  readonly prefix: LanePrefix
  readonly isMasked: Reading["isMasked"]
  readonly leaving: ReadonlyArray<Folding>
  readonly staying: ReadonlyArray<Folding>
  readonly boundary_rev: number
  /** All text from outside leaves with it, so that nothing of it is quoted. */
  readonly isEnding: boolean
}

type Asked = Pick<Plan, "leaving" | "prefix"> & { readonly summary: ReferenceSummary }

const withDelta = ({ tools }: LanePrefix) =>
  tools.some(({ name }) => name === deltaTool.name) ? tools : [...tools, deltaTool]

/** The changes that the lane's model wants; undefined where it gave nothing usable as often as it was asked. */
const ask = Effect.fnUntraced(function* (
  lane: LaneId,
  { leaving, prefix, summary }: Asked,
  question: ReadonlyArray<Message>
) {
  const calls = yield* ModelCalls
  let more: ReadonlyArray<Message> = []
  let last: ReadonlyArray<MemoryDelta> | undefined
  for (let asks = 0; asks < COMPACTION_ASKS_MAX; asks++) {
    const output = yield* calls
      .ask(lane, "compaction", prefix.model, withDelta(prefix), () => ({ messages: [...question, ...more] }))
      .pipe(Effect.orElseSucceed(() => undefined))
    if (output === undefined) return undefined
    if (output.payload.error !== undefined) continue
    const deltas = deltasOf(output, summary, leaving)
    const loss = lossOf(summary, deltas)
    if (deltas.length > 0 && loss === undefined) return deltas
    if (deltas.length > 0) last = deltas
    more = askedAgain(output, loss ?? "your answer changed nothing in the summary in a form that the tool takes")
  }
  if (last === undefined) return undefined
  yield* Effect.logWarning(`the summary of ${lane} is too long; its oldest parts are left out, and it says so`)
  return withLossNote(summary, last, offeredOf(prefix.tools))
})

const askOrStubs = Effect.fnUntraced(function* (lane: LaneId, asked: Asked, question: ReadonlyArray<Message>) {
  const deltas = yield* ask(lane, asked, question)
  if (deltas !== undefined) return deltas
  yield* Effect.logWarning(`the compaction of ${lane} failed; stubs replace old events`)
  const stubs: ReadonlyArray<MemoryDelta> = [
    { mode: "overwrite", summary_update: withStubs(asked.summary, asked.leaving) }
  ]
  return stubs
})

/** The changes of a summary by a call that sees what was said before any text from outside was in sight, and nothing else. */
const trustedDeltas = Effect.fnUntraced(function* (
  lane: LaneId,
  plan: Plan,
  summary: ReferenceSummary,
  trusted: ReadonlyArray<Folding>
) {
  // People's own messages stay as they were written.
  if (trusted.every(({ event }) => event.event_type === "UserMsg")) return []
  const log = yield* EventLog
  const offered = offeredOf(plan.prefix.tools)
  const revs = trusted.map(({ event }) => event.rev)
  const { messages } = transcriptOf("edge", revs, { find: log.find, isMasked: plan.isMasked, offered })
  const question = [
    ...plan.prefix.messages.slice(0, 1),
    ...summaryMessages(summary, offered),
    ...messages,
    compactionNote(summary, trusted, [])
  ]
  return yield* askOrStubs(lane, { leaving: trusted, prefix: plan.prefix, summary }, question)
})

/** A short quotation of what else leaves. */
const restText = Effect.fnUntraced(function* (lane: LaneId, plan: Plan, others: ReadonlyArray<Folding>) {
  const calls = yield* ModelCalls
  const tokens = yield* TokenCount
  const { prefix, staying } = plan
  const output = yield* calls
    .ask(lane, "compaction", prefix.model, withDelta(prefix), () => ({
      messages: [...prefix.messages, restNote(staying)]
    }))
    .pipe(Effect.orElseSucceed(() => undefined))
  const answered = output === undefined || output.payload.error !== undefined ? undefined : restOf(output)
  const text = answered ?? restStubs(others)
  const counted = yield* tokens.count([text])
  const chars = Math.min(REST_CHARS_MAX, Math.floor((text.length * REST_TOKENS_MAX) / Math.max(counted, 1)))
  return counted <= REST_TOKENS_MAX ? text : firstPart(text, chars)
})

/** The words of a compaction on the events that leave. */
export const writeSummary = Effect.fnUntraced(function* (lane: LaneId, plan: Plan) {
  const { isEnding, leaving, memory, prefix, staying } = plan
  const { label, summary } = memory
  if (lane !== EDGE || label === undefined) {
    const question = [...prefix.messages, compactionNote(summary, leaving, staying)]
    const deltas = yield* askOrStubs(lane, { leaving, prefix, summary }, question)
    return { deltas, split: lane === EDGE ? { split: {} } : {} }
  }
  const { rest: _, ...known } = label.mixed ? emptySummary : summary
  const { others, trusted } = partsOf(leaving, label.from_rev)
  const deltas = yield* trustedDeltas(lane, plan, known, trusted)
  const rest = isEnding || (others.length === 0 && !label.mixed) ? "" : yield* restText(lane, plan, others)
  return { deltas, split: { split: rest === "" ? {} : { rest } } }
})

/** The newest words of people that fit. */
export const newestWords = Effect.fnUntraced(function* ({ leaving, memory, prefix }: Plan) {
  const tokens = yield* TokenCount
  const words = wordsOf(memory.label?.mixed === true ? emptySummary : memory.summary, leaving)
  const sizes = yield* Effect.forEach(words, (text) => tokens.count([text]))
  let left = Math.min(WORDS_TOKENS_MAX, (yield* windowLimit(prefix)) * WORDS_MAX)
  const from = sizes.findLastIndex((size) => {
    left -= size
    return left < 0
  })
  return words.slice(from + 1)
})
