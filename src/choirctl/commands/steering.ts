/** choirctl session inject, answer, compact, stop, cancel and core-cancel: what a running session is asked to do. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { steeringWords } from "#schema/ChatCommand.ts"
import { JobName, LaneId } from "#schema/Ids.ts"
import type { SignalSummary } from "#schema/SessionsApi.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import {
  answerLine,
  cancelLine,
  compactLine,
  injectLine,
  newSessionLine,
  stopLine
} from "#src/choirctl/render/sessions.ts"
import { EXIT, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { readInput, withoutLineEnd } from "#src/choirctl/terminal/input.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import { sessionName, sessionOf } from "#src/choirctl/commands/flags/arguments.ts"
import { CHAT_LINE_BYTES_MAX } from "./chat.ts"

/** The words that a chat has for the same orders. */
const WORDS = {
  answer: steeringWords("answer"),
  cancel: steeringWords("cancel"),
  compact: steeringWords("compact"),
  inject: steeringWords("inject"),
  new: steeringWords("new"),
  stop: steeringWords("stop")
}

const wait = (description: string, byDefault: boolean) =>
  Flag.Boolean("wait").pipe(Flag.withDescription(description), Flag.withDefault(byDefault))

const requestId = Flag.String("request-id").pipe(
  Flag.withDescription("Idempotency key: the same id and request take effect once"),
  Flag.withMetavar("<id>"),
  Flag.optional
)

const WAIT = "Wait for the event that completes it"

/** How a signal is asked for; see the operator API. */
const asking = ({ request_id, wait }: { readonly request_id: Option.Option<string>; readonly wait: boolean }) => ({
  request_id: Option.getOrElse(request_id, () => crypto.randomUUID()),
  ...(wait ? { wait_ms: SIGNAL_WAIT_MS_MAX } : {})
})

/** Prints a signal. The exit code tells when nothing came of it, or when the event may still come. */
const printSignal = Effect.fnUntraced(function* <A extends SignalSummary>(
  signal: A,
  waited: boolean,
  text: (signal: A) => string
) {
  yield* print(signal, text)
  if (signal.refused !== null) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  if (waited && signal.rev === null) return yield* new Unsuccessful({ exit_code: EXIT.again })
})

const jobName = Argument.String("job-name").pipe(
  Argument.withDescription("Job name from choirctl session cores"),
  Argument.withSchema(JobName)
)

const cancelJob = Effect.fnUntraced(function* (
  name: string,
  job_name: JobName | undefined,
  flags: Parameters<typeof asking>[0]
) {
  const id = yield* sessionOf(name)
  const payload = { ...(job_name === undefined ? {} : { job_name }), ...asking(flags) }
  const cancelled = yield* ask("sessions", (choird) => choird.cancel({ params: { id }, payload }))
  yield* printSignal(cancelled, flags.wait, cancelLine)
})

export const cancel = Command.make(
  WORDS.cancel.verb,
  { name: sessionName, job_name: Argument.optional(jobName), request_id: requestId, wait: wait(WAIT, false) },
  ({ job_name, name, ...flags }) => cancelJob(name, Option.getOrUndefined(job_name), flags)
).pipe(
  Command.withDescription(WORDS.cancel.help),
  Command.withExamples([{ command: "choirctl session cancel 0k8v3w9m2p1n4q7r research" }])
)

export const coreCancel = Command.make(
  "core-cancel",
  { name: sessionName, job_name: jobName, request_id: requestId, wait: wait(WAIT, false) },
  ({ job_name, name, ...flags }) => cancelJob(name, job_name, flags)
).pipe(
  Command.withDescription("Cancel the core job with this name"),
  Command.withExamples([{ command: "choirctl session core-cancel 0k8v3w9m2p1n4q7r research --wait" }])
)

export const stop = Command.make(
  WORDS.stop.verb,
  { name: sessionName, request_id: requestId, wait: wait(WAIT, false) },
  Effect.fnUntraced(function* ({ name, ...flags }) {
    const id = yield* sessionOf(name)
    const stopped = yield* ask("sessions", (choird) => choird.stopTurn({ params: { id }, payload: asking(flags) }))
    yield* printSignal(stopped, flags.wait, stopLine)
  })
).pipe(
  Command.withDescription(WORDS.stop.help),
  Command.withExamples([{ command: "choirctl session stop 0k8v3w9m2p1n4q7r --wait" }])
)

