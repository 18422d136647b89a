/** The size of a lane's window in tokens, and its limit: a share of the model's context without the parts that never leave it. */
import { Effect } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { WINDOW_REVS_MAX } from "#src/shared/session/lanes.ts"
import { type EventLog, RESIDENT_WINDOW_BYTES_MAX } from "#src/agent/arbiter/EventLog.ts"
import { AgentSettings, boundModel } from "#src/agent/settings/AgentSettings.ts"
import { pictureTokens } from "#src/shared/model/pictures.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { commonBeginning, promptBytes, toolBytes } from "#src/agent/model/partSizes.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TOKEN_FACTOR_MAX, TOKEN_FACTOR_MIN, TokenCount } from "#src/agent/model/TokenCount.ts"
import type { LanePrefix } from "./LanePrefix.ts"

/** How full a window is of the events and the bytes that an agent keeps of it, the fuller of both; 1 is all. */
export const windowFill = (log: EventLog["Service"], window: ReadonlyArray<number>): number => {
  let bytes = 0
  for (const rev of window) bytes += log.bytesOf(rev)
  return Math.max(window.length / WINDOW_REVS_MAX, bytes / RESIDENT_WINDOW_BYTES_MAX)
}

/** The tools and the system text. */
const fixedParts = ({ messages, tools }: LanePrefix) => [...tools, ...messages.slice(0, 1)]

const fixedTokens = Effect.fnUntraced(function* (prefix: LanePrefix) {
  const tokens = yield* TokenCount
  return (yield* tokens.count(fixedParts(prefix))) * tokens.factor(prefix.model)
})

/** Tokens that a lane's window may take. */
export const windowLimit = Effect.fnUntraced(function* (prefix: LanePrefix) {
  const { config } = (yield* AgentSettings).current()
  const { compact_at, window_tokens_max } = config.memory
  const model = boundModel(config, prefix.model)
  if (model === undefined) return 0
  const room = model.context_window - outputTokensMax(model) - (yield* fixedTokens(prefix))
  return Math.max(0, Math.min(compact_at * room, window_tokens_max ?? Infinity))
})

/**
 * Whether a lane's next call is surely below a share of the limit: no token of its texts is less than a byte, and its last prompt, which the
 * provider counted with the thoughts in it, was below. Needs no vocabulary.
 */
export const isClearlySmall = Effect.fnUntraced(function* (lane: LaneId, prefix: LanePrefix, share: number) {
  const { config } = (yield* AgentSettings).current()
  const calls = yield* ModelCalls
  const tokens = yield* TokenCount
  const { compact_at, window_tokens_max } = config.memory
  const model = boundModel(config, prefix.model)
  if (model === undefined) return true
  const fixed = toolBytes(prefix.tools) + promptBytes(prefix.messages.slice(0, 1))
  const limit = Math.min(
    compact_at * (model.context_window - outputTokensMax(model) - fixed),
    window_tokens_max ?? Infinity
  )
  const last = calls.lastPrompt(lane)
  if (last !== undefined && last.model === prefix.model && last.reported > share * limit) return false
  return tokens.certainlyBelow(prefix.messages.slice(1), share * limit - pictureTokens(prefix.messages))
})

/**
 * The tokens of what a lane's next call shows beside the fixed parts: what the provider counted of the beginning that it has in common with the
 * last one, and our count of the rest; our count of everything where there is no last one, or its count makes no sense.
 */
export const promptTokens = Effect.fnUntraced(function* (lane: LaneId, prefix: LanePrefix) {
  const calls = yield* ModelCalls
  const tokens = yield* TokenCount
  const factor = tokens.factor(prefix.model)
  const last = calls.lastPrompt(lane)
  const count = (messages: LanePrefix["messages"]) =>
    Effect.map(tokens.count(messages.slice(1)), (counted) => counted * factor + pictureTokens(messages))
  const counted = yield* count(prefix.messages)
  if (last === undefined || last.model !== prefix.model) return counted
  const before = yield* count(last.messages)
  const common = yield* count(prefix.messages.slice(0, commonBeginning(prefix.messages, last.messages)))
  const fixed = yield* fixedTokens(prefix)
  const share = last.reported / (before + fixed)
  const isSense = share >= TOKEN_FACTOR_MIN && share <= TOKEN_FACTOR_MAX
  // What left the end of the last prompt, such as a note that is shown once, was counted by the provider as its other parts were.
  return isSense ? last.reported - fixed - (before - common) * share + counted - common : counted
})
