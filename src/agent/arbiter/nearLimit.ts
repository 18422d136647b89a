/**
 * The one notice that a session has used most of a limit. It is in the batch of the event that passes the mark, so that it is said once,
 * whatever crashes, and goes to whom the work is done for.
 */
import type { Budgets } from "#schema/Config.ts"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { limitTokens } from "#src/shared/model/usage.ts"
import { coreOf } from "#src/shared/session/lanes.ts"
import { messageOf } from "#src/shared/session/messageSteps.ts"
import type { SessionState, Spent } from "#src/shared/session/State.ts"
import { counted } from "#src/shared/text/counts.ts"
import { costSum, tokenSum } from "#src/shared/session/sums.ts"

/** The share of a limit of the session at which its people get a notice. */
const NEAR_LIMIT_SHARE = 0.8

const paid = (spent: Spent, cost_usd = 0): Spent => ({ ...spent, cost_usd: costSum(spent.cost_usd, cost_usd) })

/** The sums after an event. */
const after = (spent: Spent, { event_type, payload }: EventDraft): Spent => {
  switch (event_type) {
    case "ModelOutput":
      return paid({ ...spent, tokens: tokenSum(spent.tokens, limitTokens(payload.usage)) }, payload.usage.cost_usd)
    case "ToolCallRequested":
      return { ...spent, tool_calls: spent.tool_calls + 1 }
    case "UserMsg":
    case "AgentMessage":
    case "ToolResultCommitted":
      return paid(spent, payload.cost_usd)
    default:
      return spent
  }
}

/** The limits of a session, in words, with what counts toward each. */
const limitsOf = ({ max_cost_usd, max_tool_calls_per_session, total_session_tokens }: Budgets) => [
  { most: total_session_tokens, words: `${counted(total_session_tokens)} tokens`, used: ({ tokens }: Spent) => tokens },
  { most: max_cost_usd ?? Infinity, words: `${max_cost_usd} USD`, used: ({ cost_usd }: Spent) => cost_usd },
  {
    most: max_tool_calls_per_session,
    words: `${counted(max_tool_calls_per_session)} tool calls`,
    used: ({ tool_calls }: Spent) => tool_calls
  }
]

export const nearLimit = (
  state: SessionState,
  drafts: ReadonlyArray<EventDraft>,
  budgets: Budgets
): ReadonlyArray<EventDraft> => {
  const spent = drafts.reduce(after, state.spent)
  const passed = limitsOf(budgets).find(({ most, used }) => {
    const mark = most * NEAR_LIMIT_SHARE
    // At the limit itself the session ends, and says that instead.
    return used(state.spent) < mark && used(spent) >= mark && used(spent) < most
  })
  const [first] = drafts
  if (passed === undefined || first === undefined || state.ended !== undefined) return []
  const inbox_id = first.lane === EDGE ? messageOf(state.edge.turn) : coreOf(state, first.lane)?.inbox_id
  const text = `This conversation has used ${NEAR_LIMIT_SHARE * 100} % of its limit of ${passed.words}. At the limit it moves to a new session, with a summary of this one; /new begins a new conversation at once.`
  return [
    {
      event_type: "AgentMessage",
      lane: EDGE,
      payload: { kind: "notice", text, ...(inbox_id === undefined ? {} : { in_reply_to: inbox_id }) }
    }
  ]
}
