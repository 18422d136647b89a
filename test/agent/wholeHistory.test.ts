/**
 * One history with all that a session meets: a long chat, files of the workspace, a call that a person approves, skills, a stopped turn, four jobs at once,
 * among them a long one and one whose provider fails, compactions, a crash in the middle, an ordered stop, and the lives after them. A strict provider is asked over a socket, and refuses nothing;
 * no request names a tool of Choir with dots, which models do not know.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { EDGE, SignalId } from "#schema/Ids.ts"
import type { DialectName } from "#demo/dialects/Dialect.ts"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { memoryDelta } from "#src/agent/tools/memoryTools.ts"
import { BUILT_IN_TOOLS } from "#src/shared/image/builtInTools.ts"
import { fillerOf } from "../support/filler.ts"
import { call, FILES, LOOKS, makeModel, SKILL, SPAWNS, stepsOf, STEPS_BEFORE_CRASH, SUMMARY } from "./historyModel.ts"
import { configWith, modelClient } from "../support/modelClient.ts"
import { modelEntry } from "../support/modelNames.ts"
import { atSize, SIZE } from "../support/size.ts"
import { bookOf, skillSpec } from "../support/skills.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import * as double from "../support/testing/Provider.ts"
import { inOrder } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool } from "../support/testing/TestAgent.ts"
import { temporaryWorkspace, toolServices } from "../support/workspace.ts"

const STEPS = SIZE.historySteps
const TURNS = SIZE.historyTurns
/** Turns of the chat while jobs run, before and after the crash. */
const TURNS_BESIDE = 3
/** Many times what it takes: after a refusal the history waits for an answer that never comes. */
const HISTORY_MS_MAX = TURNS * 18_000

const configOf = (endpoint: string, dialect: DialectName) => {
  const { approvals, budgets, memory } = agentConfig({
    per_job_max_steps: 1000,
    per_job_max_tool_calls: 5000,
    message_max_steps: 1000,
    max_tool_calls_per_session: 5000,
    total_session_tokens: 1e9
  })
  const entry = { ...modelEntry(dialect), endpoint, context_window: 128_000, reasoning_effort: "low" }
  return configWith(entry, {
    approvals: { ...approvals, confirm_external: "always" },
    budgets,
    memory: { ...memory, window_tokens_max: SIZE.historyWindow }
  })
}

/** Tools whose results are of many lengths, files of the workspace, and a tool that acts outside. */
const makeTools = Effect.fnUntraced(function* (workspace: string) {
  const services = yield* toolServices(workspace)
  const files = yield* Effect.provideContext(Effect.all([fsRead, fsEdit]), services)
  let looked = 0
  const read = testTool(
    "mem.read",
    () =>
      Effect.sync(() => {
        looked += 1
        const output = fillerOf(20 + ((looked * 379) % (SIZE.historyWindow / 40)), looked)
        return { status: "success", summary: "read", output } as const
      }),
    { effect: "none" }
  )
  const write = testTool("ws.write", () => Effect.succeed({ status: "success", summary: "written" }))
  const send = testTool("out.send", () => Effect.succeed({ status: "success", summary: "sent" }), {
    effect: "external"
  })
  return [read, write, send, memoryDelta, ...files]
})

const setUp = Effect.fnUntraced(function* (dialect: DialectName) {
  const provider = yield* double.makeProviderOf({ dialect, counts: true })
  const plane = yield* makeMemoryControlPlane
  const crash = yield* Deferred.make<void>()
  const model = makeModel(plane, Deferred.await(crash))
  yield* provider.otherwise(model.decide)
  const notes = join((yield* temporaryWorkspace).root, "notes.md")
  writeFileSync(notes, "The ground is sand.\n")
  const tools = yield* makeTools(dirname(notes))
  const [config, llm] = [configOf(provider.endpoint, dialect), yield* modelClient]
  const skills = bookOf(skillSpec())
  const answered = plane.until(
    (events) => spoken(events).filter(({ payload }) => payload.kind === "reply").length === model.said()
  )
  const turn = (...replies: ReadonlyArray<double.Reply>) => Effect.andThen(model.say(replies), answered)
  return {
    answered,
    crash: Deferred.succeed(crash, undefined),
    live: (epoch: number) =>
      Effect.forkScoped(runAgent({ plane, epoch, script: inOrder(), llm, tools, skills, config })),
    model,
    notes,
    plane,
    provider,
    turn,
    /** Turns of which a third look at two places. */
    chat: (turns: number) =>
      Effect.forEach(
        Array.from({ length: turns }, (_, at) => at),
        (at) => (at % 3 === 0 ? turn(LOOKS) : turn()),
        { discard: true }
      )
  }
})

/** A turn that a person stops while its model thinks. */
const stoppedTurn = Effect.fnUntraced(function* ({ answered, model, plane }: Effect.Success<ReturnType<typeof setUp>>) {
  const thinks = yield* Deferred.make<void>()
  const inbox_id = yield* model.say([Effect.andThen(Deferred.succeed(thinks, undefined), Effect.never)])
  yield* Deferred.await(thinks)
  yield* plane.push({ type: "StopTurn", signal_id: SignalId.make("900"), turn: { inbox_id } })
  yield* answered
})

