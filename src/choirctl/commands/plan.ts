/** choirctl plan: what happens at a time by itself. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import { PlanId, type PlanSummary } from "#schema/Plan.ts"
import type { PlanMade } from "#schema/PlansApi.ts"
import { TimeZone } from "#schema/TimeZone.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { agentId, onlyAgent } from "#src/choirctl/commands/flags/arguments.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { localMinute } from "#src/shared/text/localTime.ts"

const nextOf = ({ next_at, state, zone }: PlanSummary): string =>
  next_at === null ? state : state === "paused" ? "paused" : localMinute(next_at, zone)

const timesOf = ({ kind, schedule }: PlanSummary): string => (kind === "once" ? "once" : schedule)

/** How the newest time of a plan went. */
const lastOf = ({ last, zone }: PlanSummary): string => {
  if (last === null) return ""
  const at = localMinute(last.at, zone)
  if (last.state !== "said") return `${last.state} ${at}`
  if (last.failure !== null) return `not delivered ${at}: ${safeLine(last.failure)}`
  return last.delivered_at === null ? `waits since ${at}` : `delivered ${localMinute(last.delivered_at, zone)}`
}

const planTable = (rows: ReadonlyArray<PlanSummary>, color: boolean): string =>
  rows.length === 0
    ? "no plans"
    : table(
        ["PLAN", "AGENT", "NEXT", "TIMES", "CHAT", "LAST", "TEXT"],
        rows.map((row) => [
          String(row.plan_id),
          row.agent_id,
          nextOf(row),
          timesOf(row),
          row.dm,
          lastOf(row),
          safeLine(row.text)
        ]),
        color
      )

const planText = (plan: PlanSummary): string => {
  const { agent_id, created_at, dm, made_by, plan_id, reason, state, text, zone } = plan
  const last = lastOf(plan)
  return [
    `plan ${plan_id} of ${agent_id}: ${safeLine(text)}`,
    `times: ${timesOf(plan)}, in ${zone}`,
    `next:  ${nextOf(plan)}`,
    `chat:  ${dm}`,
    `state: ${state}${reason === null ? "" : `, since ${reason}`}`,
    `made:  ${localMinute(created_at, zone)} by ${made_by}`,
    ...(last === "" ? [] : [`last:  ${last}`])
  ].join("\n")
}

const planId = Argument.String("plan").pipe(
  Argument.withDescription("The plan's number from choirctl plan list"),
  Argument.withSchema(Schema.NumberFromString.pipe(Schema.decodeTo(PlanId)))
)

const list = Command.make(
  "list",
  {
    agent_id: onlyAgent("plans"),
    all: Flag.Boolean("all").pipe(
      Flag.withDescription("Include plans that are over or were removed"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ agent_id, all }) {
    const query = {
      ...(Option.isSome(agent_id) ? { agent_id: agent_id.value } : {}),
      ...(all ? { all: "true" as const } : {})
    }
    yield* print(yield* ask("plans", (choird) => choird.list({ query })), planTable)
  })
).pipe(
  Command.withDescription("List reminders, those of the next time first"),
  Command.withExamples([{ command: "choirctl plan list helper" }])
)

const show = Command.make(
  "show",
  { agent_id: agentId, plan: planId },
  Effect.fnUntraced(function* ({ agent_id, plan }) {
    yield* print(yield* ask("plans", (choird) => choird.show({ params: { id: agent_id, plan } })), planText)
  })
).pipe(
  Command.withDescription("Show a reminder: its times, its chat, and how its newest message went"),
  Command.withExamples([{ command: "choirctl plan show helper 3" }])
)

const words = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)

const madeText = ({ doubt, plan }: PlanMade): string =>
  [`plan ${plan.plan_id}: ${nextOf(plan)}, at ${plan.dm}`, ...(doubt === null ? [] : [doubt])].join("\n")

const add = Command.make(
  "add",
  {
    agent_id: agentId,
    once: words("once", 'A time, such as "in 2 hours", "tomorrow 9:00" or "2027-03-01 18:00"'),
    every: words("every", 'Times that repeat, such as "weekday at 8:00", "monday 8:00" or "2 hours"'),
    cron: words("cron", 'A cron expression of five fields, such as "0 8 * * 1-5"'),
    say: Flag.String("say").pipe(Flag.withDescription("The text that is sent at that time")),
    dm: Flag.String("dm").pipe(
      Flag.withDescription("The chat that gets it; without it the one where the agent's person wrote last"),
      Flag.withSchema(ResourceName),
      Flag.optional
    ),
    zone: Flag.String("zone").pipe(
      Flag.withDescription("The time zone of the words, such as Europe/Berlin; without it the chat's"),
      Flag.withSchema(TimeZone),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ agent_id, cron, dm, every, once, say, zone }) {
    const given = [once, cron, Option.map(every, (times) => `every ${times}`)].flatMap((time) => Option.toArray(time))
    const [when] = given
    if (when === undefined || given.length > 1)
      return yield* usageError("name the time with one of --once, --every and --cron", "see choirctl plan add --help")
    const payload = {
      when,
      text: say,
      ...(Option.isSome(dm) ? { dm: dm.value } : {}),
      ...(Option.isSome(zone) ? { zone: zone.value } : {})
    }
    yield* print(yield* ask("plans", (choird) => choird.add({ params: { id: agent_id }, payload })), madeText)
  })
).pipe(
  Command.withDescription("Set a reminder, which choird sends at its time without a model"),
  Command.withExamples([
    { command: 'choirctl plan add helper --once "tomorrow 9:00" --say "Call the dentist"' },
    { command: 'choirctl plan add helper --every "weekday at 8:00" --say "Stand-up" --zone Europe/Berlin' }
  ])
)

const order = (verb: "pause" | "remove" | "resume" | "skip", description: string) =>
  Command.make(
    verb,
    { agent_id: agentId, plan: planId },
    Effect.fnUntraced(function* ({ agent_id, plan }) {
      const params = { id: agent_id, plan }
      yield* print(yield* ask("plans", (choird) => choird[verb]({ params })), planText)
    })
  ).pipe(Command.withDescription(description), Command.withExamples([{ command: `choirctl plan ${verb} helper 3` }]))

export const plan = Command.make("plan").pipe(
  Command.withSubcommands([
    list,
    show,
    add,
    order("pause", "Keep a reminder without sending it, until it is resumed"),
    order("resume", "Let a paused reminder continue with its next time"),
    order("skip", "Leave out the next time of a reminder"),
    order("remove", "Remove a reminder")
  ])
)
