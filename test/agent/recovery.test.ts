/** Agents that die anywhere, and what the next epoch makes of what choird has (R1, R4, R6, R23). */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { LockRequest } from "#schema/Tool.ts"
import type { Tool } from "#src/agent/tools/Tool.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { fold, initialState } from "#src/shared/session/fold.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script, isCore } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool, ticking } from "../support/testing/TestAgent.ts"
import { makeRandom } from "../support/history.ts"
import { SIZE } from "../support/size.ts"

/** Both jobs write, read and send; edge starts them at one message and reads and sends at the next. */
const script: Script = (messages) =>
  Effect.as(Effect.sleep("20 millis"), isCore(messages) ? coreSays(messages) : edgeSays(messages))

const coreSays = (messages: ReadonlyArray<Message>) => {
  const results = messages.filter(({ role }) => role === "tool").length
  if (results === 0) return calls(["ws.write", {}], ["mem.read", {}])
  return results < 3 ? calls(["out.send", {}]) : says("done")
}

const edgeSays = (messages: ReadonlyArray<Message>) => {
  const asked = messages.findLastIndex(({ role }) => role === "user")
  const text = messages[asked]?.content ?? ""
  if (text.startsWith("<choir-note>\nReport:")) return says("a job ended")
  if (messages.slice(asked).some(({ role }) => role === "tool")) return says("answered")
  const job = (job_name: string) => ["choir.core.spawn", { job_name, task_spec: "work" }] as const
  return text === "start" ? calls(job("a"), job("b")) : calls(["mem.read", {}], ["out.send", {}])
}

/** Tools that take their time and leave a trace outside of what crashes. */
const makeTools = (ledger: Array<string>) => [
  testTool("ws.write", () => Effect.as(Effect.sleep("30 millis"), { status: "success", summary: "written" }), {
    locks: [LockRequest.make({ resource: "workspace", mode: "X" })]
  }),
  testTool("mem.read", () => Effect.as(Effect.sleep("10 millis"), { status: "success", summary: "read" }), {
    effect: "none"
  }),
  testTool(
    "out.send",
    ({ call_id }) =>
      Effect.gen(function* () {
        // At once, so that without the intent barrier it would happen before choird knows of it.
        ledger.push(call_id)
        yield* Effect.sleep("20 millis")
        return { status: "success", summary: "sent" } as const
      }),
    { effect: "external", besideJobs: true }
  )
]

const done = (events: ReadonlyArray<ChoirEvent>) =>
  ofType(events, "AgentMessage").filter(({ payload }) => payload.kind !== "notice").length === 4

const repeats = (values: ReadonlyArray<string>) => values.length - new Set(values).size

/** Every invariant of a whole history; `where` says which crash broke it. */
const check = ({ events }: MemoryControlPlane, ledger: ReadonlyArray<string>, where: string) => {
  const messages = ofType(events, "AgentMessage").map(({ payload }) => payload)
  const replies = messages.filter(({ kind }) => kind === "reply").map(({ in_reply_to }) => in_reply_to as string)
  assert.deepStrictEqual(
    ofType(events, "UserMsg").map(({ payload }) => payload.inbox_id as string),
    ["1", "2"],
    where
  )
  assert.deepStrictEqual(replies, ["1", "2"], where)
  assert.strictEqual(messages.filter(({ kind }) => kind === "report").length, 2, where)
  const started = ofType(events, "CoreStarted").map(({ payload }) => payload.job_id as string)
  const stopped = ofType(events, "CoreStopped").map(({ payload }) => payload.job_id as string)
  assert.sameMembers(stopped, started, where)
  assert.deepStrictEqual([started.length, stopped.length], [2, 2], where)

  assert.strictEqual(repeats(ledger), 0, `${where}: an external call ran twice`)
  const committed = ofType(events, "ToolCallCommitted").map(({ payload }) => payload.call_id as string)
  const external = new Set<string>()
  for (const { payload } of ofType(events, "ToolCallRequested"))
    if (payload.effect !== "none") external.add(payload.call_id)
  const results = new Map(
    ofType(events, "ToolResultCommitted").map(({ payload }) => [payload.call_id as string, payload])
  )
  assert.strictEqual(repeats(committed.filter((id) => external.has(id))), 0, `${where}: an effect was committed twice`)
  for (const id of ledger) {
    assert.include(committed, id, `${where}: an effect without its intent`)
    assert.include(["success", "unknown_after_crash"], results.get(id)?.status, where)
  }
  for (const [id, { status }] of results) if (status === "unknown_after_crash") assert.include([...external], id, where)

  let state = initialState
  for (const event of events) {
    const next = fold(state, event)
    if (Result.isFailure(next)) assert.fail(`${where}: ${next.failure.reason}`)
    const { spent } = next.success
    assert.isTrue(spent.tokens >= state.spent.tokens && spent.tool_calls >= state.spent.tool_calls, where)
    state = next.success
  }
  assert.isTrue(quiet(state), where)
}