/** A turn whose call waits for a person, who approves it. */
const approvedTurn = Effect.fnUntraced(function* ({
  answered,
  model,
  plane
}: Effect.Success<ReturnType<typeof setUp>>) {
  yield* model.say([call("out-send")])
  yield* plane.until(() => plane.approvals.length === 1)
  for (const { approval_id } of plane.approvals) yield* plane.decide(approval_id, "approved")
  yield* answered
})

const endedJobs = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "CoreStopped").map(({ lane, payload }) => `${lane} ${payload.outcome}`)

/** The results of calls that acted outside. */
const sentOf = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "ToolResultCommitted").filter(
    ({ payload }) => payload.status === "success" && payload.summary === "sent"
  )

/** The three lives of a session. */
const history = Effect.fnUntraced(function* (dialect: DialectName) {
  const world = yield* setUp(dialect)
  const { chat, crash, live, model, plane, provider, turn } = world
  const first = yield* live(1)
  yield* chat(TURNS / 2)
  yield* turn(...SKILL)
  yield* turn(...FILES)
  yield* approvedTurn(world)
  yield* stoppedTurn(world)
  yield* turn(SPAWNS)
  yield* chat(TURNS_BESIDE)
  yield* plane.until(
    (events) =>
      endedJobs(events).length === 3 &&
      ["core:long", "core:reporting"].every((lane) => stepsOf(events, lane) >= STEPS_BEFORE_CRASH)
  )
  plane.cutOff()
  yield* Fiber.interrupt(first)
  yield* crash
  const second = yield* live(2)
  yield* chat(TURNS_BESIDE)
  yield* plane.until((events, state) => endedJobs(events).length === 5 && quiet(state))
  yield* chat(TURNS / 2)
  yield* plane.push({ type: "Stop", deadline_ms: 60_000 })
  assert.strictEqual(yield* Fiber.join(second), "stopped")
  yield* live(3)
  yield* turn()
  const requests = yield* provider.requests.all
  const notes = readFileSync(world.notes, "utf8")
  return { notes, plane, requests, said: model.said(), summary: yield* provider.summary }
})

/** Where the requests name one of Choir's tools with dots; no message of the person does. */
const dottedIn = (requests: ReadonlyArray<double.ProviderRequest>) => {
  const names = BUILT_IN_TOOLS.map((name) => name.replaceAll(".", "\\.")).join("|")
  const dotted = new RegExp(`.{0,80}(?:${names}).{0,80}`, "gu")
  return [...new Set(requests.flatMap(({ body }) => JSON.stringify(body).match(dotted) ?? []))]
}

const CHAT_DIALECTS: ReadonlyArray<DialectName> = atSize<DialectName>(
  ["openai"],
  ["responses", "anthropic", "openrouter", "kimi", "deepseek", "gemini", "qwen-template", "mistral"]
)

describe(`a history of over ${TURNS} turns, four jobs, one of ${STEPS} steps, skills, a stop, a crash and a resume`, () => {
  for (const dialect of CHAT_DIALECTS)
    it.live(
      `has no request that ${dialect} refuses`,
      () =>
        Effect.gen(function* () {
          const { notes, plane, requests, said, summary } = yield* history(dialect)
          const { events } = plane
          assert.strictEqual(summary.refusals, 0)
          assert.deepStrictEqual(dottedIn(requests), [])
          assert.isAbove(said, TURNS)
          assert.lengthOf(ofType(events, "UserMsg"), said)
          assert.isAbove(stepsOf(events, "core:long"), STEPS)
          assert.sameMembers(endedJobs(events), [
            "core:tidying completed",
            "core:failing error",
            "core:failing completed",
            "core:long completed",
            "core:reporting completed"
          ])
          const tidied = ofType(events, "SkillTransitionCommitted").filter(({ payload }) => payload.to === "done")
          assert.sameMembers(
            tidied.map(({ lane }) => lane as string),
            [EDGE, "core:tidying"]
          )
          assert.strictEqual(notes, "The ground is lime.\n")
          assert.deepStrictEqual(
            plane.approvals.map(({ status }) => status),
            ["approved"]
          )
          assert.lengthOf(sentOf(events), 1, "the approved call")
          assert.lengthOf(ofType(events, "Cancelled"), 1, "the stopped turn")
          assert.lengthOf(
            ofType(events, "CoreStarted").filter(({ payload }) => payload.resumes !== undefined),
            1,
            "the resumed job"
          )
          assert.deepStrictEqual(plane.summaries, [SUMMARY])
          const compacted = new Set(ofType(events, "CompactionCommitted").map(({ lane }) => lane as string))
          assert.isTrue(compacted.has(EDGE) && compacted.has("core:long"), [...compacted].join())
          yield* Effect.logInfo(`${dialect}: ${summary.calls} requests, ${events.length} events, none refused`)
        }).pipe(Effect.scoped),
      HISTORY_MS_MAX
    )
})
