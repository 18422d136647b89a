/** choirctl skill run and cancel: a skill that a person runs, in a job of its own. */
import { Effect, Option, type Schema, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { coreLane, type JobName } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import { ask, askStream } from "#src/choirctl/client/ask.ts"
import { skillRunText } from "#src/choirctl/render/runs.ts"
import { skillCancelLine } from "#src/choirctl/render/sessions.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import { inputOf } from "#src/choirctl/commands/flags/inputOf.ts"
import { sessionName, sessionOf } from "#src/choirctl/commands/flags/arguments.ts"

const skill = Argument.String("skill").pipe(
  Argument.withDescription("Skill name from choirctl skill list"),
  Argument.withSchema(SkillName)
)

/** The end of a job that began at or after a revision, with the whole output of its skill: the job's own result is cut like a tool's. */
const endOf = (id: Effect.Success<ReturnType<typeof sessionOf>>, job_name: JobName, from: number) =>
  Effect.suspend(() => {
    let output: Schema.Json | undefined
    return askStream("sessions", (choird) => choird.events({ params: { id }, query: { from, follow: "true" } })).pipe(
      Stream.filter(isPrintedEvent),
      Stream.flatMap(({ event }) => {
        if (event.event_type === "SkillTransitionCommitted" && event.lane === coreLane(job_name))
          output = event.payload.ended === "completed" ? event.payload.output : undefined
        if (event.event_type !== "CoreStopped" || event.payload.job_name !== job_name) return Stream.empty
        const { outcome, result, summary } = event.payload
        return Stream.make({ outcome, summary, result: output ?? result })
      }),
      Stream.runHead
    )
  })

export const skillRun = Command.make(
  "run",
  {
    name: sessionName,
    skill,
    input: Flag.String("input").pipe(
      Flag.withDescription("The skill's input as JSON, or a file that holds it"),
      Flag.withMetavar("<json or file>"),
      Flag.optional
    ),
    wait: Flag.Boolean("wait").pipe(
      Flag.withDescription("Wait until the skill has ended, and print its result"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ input, name, skill, wait }) {
    const given = Option.isSome(input) ? { input: yield* inputOf(input.value) } : {}
    const id = yield* sessionOf(name)
    const payload = { skill, ...given, request_id: crypto.randomUUID(), wait_ms: SIGNAL_WAIT_MS_MAX }
    const started = yield* ask("sessions", (choird) => choird.startSkill({ params: { id }, payload }))
    const { job_name, refused, rev } = started
    const isRunning = refused === null && rev !== null
    const ended =
      wait && isRunning ? yield* endOf(id, job_name, rev).pipe(withProgress(`running ${skill}`)) : Option.none()
    const result = Option.match(ended, {
      onNone: () => ({ ...started }),
      onSome: ({ outcome, result, summary }) => ({
        ...started,
        outcome,
        summary,
        ...(result === undefined ? {} : { result })
      })
    })
    yield* print(result, skillRunText)
    if (refused !== null || (Option.isSome(ended) && ended.value.outcome !== "completed"))
      return yield* new Unsuccessful({ exit_code: EXIT.failed })
    if (rev === null) return yield* new Unsuccessful({ exit_code: EXIT.again })
  }, onHost)
).pipe(
  Command.withDescription("Run a skill of a running agent in a job of its own"),
  Command.withExamples([{ command: `choirctl skill run agent-1 careful_change --input '{"goal":"tidy up"}' --wait` }])
)

export const skillCancel = Command.make(
  "cancel",
  { name: sessionName, skill },
  Effect.fnUntraced(function* ({ name, skill }) {
    const id = yield* sessionOf(name)
    const payload = { skill, request_id: crypto.randomUUID() }
    const cancelled = yield* ask("sessions", (choird) => choird.cancelSkill({ params: { id }, payload }))
    yield* print(cancelled, skillCancelLine)
  })
).pipe(
  Command.withDescription("End a skill that runs: its job, or edge's turn"),
  Command.withExamples([{ command: "choirctl skill cancel agent-1 careful_change" }])
)
