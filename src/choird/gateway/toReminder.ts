/** The order of a reply to a reminder. */
import { Clock, DateTime, Effect, Result } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { readWhen } from "#src/shared/plans/readWhen.ts"
import { ownWords } from "#src/shared/text/quotedWords.ts"
import type { Arrival } from "./Arrival.ts"
import type { Route } from "./route.ts"

/** Characters of a reply that may be a time alone. */
const TIME_CHARS_MAX = 60

/** A reply to a reminder that is a time and nothing else puts the reminder off to then. */
export const makeToReminder = Effect.gen(function* () {
  const plans = yield* Plans
  return Effect.fnUntraced(function* (
    to: Route,
    gateway: ResourceName,
    { edited, file, group, quoted, reply_on }: Arrival
  ): Effect.fn.Return<Route> {
    if (to.type !== "message" || to.kept !== undefined || to.forwarded === true || edited === true) return to
    if (reply_on === undefined || quoted?.by.kind !== "own" || file !== undefined || group !== undefined) return to
    const words = ownWords(to.text).trim()
    if (words === "" || words.length > TIME_CHARS_MAX) return to
    const plan = yield* databaseDefect(plans.about(gateway, reply_on))
    if (plan === undefined || plan.agent_id !== to.agent_id) return to
    const read = readWhen(words, { now_ms: yield* Clock.currentTimeMillis, zone: DateTime.zoneMakeLocal() })
    if (Result.isFailure(read) || read.success.rest !== "") return to
    const { agent_id, dm } = to
    const command = { type: "again", plan_id: plan.plan_id, words } as const
    return { type: "command", dm, writer: dm, agent_id, admin: false, command }
  })
})
