/** The tools of plans, which choird keeps: reminders that are said at their time without a model. */
import { Effect, Schema } from "effect"
import { builtIn } from "#schema/BuiltInTool.ts"
import {
  PlanCancelAnswer,
  PlanCancelInput,
  PlanListAnswer,
  PlanSetAnswer,
  type PlanSetInput,
  PlanWords
} from "#src/shared/plans/hostPlans.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { messageOf } from "#src/shared/session/messageSteps.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { Arbiter } from "#src/agent/arbiter/Arbiter.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { makeAskHost } from "./hostTool.ts"
import { again, asked, KEPT_TIMEOUT_MS, type NotDone, refused } from "./keptByChoird.ts"
import { decodeInput, type Tool, type ToolContext, type ToolOutcome } from "./Tool.ts"

const Set = Schema.Struct({
  when: PlanWords.fields.when.annotate({
    description: '"in 20 minutes", "tomorrow 09:00", "2027-03-01 18:00", "every weekday at 08:00", "0 8 * * 1-5"'
  }),
  text: PlanWords.fields.text.annotate({ description: "The words that the user gets" }),
  zone: Schema.optionalKey(Schema.String.annotate({ description: "Time zone of when, if not the user's" }))
})

const Cancel = Schema.Struct({
  plan_id: PlanCancelInput.fields.plan_id.annotate({ description: "Its number" })
})

const List = Schema.Struct({})

/** The message that the edge works for, as a part of an input. */
const inboxOf = ({ edge }: SessionState) => {
  const inbox_id = messageOf(edge.turn)
  return inbox_id === undefined ? {} : { inbox_id }
}

type Called = Pick<ToolContext, "call_id" | "lane">

const success = (summary: string, output: Schema.Json): ToolOutcome => ({
  status: "success",
  summary,
  output,
  acted: "verified"
})

/** A tool that changes plans. Its call stands in choird's copy of the log before choird does the work, once for its id. */
const changing = <S extends typeof Set | typeof Cancel>(
  name: "choir.plan.set" | "choir.plan.cancel",
  description: string,
  schema: S,
  run: (input: S["Type"], called: Called) => Effect.Effect<ToolOutcome, NotDone>
): Tool => {
  const decode = decodeInput(schema)
  return {
    llm: llmView(builtIn(name), description, schema),
    effect: "external",
    keepsOwn: true,
    lanes: "edge",
    prepare: (raw) =>
      Effect.map(decode(raw), (input) => ({
        locks: [],
        timeout_ms: KEPT_TIMEOUT_MS,
        besideJobs: true,
        run: (context) => Effect.catch(run(input, context), (error) => Effect.succeed(refused(error)))
      })),
    settle: ({ call_id, input, lane }) =>
      Effect.flatMap(
        Effect.mapError(decode(input), ({ problem }): NotDone => ({ message: problem })),
        (known) => again(run(known, { call_id, lane }))
      )
  }
}

const decodeSet = Schema.decodeUnknownEffect(PlanSetAnswer)
const decodeList = Schema.decodeUnknownEffect(PlanListAnswer)
const decodeCancel = Schema.decodeUnknownEffect(PlanCancelAnswer)

/** choir.plan.set, choir.plan.list and choir.plan.cancel. */
export const planTools = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const ask = yield* makeAskHost

  const set = Effect.fnUntraced(function* (words: typeof Set.Type, { call_id, lane }: Called) {
    const state = arbiter.state()
    const memory = laneOf(state, lane)
    const sources = memory?.sources ?? []
    const input: PlanSetInput = {
      ...words,
      untrusted: memory?.tainted !== false,
      ...(sources.length === 0 ? {} : { sources }),
      ...inboxOf(state),
      call_id
    }
    const output = yield* asked(ask, lane, builtIn("choir.plan.set"), call_id, input)
    const { doubt, plan } = yield* Effect.orDie(decodeSet(output))
    const again = plan.next === undefined || plan.when === plan.next ? "" : `, next ${plan.next}`
    const unclear = doubt === undefined ? "" : ` ${doubt}`
    return success(`reminder ${plan.plan_id} is set: ${plan.when}${again} (${plan.zone}).${unclear}`, output)
  })

  const cancel = Effect.fnUntraced(function* (input: typeof Cancel.Type, { call_id, lane }: Called) {
    const state = arbiter.state()
    const whole = { ...input, ...inboxOf(state), untrusted: laneOf(state, lane)?.tainted !== false }
    const output = yield* asked(ask, lane, builtIn("choir.plan.cancel"), call_id, whole)
    const { plan } = yield* Effect.orDie(decodeCancel(output))
    return success(`reminder ${plan.plan_id} is removed`, output)
  })

  const list: Tool = {
    llm: llmView(builtIn("choir.plan.list"), "List the reminders to come.", List),
    effect: "none",
    lanes: "edge",
    prepare: (raw) =>
      Effect.map(decodeInput(List)(raw), () => ({
        locks: [],
        timeout_ms: KEPT_TIMEOUT_MS,
        besideJobs: true,
        run: ({ call_id, lane }) =>
          asked(ask, lane, builtIn("choir.plan.list"), call_id, inboxOf(arbiter.state())).pipe(
            Effect.flatMap((output) => Effect.orDie(decodeList(output))),
            Effect.map(({ plans, sources }): ToolOutcome => {
              const count = plans.length === 1 ? "1 reminder" : `${plans.length} reminders`
              const summary = plans.length === 0 ? "no reminders" : count
              return { status: "success", summary, output: { plans: plans.map((plan) => ({ ...plan })) }, sources }
            }),
            Effect.catch((error) => Effect.succeed(refused(error)))
          )
      }))
  }

  return [
    changing("choir.plan.set", "Remind the user: Choir sends the text at that time.", Set, set),
    list,
    changing("choir.plan.cancel", "Remove a reminder by number.", Cancel, cancel)
  ] as const satisfies ReadonlyArray<Tool>
})