export const newSession = Command.make(
  WORDS.new.verb,
  {
    name: sessionName,
    end_jobs: Flag.Boolean("end-jobs").pipe(
      Flag.withDescription("End the jobs that run; without it they keep the conversation open"),
      Flag.withDefault(false)
    ),
    request_id: requestId,
    wait: wait(`${WAIT}, at most ${SIGNAL_WAIT_MS_MAX / 1000} s; --no-wait returns at once`, true)
  },
  Effect.fnUntraced(function* ({ end_jobs, name, ...flags }) {
    const id = yield* sessionOf(name)
    const payload = { ...(end_jobs ? { end_jobs } : {}), ...asking(flags) }
    const renewed = yield* ask("sessions", (choird) => choird.renew({ params: { id }, payload })).pipe(
      withProgress("summing up the conversation")
    )
    yield* printSignal(renewed, flags.wait, newSessionLine)
  })
).pipe(Command.withDescription(WORDS.new.help), Command.withExamples([{ command: "choirctl session new agent-1" }]))

const textFor = (description: string) =>
  Argument.String("text").pipe(Argument.withDescription(`${description}; default: standard input`), Argument.optional)

/** The text of an argument, or else of standard input; an empty one is a mistake, and `example` shows the fix. */
const readText = Effect.fnUntraced(function* (text: Option.Option<string>, what: string, example: string) {
  const said = Option.isSome(text) ? text.value : withoutLineEnd(yield* readInput(CHAT_LINE_BYTES_MAX))
  return said.trim() === "" ? yield* usageError(`the ${what} is empty`, example) : said
})

export const inject = Command.make(
  WORDS.inject.verb,
  { name: sessionName, text: textFor("Instruction for edge"), request_id: requestId, wait: wait(WAIT, false) },
  Effect.fnUntraced(function* ({ name, text, ...flags }) {
    const example = `choirctl session inject ${name} "use the other branch"`
    const said = yield* readText(text, "instruction", example)
    const id = yield* sessionOf(name)
    const payload = { text: said, ...asking(flags) }
    const injected = yield* ask("sessions", (choird) => choird.inject({ params: { id }, payload }))
    yield* printSignal(injected, flags.wait, injectLine)
  }, onHost)
).pipe(
  Command.withDescription(WORDS.inject.help),
  Command.withExamples([{ command: 'choirctl session inject 0k8v3w9m2p1n4q7r "use the other branch"' }])
)

export const answer = Command.make(
  WORDS.answer.verb,
  {
    name: sessionName,
    text: textFor("The answer"),
    job: Flag.String("job").pipe(
      Flag.withDescription("Job name from choirctl session cores; default: the only job that asks"),
      Flag.withMetavar("<job>"),
      Flag.withSchema(JobName),
      Flag.optional
    ),
    request_id: requestId,
    wait: wait(WAIT, false)
  },
  Effect.fnUntraced(function* ({ job, name, text, ...flags }) {
    const said = yield* readText(text, "answer", `choirctl session answer ${name} "the second one"`)
    const id = yield* sessionOf(name)
    const payload = { text: said, ...(Option.isSome(job) ? { job_name: job.value } : {}), ...asking(flags) }
    const answered = yield* ask("sessions", (choird) => choird.answer({ params: { id }, payload }))
    yield* printSignal(answered, flags.wait, answerLine)
  }, onHost)
).pipe(
  Command.withDescription(WORDS.answer.help),
  Command.withExamples([{ command: 'choirctl session answer 0k8v3w9m2p1n4q7r "the second one" --job research' }])
)

export const compact = Command.make(
  WORDS.compact.verb,
  {
    name: sessionName,
    lane: Flag.String("lane").pipe(
      Flag.withDescription("edge (default) or core:<job-name>"),
      Flag.withMetavar("<lane>"),
      Flag.withSchema(LaneId),
      Flag.optional
    ),
    request_id: requestId,
    wait: wait(`${WAIT}, at most ${SIGNAL_WAIT_MS_MAX / 1000} s; --no-wait returns at once`, true)
  },
  Effect.fnUntraced(function* ({ lane, name, ...flags }) {
    const id = yield* sessionOf(name)
    const payload = { ...(Option.isSome(lane) ? { lane: lane.value } : {}), ...asking(flags) }
    const compacted = yield* ask("sessions", (choird) => choird.compact({ params: { id }, payload })).pipe(
      withProgress("compacting")
    )
    yield* printSignal(compacted, flags.wait, compactLine)
  })
).pipe(
  Command.withDescription(WORDS.compact.help),
  Command.withExamples([{ command: "choirctl session compact 0k8v3w9m2p1n4q7r --lane core:research" }])
)
