/** choirctl skill runs, session jobs and session orphans: how skills and jobs of an agent ended so far. */
import { Clock, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SkillName } from "#schema/Skill.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { jobRunTable, skillRunTable } from "#src/choirctl/render/runs.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"

const last = Flag.Int("last").pipe(
  Flag.filter(
    (value) => value >= 1,
    () => "--last must be a whole number from 1"
  ),
  Flag.withDescription("Print only this many of the newest runs (50)"),
  Flag.optional
)
const lastOf = (value: Option.Option<number>) => (Option.isSome(value) ? { last: value.value } : {})

export const skillRuns = Command.make(
  "runs",
  {
    id: agentId,
    skill: Argument.String("skill").pipe(
      Argument.withDescription("Only runs of this skill"),
      Argument.withSchema(SkillName),
      Argument.optional
    ),
    last
  },
  Effect.fnUntraced(function* ({ id, last, skill }) {
    const query = { ...lastOf(last), ...(Option.isSome(skill) ? { skill: skill.value } : {}) }
    const rows = yield* ask("runs", (choird) => choird.skills({ params: { id }, query }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(rows, (rows, color) => skillRunTable(rows, now_ms, color, Option.getOrUndefined(skill)))
  })
).pipe(
  Command.withDescription("List the runs of an agent's skills over all its sessions, the newest first"),
  Command.withExamples([{ command: "choirctl skill runs agent-1" }])
)

export const orphans = Command.make(
  "orphans",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* ask("runs", (choird) => choird.jobs({ params: { id }, query: { orphans: "true" } }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(rows, (rows, color) => (rows.length === 0 ? "no orphans" : jobRunTable(rows, now_ms, color)))
  })
).pipe(
  Command.withDescription("List the jobs of an agent that ended without the work summary that their profile requires"),
  Command.withExamples([{ command: "choirctl session orphans agent-1" }])
)

export const jobRuns = Command.make(
  "jobs",
  { id: agentId, last },
  Effect.fnUntraced(function* ({ id, last }) {
    const rows = yield* ask("runs", (choird) => choird.jobs({ params: { id }, query: lastOf(last) }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(rows, (rows, color) => jobRunTable(rows, now_ms, color))
  })
).pipe(
  Command.withDescription("List the core jobs of an agent over all its sessions, the newest first"),
  Command.withExamples([{ command: "choirctl session jobs agent-1 --last 20" }])
)
