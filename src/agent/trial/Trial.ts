/**
 * Runs a skill as the one job of a session that exists in this process alone: the arbiter, the prompts and the models are those of an agent,
 * choird is not asked for anything, and tools are answered from a record.
 */
import { Effect, Layer, Stream, Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { coreLane, EDGE, InboxId, JobName, SessionId } from "#schema/Ids.ts"
import {
  TRIAL_EFFECTS_MAX,
  TRIAL_TEXT_CHARS_MAX,
  TrialOutcome,
  TrialTask,
  TRIAL_TASK_BYTES_MAX
} from "#schema/Trial.ts"
import { Arbiter, commitIfDue, type Refused } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { Denied, type Unreachable } from "#src/agent/control/verbAnswer.ts"
import { GitAccess } from "#src/agent/git/GitAccess.ts"
import { ImageTools, type ToolBroken } from "#src/agent/image/ImageTools.ts"
import { Llm } from "#src/agent/model/Llm.ts"
import { TokenCount } from "#src/agent/model/TokenCount.ts"
import { Environment, ofPlace } from "#src/agent/model/prompt/Environment.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { runCore } from "#src/agent/session/CoreJob.ts"
import type { InputSchemaRefused } from "#src/agent/tools/external.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { OutsideApi } from "#src/agent/outside/OutsideApi.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { Workspace, type WorkspaceUnavailable } from "#src/agent/workspace/Workspace.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { makeRecordedTools, type TrialEffects } from "./RecordedTools.ts"
import { ANYTHING, layerTrial } from "./trialSession.ts"
import type { HttpClient } from "effect/http"
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { takeWayOut } from "#src/shared/wire/wayOut.ts"

/** The job of a trial. */
export const JOB = JobName.make("trial")
const SESSION = SessionId.make("0000000000000000")
/** Results are compared by people, and longer ones are left out. */
const OUTPUT_BYTES_MAX = 64 * 1024
const NOBODY_ANSWERS = "Nobody can answer now. Continue without the answer."

/** Where a trial runs. */
interface TrialPlace {
  /** An empty folder in place of the workspace. */
  readonly root: string
  readonly model: Layer.Layer<Llm, never, SecretStore>
}

/** choird, for a session that has none: nothing is given and nothing is taken. */
const layerNoControlPlane = Layer.suspend(() => {
  const denied = (verb: string) =>
    Effect.fail(new Denied({ verb, type: "NOT_AVAILABLE", reason: "a trial has no connection to choird" }))
  return Layer.succeed(ControlPlane, {
    hello: () => denied("INIT_HELLO"),
    secrets: () => denied("GET_SECRETS"),
    heartbeat: () => denied("HEARTBEAT"),
    execute: () => denied("EXECUTE_HOST_TOOL"),
    approval: () => denied("REQUEST_APPROVAL"),
    terminate: () => Effect.void,
    config: (config_version) => Effect.succeed({ config_version }),
    report: () => Effect.void,
    signals: Stream.never
  })
})

/** No call of a trial runs a process; one that did would be a defect. */
const layerNoProcesses = Layer.succeed(ProcessRunner, {
  run: () => Effect.die(new Error("a trial runs no processes")),
  cutsNetwork: true,
  limitsWrites: true,
  endsAll: true,
  turnMs: 0,
  callOf: () => undefined,
  keep: () => undefined
})

const PLACE = ofPlace({
  workspace: "/workspace",
  git: "not a repository",
  os: "Linux",
  shell: "bash",
  time_zone: "UTC",
  hasAgentsFile: false
})

/** The manifests as tools without secrets, which no run needs that does not happen. */
const imageTools = ({ manifests }: TrialTask) =>
  manifests.map(({ llm, runtime }) => ({
    file: `${llm.name}.json`,
    manifest: { llm, runtime: { ...runtime, secret_resources: [] } },
    executable: ""
  }))

/** The agent's configuration without questions to a person: nothing in a trial acts outside. */
const unasked = ({ config }: TrialTask): AgentConfig => ({
  ...config,
  approvals: { ...config.approvals, confirm_external: "never" }
})

const layerSession = (task: TrialTask, tools: ReturnType<typeof makeRecordedTools>, { model, root }: TrialPlace) => {
  const { secrets, skills } = task
  const surroundings = Layer.mergeAll(
    layerNoControlPlane,
    Layer.succeed(ImageTools, imageTools(task)),
    Layer.succeed(Environment, PLACE),
    layerNoProcesses,
    GitAccess.layerNone,
    OutsideApi.layerNone,
    Pictures.layerNone,
    Workspace.layer({ root })
  )
  return layerTrial(
    { session_id: SESSION, config: unasked(task), secrets, skills, rg: "rg", mailReader: "" },
    surroundings,
    model,
    tools.layer
  )
}

/** Starts the job as edge would: a message, an answer that spawns it, and the spawn. */
const begin = Effect.fnUntraced(function* ({ input, skill }: Pick<TrialTask, "input" | "skill">) {
  const arbiter = yield* Arbiter
  const runner = yield* ToolRunner
  const message = { inbox_id: InboxId.make("1"), dm: ANYTHING, text: "trial", attachments: [], created_at: "" }
  yield* arbiter.commit({ type: "UserMessage", message: { type: "UserMessage", ...message } })
  const start = {
    job_name: JOB,
    task_spec: `Run the skill ${skill}.`,
    skill: { name: skill, ...(input === undefined ? {} : { input }) }
  }
  yield* arbiter.commit({
    type: "Output",
    lane: EDGE,
    output: {
      purpose: "turn",
      model: "trial",
      tool_calls: [{ name: "choir-core-spawn", input: start }],
      finish_reason: "tool_calls",
      usage: { input_tokens: 0, output_tokens: 0 },
      latency_ms: 0
    }
  })
  yield* runner.runOpen(EDGE)
})

/** A question of the job gets the answer that nobody is there, so that no trial waits for one. */
const answerQuestions = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  for (let asked = 1; ; asked += 1) {
    yield* arbiter.until(({ cores }) => cores.get(JOB)?.question !== undefined)
    yield* commitIfDue(arbiter, {
      type: "SignalInject",
      signal_id: String(asked),
      source: "control_plane",
      content: NOBODY_ANSWERS,
      job_name: JOB
    })
    yield* Effect.yieldNow
  }
})

