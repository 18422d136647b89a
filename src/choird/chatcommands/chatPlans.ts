/** `/remind`, `/next`, `/skip` and `/cancel plan`: a person's reminders, without a model. */
import { Clock, DateTime, Effect, Result } from "effect"
import type { PlanId, PlanSummary } from "#schema/Plan.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { planLine } from "#src/choird/plans/planLine.ts"
import { planWords } from "#src/choird/plans/planText.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { seesPlan } from "#src/choird/plans/seesPlan.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { readWhen } from "#src/shared/plans/readWhen.ts"
import { timeText } from "#src/shared/plans/whenText.ts"
import { hostZone } from "#src/shared/text/localTime.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { makeChatDecisions } from "./chatDecisions.ts"
import { refusedAnswer } from "./refusedAnswer.ts"
import type { Answer } from "./Answer.ts"
import type { Command } from "./readCommand.ts"
import type { Speaker } from "./Speaker.ts"

/** Reminders that one answer lists. */
const LISTED_MAX = 20
/** Characters of a reminder in a list. */
const LISTED_CHARS_MAX = 120

const notice = (...lines: ReadonlyArray<string>): Answer => ({ kind: "notice", text: lines.join("\n") })
const refusal = (message: string): Answer => refusedAnswer({ message })

/** A reminder on one line. */
const lineOf = (plan: PlanSummary, now_ms: number): string => {
  const { next, plan_id, state, text, when } = planLine(plan, now_ms)
  const times = plan.kind === "once" ? (next ?? when) : next === undefined ? when : `${when}, next ${next}`
  const words = firstPart(planWords(text).replaceAll(/\s+/gu, " "), LISTED_CHARS_MAX)
  return `${plan_id}. ${state === "paused" ? "paused: " : ""}${times}: ${words}`
}

type PlanCommand = Extract<Command, { readonly type: "remind" | "next" | "order plan" | "again" }>

/** The reminders of an agent as a person sees them. */
const makeSeen = Effect.gen(function* () {
  const config = yield* ConfigStore
  const plans = yield* Plans
  const isSeen = ({ dm }: PlanSummary, speaker: Speaker) =>
    Effect.map(config.current, ({ config: running }) => seesPlan(running, speaker.dm, dm))

  return {
    list: Effect.fnUntraced(function* (speaker: Speaker) {
      const all = yield* databaseDefect(plans.list(speaker.agent_id, false))
      return yield* Effect.filter(all, (plan) => isSeen(plan, speaker))
    }),
    find: Effect.fnUntraced(function* (plan_id: PlanId, speaker: Speaker) {
      const found = yield* Effect.result(databaseDefect(plans.find({ agent_id: speaker.agent_id, plan_id })))
      return found._tag === "Success" && (yield* isSeen(found.success, speaker)) ? found.success : undefined
    })
  }
})

/** Skills that begin by the clock, and requests that wait for a person: they are to come as well. */
const makeOthers = Effect.gen(function* () {
  const schedules = yield* Schedules
  const { waiting } = yield* makeChatDecisions
  return Effect.fnUntraced(function* (speaker: Speaker, now_ms: number) {
    const zone = DateTime.zoneMakeNamedUnsafe(speaker.zone ?? hostZone())
    const runs = yield* databaseDefect(schedules.next(speaker.agent_id))
    return [
      ...runs.slice(0, LISTED_MAX).map(({ at_ms, skill }) => `Skill ${skill}: ${timeText(at_ms, zone, now_ms)}`),
      ...(yield* waiting(speaker)).lines
    ]
  })
})

/** A new reminder. */
const makeRemind = Effect.gen(function* () {
  const plans = yield* Plans
  return Effect.fnUntraced(function* (words: string, speaker: Speaker): Effect.fn.Return<Answer> {
    const { agent_id, dm, gateway, request_id, writer, zone } = speaker
    const by = { made_by: `gateway:${gateway}/${writer}`, request: `${gateway}:${request_id}` }
    const place = zone === undefined ? {} : { zone }
    const made = yield* Effect.result(
      databaseDefect(plans.make({ agent_id, dm, words, labelled: false, ...by, ...place }))
    )
    if (made._tag === "Failure") return refusal(made.failure.message)
    const { doubt, plan } = made.success
    const { next = "", when, zone: shown } = planLine(plan, yield* Clock.currentTimeMillis)
    const times = plan.kind === "once" ? next : `${when}, first ${next}`
    return notice(
      `Reminder ${plan.plan_id}, ${times} (${shown}): ${planWords(plan.text)}`,
      ...(doubt === undefined ? [] : [doubt]),
      `/next lists your reminders; /cancel plan ${plan.plan_id} removes this one.`
    )
  })
})

