import { assert } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import { AgentId, CallId, SessionId } from "#schema/Ids.ts"
import { CallResults } from "#src/choird/hosttools/CallResults.ts"
import { type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import {
  HOST_OUTPUT_BYTES_MAX,
  HOST_TOOLS_RUNNING_MAX,
  type HostRequest,
  HostTools
} from "#src/choird/hosttools/HostTools.ts"
import { describeStores } from "../../support/engines.ts"

let sessions = 0
const newCaller = (): Caller => {
  sessions += 1
  const session_id = SessionId.make(String(sessions).padStart(16, "0"))
  return { session_id, agent_id: AgentId.make("ada"), epoch: 1, standing: "current" }
}
const call = (name: string, input: Schema.Json = {}, id = "c-1-0"): HostRequest => ({
  tool_name: name,
  call_id: CallId.make(id),
  input
})

/** Tools that a test holds: they tell that they run, and end when they are let go. */
const makeRig = Effect.gen(function* () {
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<HostOutcome>()
  const state = { runs: 0, interrupted: 0 }
  const held = Effect.gen(function* () {
    state.runs += 1
    yield* Deferred.succeed(entered, undefined)
    return yield* Effect.onInterrupt(Deferred.await(gate), () => Effect.sync(() => void (state.interrupted += 1)))
  })
  const tool = (name: string, effect: "none" | "external", run: Effect.Effect<HostOutcome>, timeout_ms = 60_000) =>
    makeHostTool({
      name,
      effect,
      timeout_ms,
      input: Schema.Struct({ n: Schema.optionalKey(Schema.Int) }),
      run: () => run
    })
  const counted = Effect.sync((): HostOutcome => ({
    status: "success",
    output: { runs: ++state.runs, text: "a\0b\uD800" }
  }))
  const tools = [
    tool("held.read", "none", held),
    tool("held.send", "external", held),
    tool("count.read", "none", counted),
    tool("count.send", "external", counted),
    makeHostTool({ name: "any.send", effect: "external", timeout_ms: 5, input: Schema.Json, run: () => counted }),
    tool("break.read", "none", Effect.die(new Error("secret detail"))),
    tool("slow.send", "external", Effect.never, 5),
    tool("large.read", "none", Effect.succeed({ status: "success", output: "é".repeat(HOST_OUTPUT_BYTES_MAX / 2) }))
  ]
  const start = Effect.map(
    Layer.build(Layer.fresh(HostTools.layer(tools).pipe(Layer.provide(CallResults.layer)))),
    (context) => Effect.provideContext(HostTools, context)
  ).pipe(Effect.flatten)
  const done = { status: "success", output: { sent: true } } as const
  return { state, entered, start, done, letGo: Deferred.succeed(gate, done), epoch: yield* Scope.make() }
})

describeStores("HostTools", (it) => {
  it.effect("runs a tool without effect each time and stores nothing of it", () =>
    Effect.gen(function* () {
      const { epoch, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const first = yield* tools.execute(caller, call("count.read"), epoch)
      yield* tools.execute(caller, call("count.read"), epoch)
      assert.strictEqual(state.runs, 2)
      assert.deepStrictEqual(first, { status: "success", output: { runs: 1, text: "a\uFFFDb\uFFFD" } })
      const sql = yield* SqlClient.SqlClient
      assert.lengthOf(yield* sql`SELECT 1 FROM choir_control.call_results WHERE session_id = ${caller.session_id}`, 0)
    })
  )

  it.effect("runs a tool with an effect once for a call_id, no matter who asks again and when (D3)", () =>
    Effect.gen(function* () {
      const { done, entered, epoch, letGo, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const ask = tools.execute(caller, call("held.send", { n: 1 }), epoch)
      const fork = Effect.forkChild({ startImmediately: true })
      const first = yield* fork(ask)
      yield* Deferred.await(entered)
      const others = yield* Effect.all([fork(ask), fork(ask)])
      // A caller that hangs up does not end what others wait for.
      yield* Fiber.interrupt(first)
      yield* letGo
      for (const other of others) assert.deepStrictEqual(yield* Fiber.join(other), done)
      assert.deepStrictEqual(yield* ask, done)
      // Another choird over the same database.
      assert.deepStrictEqual(yield* (yield* start).execute(caller, call("held.send", { n: 1 }), epoch), done)
      assert.deepStrictEqual(state, { runs: 1, interrupted: 0 })
      // The same call_id of another session is another call.
      assert.strictEqual((yield* tools.execute(newCaller(), call("held.send", { n: 1 }), epoch)).status, "success")
      assert.strictEqual(state.runs, 2)
    })
  )

  it.effect("refuses an input that nests without end, before anything walks through it", () =>
    Effect.gen(function* () {
      const { epoch, start, state } = yield* makeRig
      const tools = yield* start
      const deep = JSON.parse("[".repeat(20_000) + "]".repeat(20_000)) as Schema.Json
      const refusal = yield* Effect.flip(tools.execute(newCaller(), call("any.send", deep), epoch))
      assert.strictEqual(refusal.kind, "BAD_REQUEST")
      assert.strictEqual(refusal.reason, "an input may nest at most 200 levels")
      assert.strictEqual(state.runs, 0)
    })
  )

  it.effect("refuses a call_id that asks for something else, while the first runs and after", () =>
    Effect.gen(function* () {
      const { entered, epoch, letGo, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const first = yield* Effect.forkChild(tools.execute(caller, call("held.send"), epoch))
      yield* Deferred.await(entered)
      const other = Effect.flip(tools.execute(caller, call("held.send", { n: 2 }), epoch))
      assert.strictEqual((yield* other).kind, "CALL_ID_REUSED")
      yield* letGo
      yield* Fiber.join(first)
      assert.strictEqual((yield* other).kind, "CALL_ID_REUSED")
      assert.strictEqual((yield* Effect.flip(tools.execute(caller, call("count.send"), epoch))).kind, "CALL_ID_REUSED")
      assert.strictEqual(state.runs, 1)
    })
  )

  it.effect("ends what runs with the epoch, and what it cut off never runs again (R6)", () =>
    Effect.gen(function* () {
      const { entered, epoch, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const fork = Effect.forkChild({ startImmediately: true })
      const sent = yield* fork(Effect.exit(tools.execute(caller, call("held.send"), epoch)))
      yield* Deferred.await(entered)
      const read = yield* fork(Effect.exit(tools.execute(caller, call("held.read", {}, "c-2-0"), epoch)))
      while (state.runs < 2) yield* Effect.yieldNow
      yield* Scope.close(epoch, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(sent)) && Exit.isFailure(yield* Fiber.join(read)))
      assert.deepStrictEqual(state, { runs: 2, interrupted: 2 })
      const next = yield* Scope.make()
      for (const choird of [tools, yield* start])
        assert.strictEqual((yield* choird.execute(caller, call("held.send"), next)).status, "unknown_after_crash")
      assert.strictEqual(state.runs, 2)
      // Nothing begins in an epoch that is over.
      assert.isTrue(Exit.isFailure(yield* Effect.exit(tools.execute(caller, call("count.read"), epoch))))
      assert.strictEqual(state.runs, 2)
    })
  )

  it.effect("ends what runs for a call that has its result, and nothing else; an effect stays in doubt (R6)", () =>
    Effect.gen(function* () {
      const { entered, epoch, letGo, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const fork = Effect.forkChild({ startImmediately: true })
      const sent = yield* fork(Effect.exit(tools.execute(caller, call("held.send"), epoch)))
      yield* Deferred.await(entered)
      const read = yield* fork(Effect.exit(tools.execute(caller, call("held.read", {}, "c-2-0"), epoch)))
      const other = yield* fork(tools.execute(newCaller(), call("held.send"), epoch))
      while (state.runs < 3) yield* Effect.yieldNow
      for (const id of ["c-1-0", "c-2-0", "c-9-9"]) yield* tools.ended(caller.session_id, CallId.make(id))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(sent)) && Exit.isFailure(yield* Fiber.join(read)))
      assert.strictEqual(state.interrupted, 2)
      yield* letGo
      assert.strictEqual((yield* Fiber.join(other)).status, "success")
      assert.strictEqual((yield* tools.execute(caller, call("held.send"), epoch)).status, "unknown_after_crash")
      assert.strictEqual(state.runs, 3)
    })
  )

  it.effect("tells of a defect, a passed deadline and too large an output in words, and keeps them", () =>
    Effect.gen(function* () {
      const { epoch, start } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const broken = yield* tools.execute(caller, call("break.read"), epoch)
      assert.strictEqual(broken.status, "error")
      assert.match(
        JSON.stringify(broken.output),
        /"break-read crashed; the log of choird says why under ref [0-9a-f]{8}"/u
      )
      const late = { status: "timeout", output: { error: "slow-send did not end within 5 ms" } } as const
      assert.deepStrictEqual(yield* tools.execute(caller, call("slow.send"), epoch), late)
      assert.deepStrictEqual(yield* tools.execute(caller, call("slow.send"), epoch), late)
      const large = yield* tools.execute(caller, call("large.read"), epoch)
      assert.strictEqual(large.status, "error")
      assert.include(JSON.stringify(large.output), "ask for less")
    })
  )

  it.effect("refuses unknown names and inputs, before anything is claimed", () =>
    Effect.gen(function* () {
      const { epoch, start, state } = yield* makeRig
      const tools = yield* start
      const caller = newCaller()
      const refused = (request: HostRequest) => Effect.flip(tools.execute(caller, request, epoch))
      for (const name of ["choir.web.browse", "__proto__", "constructor", ""])
        assert.strictEqual((yield* refused(call(name))).kind, "NOT_AVAILABLE")
      for (const input of [null, [], { n: "1" }, { n: 1, more: "canary" }]) {
        const { kind, message } = yield* refused(call("count.send", input))
        assert.strictEqual(kind, "BAD_REQUEST")
        assert.include(message, "does not fit count-send")
        assert.notInclude(message, "canary")
      }
      assert.strictEqual(state.runs, 0)
      assert.strictEqual((yield* tools.execute(caller, call("count.send"), epoch)).status, "success")
    })
  )

  it.effect(
    `runs ${HOST_TOOLS_RUNNING_MAX} at once for a session and asks the next one to wait, others' sessions not`,
    () =>
      Effect.gen(function* () {
        const { epoch, letGo, start, state } = yield* makeRig
        const tools = yield* start
        const caller = newCaller()
        const ask = (n: number) => tools.execute(caller, call("held.read", { n }, `c-${n}`), epoch)
        const all = yield* Effect.forEach(Array.from({ length: HOST_TOOLS_RUNNING_MAX }), (_, n) =>
          Effect.forkChild(ask(n), { startImmediately: true })
        )
        while (state.runs < HOST_TOOLS_RUNNING_MAX) yield* Effect.yieldNow
        // Those that nobody waits for any more still run.
        yield* Fiber.interruptAll(all)
        assert.strictEqual((yield* Effect.flip(ask(99))).kind, "RATE_LIMITED")
        assert.strictEqual((yield* tools.execute(newCaller(), call("count.read"), epoch)).status, "success")
        yield* letGo
        while ((yield* Effect.exit(ask(99)))._tag === "Failure") yield* Effect.yieldNow
      })
  )
})