/** Runs a skill from its start to its end, in a session that has done nothing. The limit at which the session ended, if it did. */
export const runSkill = Effect.fnUntraced(
  function* (task: Pick<TrialTask, "input" | "skill">) {
    yield* begin(task)
    yield* Effect.raceFirst(runCore(JOB), answerQuestions)
    return undefined
  },
  Effect.catchTag("Exhausted", ({ limit }) => Effect.succeed(limit))
)

/** Every event of the session, in order. */
export const eventsOf = (log: EventLog["Service"]): ReadonlyArray<ChoirEvent> =>
  Array.from({ length: log.head() }, (_, index) => log.get(index + 1))

const textOf = (summary: string): string => firstPart(summary, TRIAL_TEXT_CHARS_MAX)

const outcomeOf = (
  events: ReadonlyArray<ChoirEvent>,
  effects: TrialEffects,
  duration_ms: number,
  failure?: string
): TrialOutcome => {
  const stopped = events.find((event): event is EventOf<"CoreStopped"> => event.event_type === "CoreStopped")
  const own = events.filter(({ lane }) => lane === coreLane(JOB))
  const moves = own.flatMap((event) => (event.event_type === "SkillTransitionCommitted" ? [event.payload] : []))
  const results = own.flatMap((event) => (event.event_type === "ToolResultCommitted" ? [event.payload] : []))
  const outputs = own.flatMap((event) => (event.event_type === "ModelOutput" ? [event.payload] : []))
  // A job that never began says why in the result of its spawn.
  const refused = events.flatMap((event) =>
    event.event_type === "ToolResultCommitted" && event.lane === EDGE ? [event.payload.summary] : []
  )
  const cost = outputs.reduce((sum, { usage }) => sum + (usage.cost_usd ?? 0), 0)
  const result = stopped?.payload.result
  const fits = result !== undefined && Buffer.byteLength(JSON.stringify(result)) <= OUTPUT_BYTES_MAX
  return {
    outcome: failure === undefined ? (stopped?.payload.outcome ?? "error") : "budget",
    summary: textOf(failure ?? stopped?.payload.summary ?? refused[0] ?? "the trial did not begin"),
    ...(fits ? { output: result } : {}),
    path: moves.map(({ to }) => to).filter((state) => state !== ""),
    steps: outputs.length,
    tool_calls: results.length,
    refusals: results.filter(({ allowed, status }) => status === "rejected" && allowed !== undefined).length,
    unanswered: effects.unanswered,
    external: Object.fromEntries(Object.entries(effects.external).slice(0, TRIAL_EFFECTS_MAX)),
    tokens: outputs.reduce((sum, { usage }) => sum + usage.input_tokens + usage.output_tokens, 0),
    ...(cost > 0 ? { cost_usd: cost } : {}),
    duration_ms: Math.round(duration_ms)
  }
}