/** How one life of an agent ends: a plan that is made before it starts and waited for after. */
type Crash = (plane: MemoryControlPlane) => { readonly onCommit?: () => void; readonly dead: Effect.Effect<void> }

const afterAcknowledged =
  (rev: number): Crash =>
  (plane) => ({ dead: plane.cutOffAt(rev) })

/** At a commit of this life; whatever choird lacks then is lost. */
const atCommit =
  (wanted: number): Crash =>
  (plane) => {
    const dead = Deferred.makeUnsafe<void>()
    let commits = 0
    const onCommit = () => {
      if (++commits !== wanted) return
      plane.cutOff()
      Deferred.doneUnsafe(dead, Effect.void)
    }
    return { onCommit, dead: Deferred.await(dead) }
  }

/** Lives through the crashes, one in each epoch, and then to the end. Answers how many commits the last life made. */
const live = Effect.fnUntraced(function* (crashes: ReadonlyArray<Crash>, where: string) {
  const plane = yield* makeMemoryControlPlane
  const ledger: Array<string> = []
  const tools = makeTools(ledger)
  yield* plane.say("start")
  yield* plane.say("more")
  const whole = plane.until((events, state) => done(events) && quiet(state))
  let epoch = 1
  for (const crash of crashes) {
    const { dead, onCommit } = crash(plane)
    const options = { plane, script, tools, epoch: epoch++ }
    const agent = yield* Effect.forkChild(runAgent(onCommit === undefined ? options : { ...options, onCommit }))
    yield* Effect.raceFirst(dead, whole)
    yield* Fiber.interrupt(agent)
  }
  let commits = 0
  const last = yield* Effect.forkChild(runAgent({ plane, script, tools, epoch, onCommit: () => void commits++ }))
  yield* Effect.raceFirst(whole, Fiber.join(last))
  yield* Fiber.interrupt(last)
  check(plane, ledger, where)
  return { commits, events: plane.events.length, ledger }
})

