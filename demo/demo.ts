/**
 * `npm run demo`: a throw-away installation of the real programs, a scripted conversation over the console channel, an agent that
 * is killed in the middle of its work and carries on, and at the end the verified log. Nothing is stubbed; only the provider is
 * the offline model, which says so.
 */
import { Console, Effect, Fiber, Schedule, Schema } from "effect"
import { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import { ChatEvent } from "#schema/ChatApi.ts"
import { Verification } from "#schema/SessionsApi.ts"
import { AGENT, DemoFailed, makeDemoHome, must } from "./DemoHome.ts"
import { agentBelow, choirctl, program, ready } from "#tools/Programs.ts"
import { runOwner } from "#tools/runOwner.ts"
import * as Screen from "#tools/Screen.ts"

const HASH_DIGITS = 12

const decodeEvent = Schema.decodeSync(Schema.fromJsonString(ChatEvent))
const decodeStatus = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ session_id: Schema.String })))
const decodeVerification = Schema.decodeEffect(Schema.fromJsonString(Verification))

/** The agent's messages, by kind. */
interface Sent {
  readonly kind: string
  readonly text: string
}

/** Sends one message as `choirctl chat` does and prints what comes back, until the turn and its jobs are over. */
const say = Effect.fnUntraced(function* (home: string, text: string) {
  yield* Console.log(Screen.user(text))
  const sent: Array<Sent> = []
  const ran = yield* choirctl(home, ["chat", AGENT, "--message", text, "--json"], (line) => {
    const event = decodeEvent(line)
    if (event.type !== "message") return
    sent.push(event)
    process.stdout.write(`${Screen.agent(event.kind, event.text)}\n`)
  })
  if (ran.code !== 0) return yield* new DemoFailed({ step: text, reason: ran.stderr || ran.stdout })
  return sent
})

/** Ends the demo when an act did not show what its last line says. */
const expect = (step: string, holds: boolean, reason: string) =>
  holds ? Effect.void : Effect.fail(new DemoFailed({ step, reason }))

const conversation = Effect.fnUntraced(function* (home: string) {
  yield* Console.log(Screen.heading("1. You talk to the agent"))
  const sent = yield* say(home, "help")
  yield* expect("help", sent.length > 0, "the agent did not answer")
  yield* Console.log(Screen.seen("the agent answered at once; longer work goes to jobs in the background."))
})

const twoJobs = Effect.fnUntraced(function* (home: string) {
  yield* Console.log(Screen.heading("2. Two background jobs work at the same time"))
  const sent = yield* say(
    home,
    [
      "job inventory: run grep -oE 'event\\(\"[A-Za-z]+\"' schema/Event.ts | cut -d'\"' -f2 > events.txt, then run wc -l < events.txt",
      "job measure: run wc -l schema/*.ts | sort -n > sizes.txt, then write notes/measure.md: the sizes are in sizes.txt, then run tail -n 1 sizes.txt"
    ].join("\n")
  )
  const reports = sent.filter(({ kind }) => kind === "report")
  yield* expect("two jobs", reports.length === 2, `${reports.length} of 2 jobs reported`)
  yield* Console.log(
    Screen.seen(
      "two jobs shared one folder, with locks so that neither spoils the other's work, and each reported back."
    )
  )
})

const decodeApprovals = Schema.decodeEffect(Schema.fromJsonString(Schema.Array(ApprovalSummary)))
const decodeApproval = Schema.decodeEffect(Schema.fromJsonString(ApprovalDetail))

/** The approval that the agent asks a person for. */
const awaitApproval = (home: string) =>
  Effect.retry(
    Effect.gen(function* () {
      const [approval] = yield* decodeApprovals(yield* must(home, "approval", "list", "--json"))
      return approval ?? (yield* new DemoFailed({ step: "approval", reason: "the agent asked nobody" }))
    }),
    Schedule.max([Schedule.spaced("50 millis"), Schedule.recurs(100)])
  )

const approveInTheMiddle = Effect.fnUntraced(function* (home: string) {
  yield* Console.log(Screen.heading("3. The agent reads a stranger's letter, then wants to send one"))
  const conversation = yield* Effect.forkChild(
    say(home, 'call letters.read {}; call letters.send {"to":"ada","text":"we are fine"}')
  )
  const { approval_id } = yield* awaitApproval(home)
  const { hash } = yield* decodeApproval(yield* must(home, "approval", "show", approval_id, "--json"))
  const digits = hash.slice(0, 8)
  yield* Console.log(Screen.step(`for you: choirctl approval approve ${approval_id} --hash ${digits}`))
  yield* must(home, "approval", "approve", approval_id, "--hash", digits)
  yield* Fiber.join(conversation)
  const { outcome, status } = yield* decodeApproval(yield* must(home, "approval", "show", approval_id, "--json"))
  yield* expect("approval", status === "done", `it is ${status}, ${outcome}`)
  yield* Console.log(
    Screen.seen("what a stranger wrote can steer a model, so nothing was sent until a person approved that very call.")
  )
})

const LogLine = Schema.fromJsonString(
  Schema.Struct({
    rev: Schema.Number,
    event_type: Schema.String,
    lane: Schema.String,
    hash: Schema.String,
    payload: Schema.Struct({ call_id: Schema.optionalKey(Schema.String) })
  })
)
const decodeLog = Schema.decodeEffect(Schema.Array(LogLine))

