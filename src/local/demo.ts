/**
 * `npm run demo`: a throw-away installation of the real programs, a scripted conversation over the console channel, an agent that
 * is killed in the middle of its work and carries on, and at the end the verified chain. Nothing is stubbed; only the provider is
 * the offline model, which says so.
 */
import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Fiber, Schedule, Schema } from "effect"
import { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalApi.ts"
import { ChatEvent, Verification } from "#schema/OperatorApi.ts"
import { createRepo } from "#src/shared/scaffold.ts"
import { writeDemoTools } from "./demoTools.ts"
import { sandboxProblem, takeRuntime } from "./hostRuntime.ts"
import { agentBelow, choirctl, offlineModel, program, ready, ROOT } from "./Programs.ts"
import * as Screen from "./Screen.ts"

const AGENT = "demo"
const started = performance.now()

/** A step of the demo did not do what it shows. */
class DemoFailed extends Schema.TaggedError<DemoFailed>()("DemoFailed", {
  step: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `the demo failed at "${this.step}": ${this.reason}`
  }
}

const must = Effect.fnUntraced(function* (home: string, ...args: ReadonlyArray<string>) {
  const ran = yield* choirctl(home, args)
  if (ran.code === 0) return ran.stdout
  return yield* new DemoFailed({ step: `choirctl ${args.join(" ")}`, reason: ran.stderr || ran.stdout })
})

const decodeJson = Schema.decodeEffect(Schema.fromJsonString(Schema.Json))
const decodeEvent = Schema.decodeSync(Schema.fromJsonString(ChatEvent))
const decodeVerification = Schema.decodeEffect(Schema.fromJsonString(Verification))

/** Sends one message as `choirctl chat` does and prints what comes back, until the turn and its jobs are over. */
const say = Effect.fnUntraced(function* (home: string, text: string) {
  yield* Console.log(Screen.user(text))
  const seen: Array<string> = []
  const ran = yield* choirctl(home, ["chat", AGENT, "--message", text, "--json"], (line) => {
    const event = decodeEvent(line)
    if (event.type !== "message") return
    seen.push(event.text)
    process.stdout.write(`${Screen.agent(event.kind, event.text)}\n`)
  })
  if (ran.code !== 0) return yield* new DemoFailed({ step: text, reason: ran.stderr || ran.stdout })
  return seen
})

/** Where bubblewrap does not work, the agent runs as a plain process, which has to be written into config.json. */
const chooseRuntime = Effect.fnUntraced(function* (home: string) {
  const problem = yield* sandboxProblem(home)
  yield* takeRuntime(home, problem === undefined ? "sandbox" : "process")
  if (problem !== undefined)
    yield* Console.log(Screen.step(started, `no sandbox (${problem}): the agent runs as a plain process`))
})

/** Real input: Choir's own schemas are what the agent reads. */
const fillWorkspace = (home: string) =>
  Effect.sync(() => cpSync(join(ROOT, "schema"), join(home, "workspaces/main/schema"), { recursive: true }))

/** The agent's repository with two tools more than a new one has; `agent init` takes the one that is there. */
const makeRepo = Effect.fnUntraced(function* (home: string) {
  const starter = join(home, "starter")
  yield* Effect.sync(() => {
    cpSync(join(ROOT, "docker/agent-starter"), starter, { recursive: true })
    writeDemoTools(starter)
  })
  yield* createRepo(join(home, "sources/agents", AGENT), starter).pipe(Effect.provide(NodeServices.layer))
})

const setUp = Effect.gen(function* () {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-demo-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  yield* Effect.sync(() => chmodSync(home, 0o700))
  const endpoint = yield* offlineModel(0)
  yield* Console.log(
    Screen.step(started, `offline-model answers at ${endpoint}: it follows plain instructions, it does not think`)
  )
  yield* must(home, "init", "--model-endpoint", endpoint, "--model-name", "offline-model")
  yield* makeRepo(home)
  yield* must(home, "agent", "init", AGENT)
  yield* chooseRuntime(home)
  yield* fillWorkspace(home)
  return home
})

const verify = Effect.fnUntraced(function* (home: string, session_id: string) {
  const verification = yield* decodeVerification(yield* must(home, "session", "verify", session_id, "--json"))
  const printed = yield* must(home, "session", "events", session_id, "--json")
  const last = printed.trimEnd().split("\n").slice(-3)
  for (const line of last) {
    const { event_type, hash, lane, rev } = JSON.parse(line) as Record<string, unknown>
    yield* Console.log(
      Screen.step(
        started,
        `${String(rev).padStart(4)} ${String(lane).padEnd(14)} ${String(event_type).padEnd(20)} ${String(hash)}`
      )
    )
  }
  if (!verification.ok)
    return yield* new DemoFailed({ step: "session verify", reason: JSON.stringify(verification.problem) })
  return verification
})

const LogLine = Schema.fromJsonString(
  Schema.Struct({
    event_type: Schema.String,
    lane: Schema.String,
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
  const conversation = yield* Effect.forkChild(
    say(
      home,
      "job patient: run sleep 2 && sha256sum schema/Event.ts > digest.txt, then write done.txt: the job went on, then read done.txt"
    )
  )
  yield* untilJobWorks(home, session_id)
  const pid = agentBelow(choird)
  if (pid === undefined) return yield* new DemoFailed({ step: "kill", reason: "no agent process was found" })
  yield* Console.log(Screen.step(started, `kill -9 ${pid}: the agent dies in the middle of a command`))
  yield* Effect.sync(() => process.kill(pid, "SIGKILL"))
  yield* Fiber.join(conversation)
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
  const conversation = yield* Effect.forkChild(
    say(home, 'call letters.read {}; call letters.send {"to":"ada","text":"we are fine"}')
  )
  const { approval_id } = yield* awaitApproval(home)
  const { hash } = yield* decodeApproval(yield* must(home, "approval", "show", approval_id, "--json"))
  const digits = hash.slice(0, 8)
  yield* Console.log(Screen.step(started, `choirctl approval approve ${approval_id} --hash ${digits}`))
  yield* must(home, "approval", "approve", approval_id, "--hash", digits)
  yield* Fiber.join(conversation)
  const { outcome, status } = yield* decodeApproval(yield* must(home, "approval", "show", approval_id, "--json"))
  if (status !== "done") return yield* new DemoFailed({ step: "approval", reason: `it is ${status}, ${outcome}` })
  yield* Console.log(Screen.step(started, `approval ${approval_id} is ${status}: ${outcome}`))
})

const main = Effect.gen(function* () {
  yield* Console.log(Screen.heading("Choir demo: real processes, a throw-away home"))
  const home = yield* setUp
  const choird = yield* program("choird", ["--home", home])
  yield* ready("choird", choird, must(home, "status", "--json"))
  const { runtime } = (yield* decodeJson(yield* must(home, "status", "--json"))) as {
    readonly runtime: { readonly type: string; readonly isolation: string }
  }
  yield* Console.log(
    Screen.step(started, `choird is ready, embedded Postgres; runtime ${runtime.type}: ${runtime.isolation}`)
  )
  yield* must(home, "agent", "build", AGENT)
  yield* must(home, "agent", "start", AGENT)
  const status = (yield* decodeJson(yield* must(home, "agent", "status", AGENT, "--json"))) as {
    readonly session_id: string
  }
  yield* Console.log(Screen.step(started, `the agent runs, session ${status.session_id}`))

  yield* Console.log(Screen.heading("Edge answers"))
  yield* say(home, "help")
  yield* Console.log(Screen.heading("Two jobs at once, under locks, on Choir's own schemas"))
  yield* say(
    home,
    [
      "job inventory: run grep -oE 'event\\(\"[A-Za-z]+\"' schema/Event.ts | cut -d'\"' -f2 > events.txt, then run wc -l < events.txt",
      "job measure: run wc -l schema/*.ts | sort -n > sizes.txt, then write notes/measure.md: the sizes are in sizes.txt, then run tail -n 1 sizes.txt"
    ].join("\n")
  )
  yield* Console.log(Screen.heading("A person approves what acts outside, after the agent has read a stranger's text"))
  yield* approveInTheMiddle(home)
  yield* Console.log(Screen.heading("The agent is killed and carries on"))
  yield* killInTheMiddle(home, status.session_id, choird.pid)
  yield* Console.log(Screen.heading("What it left"))
  yield* say(home, "read events.txt; read done.txt")
  yield* Console.log(Screen.heading("The verified chain"))
  const { events, head } = yield* verify(home, status.session_id)
  yield* Console.log(
    Screen.good(`\n${events} events, one order, one writer, every hash recomputed: ${head.slice(0, 16)}…`)
  )
  yield* Console.log(Screen.step(started, "done; the home is removed. Next: npm start"))
}).pipe(Effect.scoped)

NodeRuntime.runMain(
  Effect.tapError(main, ({ message }) => Console.error(Screen.bad(message))),
  { disableErrorReporting: true }
)