/** Why a trial has no outcome. */
type TrialFailure = Denied | InputSchemaRefused | Refused | ToolBroken | Unreachable | WorkspaceUnavailable

/** Runs a task to its end. */
export const runTrial = Effect.fn("Trial.run")(function* (
  task: TrialTask,
  place: TrialPlace
): Effect.fn.Return<TrialOutcome, TrialFailure, TokenCount> {
  const tools = makeRecordedTools(task.record)
  return yield* Effect.gen(function* () {
    const log = yield* EventLog
    const started = yield* monotonicMs
    const failure = yield* runSkill(task)
    const events = eventsOf(log)
    return outcomeOf(events, tools.effects(), (yield* monotonicMs) - started, failure)
  }).pipe(Effect.provide(layerSession(task, tools, place)), Effect.scoped)
})

/** A task that cannot be used. choird made it, so that this is a fault of Choir. */
class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", { problem: Schema.String }) {
  override get message() {
    return `the task of the trial cannot be used: ${this.problem}`
  }
}

const readTask = Effect.tryPromise({
  try: async () => {
    const chunks: Array<Buffer> = []
    let bytes = 0
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > TRIAL_TASK_BYTES_MAX) throw new Error(`it has more than ${TRIAL_TASK_BYTES_MAX} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString("utf8")
  },
  catch: (error) => new TaskRefused({ problem: String(error) })
})

const decodeTask = Schema.decodeUnknownEffect(Schema.fromJsonString(TrialTask), { onExcessProperty: "error" })
const encodeOutcome = Schema.encodeEffect(Schema.fromJsonString(TrialOutcome))

/**
 * The program of a trial: the task comes on standard input, and the outcome is the one line on standard output.
 *
 * @param root an empty folder in place of the workspace.
 */
export const trialProgram = (
  root: string,
  modelHttp: Layer.Layer<HttpClient.HttpClient>
): Effect.Effect<void, TaskRefused | TrialFailure> =>
  Effect.gen(function* () {
    const text = yield* readTask
    const task = yield* Effect.mapError(decodeTask(text), ({ message }) => new TaskRefused({ problem: message }))
    takeWayOut(task.config.way_out ?? {})
    const outcome = yield* runTrial(task, { root, model: Layer.provide(Llm.layer, modelHttp) })
    const line = yield* Effect.orDie(encodeOutcome(outcome))
    yield* Effect.sync(() => process.stdout.write(`${line}\n`))
  }).pipe(Effect.provide(TokenCount.layer))