/** Waits until a tool call of a job has begun and not ended, whatever edge commits meanwhile, so that the kill hits work under way. */
const untilJobWorks = (home: string, session_id: string) =>
  Effect.retry(
    Effect.gen(function* () {
      const printed = yield* must(home, "session", "events", session_id, "--last", "20", "--json")
      const events = yield* decodeLog(printed.trimEnd().split("\n"))
      const callsOf = (type: string) =>
        events.flatMap(({ event_type, lane, payload: { call_id } }) =>
          event_type === type && lane.startsWith("core:") && call_id !== undefined ? [call_id] : []
        )
      const ended = new Set(callsOf("ToolResultCommitted"))
      if (callsOf("ToolCallCommitted").every((call_id) => ended.has(call_id)))
        return yield* new DemoFailed({ step: "kill", reason: "no job began to work" })
    }),
    Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(200)])
  )

const killInTheMiddle = Effect.fnUntraced(function* (home: string, session_id: string, choird: number) {
  yield* Console.log(Screen.heading("4. The agent is killed in the middle of a command"))
  const conversation = yield* Effect.forkChild(
    say(
      home,
      "job patient: run sleep 2 && sha256sum schema/Event.ts > digest.txt, then write done.txt: the job continued, then read done.txt"
    )
  )
  yield* untilJobWorks(home, session_id)
  const pid = agentBelow(choird)
  if (pid === undefined) return yield* new DemoFailed({ step: "kill", reason: "no agent process was found" })
  yield* Console.log(Screen.step(`kill -9 ${pid}: the agent dies while the job's first command runs`))
  yield* Effect.sync(() => process.kill(pid, "SIGKILL"))
  const sent = yield* Fiber.join(conversation)
  const went_on = sent.some(({ kind, text }) => kind === "report" && text.includes("Wrote done.txt"))
  yield* expect("kill", went_on, "the job did not carry on")
  yield* Console.log(
    Screen.seen(
      "the agent came back and the job did its remaining steps. Nobody can know whether the interrupted\n" +
        "command took effect, so Choir neither guesses nor runs it twice: it tells the agent and you."
    )
  )
})

const showWork = Effect.fnUntraced(function* (home: string) {
  yield* Console.log(Screen.heading("5. The work is there"))
  const sent = yield* say(home, "read events.txt; read done.txt")
  yield* expect(
    "the work",
    sent.some(({ text }) => text.includes("the job continued")),
    "done.txt is not as the job wrote it"
  )
  yield* Console.log(Screen.seen("the files of the first job, and of the job that was interrupted."))
})

/** How a person knows the part of the agent that signed an event. */
const author = (lane: string): string => (lane === "edge" ? "conversation" : lane.replace(/^core:/u, "job "))

const showLog = Effect.fnUntraced(function* (home: string, session_id: string) {
  yield* Console.log(Screen.heading("6. The log of it all, verified"))
  const { events, head, ok, problem } = yield* decodeVerification(
    yield* must(home, "session", "verify", session_id, "--json")
  )
  const printed = yield* must(home, "session", "events", session_id, "--last", "3", "--json")
  for (const { event_type, hash, lane, rev } of yield* decodeLog(printed.trimEnd().split("\n")))
    yield* Console.log(
      `  ${String(rev).padStart(4)}  ${author(lane).padEnd(14)} ${event_type.padEnd(20)} ${hash.slice(0, HASH_DIGITS)}…`
    )
  yield* expect("session verify", ok, JSON.stringify(problem))
  yield* Console.log(
    Screen.seen(
      `${events} events in one order. The digits are each event's hash, made from the event and the hash before it;\n` +
        `all were recomputed, so nothing was changed, lost or added. The last one covers the whole log: ${head.slice(0, HASH_DIGITS)}….`
    )
  )
})

const play = Effect.gen(function* () {
  yield* Console.log(Screen.heading("Choir demo: the real programs in a throw-away home"))
  const home = yield* makeDemoHome
  const choird = yield* program("choird", ["--home", home])
  yield* ready("choird", choird, must(home, "status", "--json"))
  yield* Console.log(Screen.step("choird runs, with a database of its own: it decides what the agent may do"))
  yield* must(home, "agent", "build", AGENT)
  yield* must(home, "agent", "start", AGENT)
  const { session_id } = yield* decodeStatus(yield* must(home, "agent", "status", AGENT, "--json"))
  yield* Console.log(Screen.step(`the agent runs; its log is session ${session_id}`))
  yield* conversation(home)
  yield* twoJobs(home)
  yield* approveInTheMiddle(home)
  yield* killInTheMiddle(home, session_id, choird.pid)
  yield* showWork(home)
  yield* showLog(home, session_id)
}).pipe(Effect.scoped)

const NEXT_STEPS = `Next:
  npm start       your own agent, with a real model and, if you like, Telegram
  npm run link    puts choirctl, the command line, on your PATH`

const main = Effect.gen(function* () {
  yield* play
  yield* Console.log(Screen.step("the demo is over; its home is removed"))
  yield* Console.log(`\n${NEXT_STEPS}`)
})

runOwner(Effect.tapError(main, ({ message }) => Console.error(Screen.bad(message))))