/** A reminder that was put off. */
const makeAgain = Effect.gen(function* () {
  const plans = yield* Plans
  const seen = yield* makeSeen
  return Effect.fnUntraced(function* (plan_id: PlanId, words: string, speaker: Speaker): Effect.fn.Return<Answer> {
    const { agent_id, gateway, request_id, writer } = speaker
    const now_ms = yield* Clock.currentTimeMillis
    const plan = yield* seen.find(plan_id, speaker)
    if (plan === undefined) return refusal(`there is no reminder ${plan_id} here; /next lists them`)
    const read = readWhen(words, { now_ms, zone: DateTime.zoneMakeNamedUnsafe(plan.zone) })
    if (Result.isFailure(read)) return refusal(read.failure)
    const { doubt, when } = read.success
    if (when.kind !== "once") return refusal("write one time; for times that repeat set another reminder with /remind")
    const by = { who: `gateway:${gateway}/${writer}`, request: `${gateway}:${request_id}` }
    const made = yield* Effect.result(databaseDefect(plans.again({ agent_id, plan_id }, when.at_ms, by)))
    if (made._tag === "Failure") return refusal(made.failure.message)
    const { next: time = "", plan_id: number } = planLine(made.success, now_ms)
    return notice(
      `Reminder ${number}, ${time} (${plan.zone}): ${planWords(plan.text)}`,
      ...(doubt === undefined ? [] : [doubt])
    )
  })
})

/** The reminders to come. */
const makeNext = Effect.gen(function* () {
  const seen = yield* makeSeen
  const others = yield* makeOthers
  return Effect.fnUntraced(function* (speaker: Speaker): Effect.fn.Return<Answer> {
    const now_ms = yield* Clock.currentTimeMillis
    const own = yield* seen.list(speaker)
    const besides = yield* others(speaker, now_ms)
    if (own.length === 0) return notice("No reminders are set. To set one: /remind tomorrow 9:00 call Bob", ...besides)
    const more = own.length - LISTED_MAX
    return notice(
      ...own.slice(0, LISTED_MAX).map((plan) => lineOf(plan, now_ms)),
      ...(more > 0 ? [`and ${more} more: choirctl plan list`] : []),
      "To leave out the next time: /skip <number>. To remove one: /cancel plan <number>",
      ...besides
    )
  })
})

/** A reminder that is skipped or removed. */
const makeOrder = Effect.gen(function* () {
  const plans = yield* Plans
  const seen = yield* makeSeen
  return Effect.fnUntraced(function* (
    what: "skip" | "remove",
    plan_id: PlanId,
    speaker: Speaker
  ): Effect.fn.Return<Answer> {
    const named = { agent_id: speaker.agent_id, plan_id }
    if ((yield* seen.find(plan_id, speaker)) === undefined)
      return refusal(`there is no reminder ${plan_id} here; /next lists them`)
    const who = `gateway:${speaker.gateway}/${speaker.writer}`
    const changed = yield* Effect.result(databaseDefect(plans.order(what, named, who)))
    if (changed._tag === "Failure") return refusal(changed.failure.message)
    const { next: later } = planLine(changed.success, yield* Clock.currentTimeMillis)
    if (what === "remove") return notice(`Removed reminder ${plan_id}.`)
    return notice(
      later === undefined
        ? `Removed reminder ${plan_id}, which had no other time.`
        : `Skipped. Reminder ${plan_id} comes next ${later}.`
    )
  })
})

export const makeChatPlans = Effect.gen(function* () {
  const remind = yield* makeRemind
  const again = yield* makeAgain
  const next = yield* makeNext
  const order = yield* makeOrder
  return (command: PlanCommand, speaker: Speaker): Effect.Effect<Answer> => {
    switch (command.type) {
      case "remind":
        return remind(command.words, speaker)
      case "next":
        return next(speaker)
      case "again":
        return again(command.plan_id, command.words, speaker)
      case "order plan":
        return order(command.order, command.plan_id, speaker)
    }
  }
})
