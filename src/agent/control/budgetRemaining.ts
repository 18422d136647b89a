/** The rest of a session's budgets, as REPORT_STATUS tells it. */
import type { Budgets } from "#schema/Config.ts"
import type { BudgetRemaining } from "#schema/AgentApi.ts"
import type { SessionState } from "#src/shared/session/State.ts"

export const budgetRemaining = (
  { spent }: SessionState,
  { max_cost_usd, max_tool_calls_per_session, total_session_tokens }: Budgets
): typeof BudgetRemaining.Type => ({
  tokens: total_session_tokens - spent.tokens,
  tool_calls: max_tool_calls_per_session - spent.tool_calls,
  cost_usd: max_cost_usd === null ? null : max_cost_usd - spent.cost_usd
})
