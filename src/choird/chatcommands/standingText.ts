/** The first line of a chat's answer to /status. Pure. */
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { DAY_CHARS, localMinute } from "#src/shared/text/localTime.ts"

/** Since when the agent has been running: without the day where that is today for the one who asks. */
export const standingText = (
  { agent_id, since_ms, status }: Pick<AgentView, "agent_id" | "since_ms" | "status">,
  now_ms: number,
  zone: string | undefined
): string => {
  if (status !== "running") return `${agent_id} is ${status}.`
  const [since, now] = [localMinute(since_ms, zone), localMinute(now_ms, zone)]
  const isToday = since.slice(0, DAY_CHARS) === now.slice(0, DAY_CHARS)
  return `${agent_id} has been running since ${isToday ? since.slice(DAY_CHARS + 1) : since}.`
}
