/** Agents with plans over the real stores, at a clock that the test sets. */
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import type { PlanId, PlanSummary } from "#schema/Plan.ts"
import type { Asked } from "#src/choird/plans/planOrders.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { CONFIG, storesWith } from "./stores.ts"

export const BERLIN = "Europe/Berlin"
export const PHONE = ResourceName.make("phone")
const [AGENT] = Object.values(CONFIG.agents)
const DMS = { ...CONFIG.dms, phone: { gateway: "bot", user_id: "1", admin: true, timezone: BERLIN } }

let made = 0
/** More than the tests of one file take. A further file, which has a database of its own, may begin with the first of them again. */
export const names = Array.from({ length: 60 }, (_, number) => AgentId.make(`planner-${number}`))
export const newPlanner = () => names[(made += 1) % names.length] ?? AgentId.make("none")
export const configWith = (agents: ReadonlyArray<AgentId>, dms: Readonly<Record<string, unknown>> = DMS) => ({
  ...CONFIG,
  dms,
  agents: Object.fromEntries(agents.map((name) => [name, AGENT]))
})

/** One life of choird. */
export const alive = <A, E>(
  work: Effect.Effect<A, E, Layer.Success<ReturnType<typeof storesWith>> | SqlClient.SqlClient>,
  config: unknown = configWith(names)
) => Effect.provide(work, Layer.fresh(storesWith(config)))

export const at = (text: string) => TestClock.setTime(Date.parse(text))

export const ask = (agent_id: AgentId, words: string, more: Partial<Asked> = {}) =>
  Effect.flatMap(Plans, (plans) =>
    plans.make({
      agent_id,
      dm: PHONE,
      words,
      labelled: false,
      made_by: "gateway:bot/phone",
      request: `bot:${agent_id}:${words}`,
      ...more
    })
  )

export const look = Effect.flatMap(Plans, (plans) => plans.look)

/** The messages of an agent that wait for the phone, of which each begins a line. */
export const waiting = (agent_id: AgentId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox
      WHERE agent_id = ${agent_id} ORDER BY outbox_id`
    return rows.map(({ text }) => text)
  })

export const named = ({ agent_id, plan_id }: PlanSummary) => ({ agent_id, plan_id })
export const find = (agent_id: AgentId, plan_id: PlanId) =>
  Effect.flatMap(Plans, (plans) => plans.find({ agent_id, plan_id }))

/** At a clock that the test sets, which is set once before anything waits by it. */
export const clocked = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.provide(Effect.andThen(at("2026-01-02T12:00:00Z"), work), TestClock.layer())