describe("recovery", () => {
  it.effect("lives through a crash after each acknowledged event, its reply lost (R1, R6)", () =>
    Effect.gen(function* () {
      yield* ticking
      const { events, ledger } = yield* live([], "no crash")
      assert.strictEqual(ledger.length, 3)
      for (let rev = 1; rev <= events; rev++) yield* live([afterAcknowledged(rev)], `after ${rev}`)
    })
  )

  it.effect("lives through a crash at each commit, what choird lacks being lost (R4, R6)", () =>
    Effect.gen(function* () {
      yield* ticking
      const { commits } = yield* live([], "no crash")
      for (let commit = 1; commit <= commits; commit++) yield* live([atCommit(commit)], `at commit ${commit}`)
    })
  )

  it.effect("lives through one to four crashes in a row, by seeds", () =>
    Effect.gen(function* () {
      yield* ticking
      for (let seed = 1; seed <= SIZE.crashesInARow; seed++) {
        const random = makeRandom(seed)
        const crashes = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
          const at = 1 + Math.floor(random() * 30)
          return random() < 0.3 ? afterAcknowledged(at) : atCommit(at)
        })
        yield* live(crashes, `seed ${seed}`)
      }
    })
  )

  it.effect("runs a read again after a crash and never an external call, which it closes as unknown (R6)", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const runs: Array<string> = []
      const tool = (name: string, effect: "none" | "workspace" | "external") =>
        testTool(
          name,
          () =>
            Effect.suspend(() => {
              runs.push(name)
              return runs.length <= 3 ? Effect.never : Effect.succeed({ status: "success", summary: "again" } as const)
            }),
          { effect, besideJobs: true }
        )
      const write: Tool = { ...tool("a.write", "workspace"), repeatable: true }
      const tools = [tool("a.read", "none"), write, tool("a.send", "external")]
      const script: Script = (messages) =>
        Effect.succeed(
          messages.at(-1)?.role === "user" ? calls(["a.read", {}], ["a.write", {}], ["a.send", {}]) : says("so be it")
        )
      yield* plane.say("go")
      const first = yield* Effect.forkChild(runAgent({ plane, script, tools }))
      yield* plane.until((events) => ofType(events, "ToolCallCommitted").length === 3 && runs.length === 3)
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(runAgent({ plane, script, tools, epoch: 2 }))
      yield* plane.until((_, state) => quiet(state))
      yield* Fiber.interrupt(second)
      assert.deepStrictEqual(runs.slice(3), ["a.read"])
      const result = (index: number) =>
        ofType(plane.events, "ToolResultCommitted").find(({ payload }) => payload.call_id.endsWith(`-${index}`))
          ?.payload
      const status = (index: number) => result(index)?.status
      assert.deepStrictEqual([0, 1, 2].map(status), ["success", "unknown_after_crash", "unknown_after_crash"])
      assert.match(result(1)?.summary ?? "", /a second run changes nothing more/u)
      assert.match(result(2)?.summary ?? "", /check before you do it again/u)
    })
  )

  it.effect("goes on with an external call that waited for its turn when the agent died", () =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const sent: Array<string> = []
      const locks = [LockRequest.make({ resource: "browser_tab", mode: "X" })]
      const hold = testTool("a.hold", () => Effect.never, { locks, besideJobs: true, timeout_ms: 1000 })
      const send = testTool(
        "a.send",
        ({ call_id }) =>
          Effect.sync(() => {
            sent.push(call_id)
            return { status: "success", summary: "sent" } as const
          }),
        { effect: "external", locks, besideJobs: true }
      )
      const script: Script = (messages) =>
        Effect.succeed(messages.at(-1)?.role === "user" ? calls(["a.hold", {}], ["a.send", {}]) : says("done"))
      yield* plane.say("go")
      const first = yield* Effect.forkChild(runAgent({ plane, script, tools: [hold, send] }))
      yield* plane.until((events) => ofType(events, "ToolCallRequested").length === 2)
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(runAgent({ plane, script, tools: [hold, send], epoch: 2 }))
      yield* plane.until((_, state) => quiet(state))
      yield* Fiber.interrupt(second)
      assert.strictEqual(sent.length, 1)
      // Its intent went out at once, not at the next interval.
      const intent = ofType(plane.events, "ToolCallCommitted").find(({ payload }) => payload.call_id === sent[0])
      const ended = ofType(plane.events, "ToolResultCommitted").find(({ payload }) => payload.call_id === sent[0])
      assert.isBelow(Date.parse(ended?.created_at ?? "") - Date.parse(intent?.created_at ?? ""), 1000)
    })
  )

  it.effect("tells a reached limit once and says goodbye, wherever it dies on the way (R23, R24)", () =>
    Effect.gen(function* () {
      yield* ticking
      const config = agentConfig({ total_session_tokens: 100 })
      const tools = makeTools([])
      const places = Array.from({ length: 50 }, (_, index) => index + 1)
      const crashes = [
        ...places.map((at) => [`at commit ${at}`, atCommit(at)] as const),
        ...places.map((at) => [`after ${at}`, afterAcknowledged(at)] as const)
      ]
      for (const [where, crash] of crashes) {
        const plane = yield* makeMemoryControlPlane
        yield* plane.say("start")
        const { dead, onCommit } = crash(plane)
        const watch = onCommit === undefined ? {} : { onCommit }
        const first = yield* Effect.forkChild(runAgent({ plane, script, tools, config, ...watch }))
        yield* Effect.raceFirst(dead, Effect.asVoid(Deferred.await(plane.terminated)))
        yield* Fiber.interrupt(first)
        if (!Deferred.isDoneUnsafe(plane.terminated))
          yield* Fiber.join(yield* Effect.forkChild(runAgent({ plane, script, tools, config, epoch: 2 })))
        assert.strictEqual(yield* Deferred.await(plane.terminated), "budget")
        const { edge, spent } = plane.state()
        assert.strictEqual(edge.state, "EDGE_TERMINATED", where)
        assert.strictEqual(ofType(plane.events, "Cancelled").length, 1, where)
        const told = (words: RegExp) =>
          ofType(plane.events, "AgentMessage").filter(({ payload }) => words.test(payload.text ?? "")).length
        assert.strictEqual(told(/^(?:The session's limit|I have to stop)/u), 1, where)
        assert.isAtMost(told(/^This conversation has used 80 %/u), 1, where)
        const replies = ofType(plane.events, "AgentMessage").filter(({ payload }) => payload.kind === "reply")
        assert.strictEqual(replies.length, 1, where)
        assert.isAtMost(spent.tokens, 100 + 3 * 15, where)
      }
    })
  )
})
