/** The buttons below a reminder, and what comes back with a tap. */
import { Option, Schema } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { PlanId } from "#schema/Plan.ts"
import type { Button } from "#src/choird/queues/OutboxForm.ts"
import type { PlanRow } from "./planRows.ts"

/** How much later "Later" is. */
export const LATER_MS = 3_600_000

const ACTIONS = { later: "In 1 hour", stop: "Stop it" } as const
export type PlanAction = keyof typeof ACTIONS

const dataOf = (action: PlanAction, { agent_id, plan_id }: Pick<PlanRow, "agent_id" | "plan_id">) =>
  `plan:${action}:${plan_id}:${agent_id}`

/** @param repeats whether it comes again, so that it can be stopped. */
export const planButtons = (plan: Pick<PlanRow, "agent_id" | "plan_id">, repeats: boolean): ReadonlyArray<Button> =>
  (repeats ? (["later", "stop"] as const) : (["later"] as const)).map((action) => ({
    text: ACTIONS[action],
    data: dataOf(action, plan)
  }))

const DATA = /^plan:(later|stop):([1-9]\d{0,9}):(.{1,64})$/u
const decodePlan = Schema.decodeUnknownOption(Schema.Struct({ agent_id: AgentId, plan_id: PlanId }))

/** The order of a tap on such a button; undefined for another one's. */
export const planTapped = (data: string) => {
  const [, action, plan_id, agent_id] = DATA.exec(data) ?? []
  if (action !== "later" && action !== "stop") return undefined
  const plan = Option.getOrUndefined(decodePlan({ agent_id, plan_id: Number(plan_id) }))
  return plan === undefined ? undefined : { action, ...plan }
}
