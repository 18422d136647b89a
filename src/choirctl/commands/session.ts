/** choirctl session: what an agent did, and the proof of it. */
import { Clock, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { ask, askStream } from "#src/choirctl/client/ask.ts"
import { LaneId } from "#schema/Ids.ts"
import {
  contextText,
  coreList,
  eventLine,
  sessionTable,
  sessionText,
  verificationText
} from "#src/choirctl/render/sessions.ts"
import { printedEvent, wholeEvent } from "#src/choirctl/render/printedEvent.ts"
import { EXIT, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { endWithReader, Screen } from "#src/choirctl/terminal/Screen.ts"
import { onlyAgent, reasoning, sessionName, sessionOf } from "#src/choirctl/commands/flags/arguments.ts"
import { jobRuns, orphans } from "./runs.ts"
import { archive, exportEvents, remove } from "./retention.ts"
import { answer, cancel, compact, coreCancel, inject, newSession, stop } from "./steering.ts"

const list = Command.make(
  "list",
  {
    agent_id: onlyAgent("sessions")
  },
  Effect.fnUntraced(function* ({ agent_id }) {
    const query = Option.match(agent_id, { onNone: () => ({}), onSome: (agent_id) => ({ agent_id }) })
    const rows = yield* ask("sessions", (choird) => choird.list({ query }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(rows, (rows, color) => sessionTable(rows, now_ms, color))
  })
).pipe(
  Command.withDescription("List sessions, the newest first"),
  Command.withExamples([{ command: "choirctl session list agent-1" }])
)

const show = Command.make(
  "show",
  { name: sessionName },
  Effect.fnUntraced(function* ({ name }) {
    const id = yield* sessionOf(name)
    const detail = yield* ask("session", (choird) => choird.show({ params: { id } }))
    const now_ms = yield* Clock.currentTimeMillis
    yield* print(detail, (detail, color) => sessionText(detail, now_ms, color))
  })
).pipe(
  Command.withDescription("Show a session's status, times, bindings, revision and summary"),
  Command.withExamples([{ command: "choirctl session show 0k8v3w9m2p1n4q7r" }])
)

const count = (name: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (value) => value >= 0,
      () => `--${name} must be a whole number from 0`
    ),
    Flag.withDescription(description),
    Flag.optional
  )

const events = Command.make(
  "events",
  {
    name: sessionName,
    from: count("from", "First revision to print"),
    last: count("last", "Print only this many of the newest events"),
    follow: Flag.Boolean("follow").pipe(
      Flag.withDescription("Print new events as they are committed"),
      Flag.withDefault(false)
    ),
    reasoning
  },
  Effect.fnUntraced(function* ({ follow, from, last, name, reasoning: isWhole }) {
    const id = yield* sessionOf(name)
    yield* endWithReader
    const query = {
      ...(Option.isSome(from) ? { from: from.value } : {}),
      ...(Option.isSome(last) ? { last: last.value } : {}),
      ...(follow ? { follow: "true" as const } : {})
    }
    const printed = yield* askStream("sessions", (choird) => choird.events({ params: { id }, query })).pipe(
      Stream.map(isWhole ? wholeEvent : printedEvent),
      Stream.tap((event) => print(event, eventLine)),
      Stream.runCount
    )
    if (printed > 0 || follow) return
    const { last_rev } = yield* ask("session", (choird) => choird.show({ params: { id } }))
    const screen = yield* Screen
    if (last_rev === 0) yield* screen.note(`${id} has no events yet`)
    else if (Option.isSome(from))
      yield* screen.note(`no events from revision ${from.value} on: the log of ${id} ends at ${last_rev}`)
  })
).pipe(
  Command.withDescription("Print a session's events, from the first one"),
  Command.withExamples([{ command: "choirctl session events 0k8v3w9m2p1n4q7r --last 20 --follow" }])
)

const cores = Command.make(
  "cores",
  { name: sessionName },
  Effect.fnUntraced(function* ({ name }) {
    const id = yield* sessionOf(name)
    const rows = yield* ask("sessions", (choird) => choird.cores({ params: { id } }))
    yield* print(rows, coreList)
  })
).pipe(
  Command.withDescription("List the running core jobs of a session with their plans, work and cost"),
  Command.withExamples([{ command: "choirctl session cores 0k8v3w9m2p1n4q7r" }])
)

const context = Command.make(
  "context",
  {
    name: sessionName,
    lane: Flag.String("lane").pipe(
      Flag.withSchema(LaneId),
      Flag.withDescription("edge (default) or core:<job-name>"),
      Flag.withMetavar("<lane>"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ lane, name }) {
    const id = yield* sessionOf(name)
    const query = Option.isSome(lane) ? { lane: lane.value } : {}
    const prompt = yield* ask("sessions", (choird) => choird.context({ params: { id }, query }))
    yield* print(prompt, contextText)
  })
).pipe(
  Command.withDescription("Print a lane's newest prompt as its model saw it, with the tokens of each part"),
  Command.withExamples([{ command: "choirctl session context 0k8v3w9m2p1n4q7r --lane core:refactor-auth" }])
)

const verify = Command.make(
  "verify",
  { name: sessionName },
  Effect.fnUntraced(function* ({ name }) {
    const id = yield* sessionOf(name)
    const result = yield* ask("sessions", (choird) => choird.verify({ params: { id } })).pipe(withProgress("verifying"))
    yield* print(result, verificationText)
    if (!result.ok) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription("Verify a session's hash chain, and that its events replay to a valid state"),
  Command.withExamples([{ command: "choirctl session verify 0k8v3w9m2p1n4q7r" }])
)

const resume = Command.make(
  "resume",
  { name: sessionName },
  Effect.fnUntraced(function* ({ name }) {
    const id = yield* sessionOf(name)
    const resumed = yield* ask("resume", (choird) => choird.resume({ params: { id } })).pipe(
      withProgress(`resuming ${id}`)
    )
    yield* print(resumed, ({ agent_id, epoch, session_id }) => `${agent_id} resumed ${session_id}, epoch ${epoch}`)
  })
).pipe(
  Command.withDescription("Resume a session; only an agent's newest session can be resumed"),
  Command.withExamples([{ command: "choirctl session resume 0k8v3w9m2p1n4q7r" }])
)

export const session = Command.make("session").pipe(
  Command.withSubcommands([
    list,
    show,
    events,
    resume,
    newSession,
    cores,
    jobRuns,
    orphans,
    context,
    inject,
    answer,
    compact,
    stop,
    cancel,
    coreCancel,
    verify,
    exportEvents,
    archive,
    remove
  ])
)
