import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import type { ToolEffect } from "#schema/Tool.ts"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { AgentSockets, layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import { layerWorld, makeWorld, SESSION } from "../../support/control.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { describeTransports } from "../../support/everyTransport.ts"
import { ask, refusalOf } from "../../support/unixHttp.ts"

/** A tool that a test holds: it tells that it runs and ends when it is let go. */
const makeHeld = Effect.gen(function* () {
  const entered = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const state = { runs: 0, interrupted: 0 }
  const run = Effect.gen(function* () {
    state.runs += 1
    yield* Deferred.succeed(entered, undefined)
    yield* Effect.onInterrupt(Deferred.await(gate), () => Effect.sync(() => void (state.interrupted += 1)))
    return { status: "success", output: { runs: state.runs } } satisfies HostOutcome
  })
  const tool = (name: string, effect: ToolEffect, work: Effect.Effect<HostOutcome> = run) =>
    makeHostTool({
      name,
      effect,
      timeout_ms: 60_000,
      input: Schema.Struct({ n: Schema.optionalKey(Schema.Int) }),
      run: () => work
    })
  const broken = tool("broken", "none", Effect.die(new Error("canary")))
  const tools = [tool("held.read", "none"), tool("held.send", "external"), broken]
  return { entered, letGo: Deferred.succeed(gate, undefined), state, tools }
})
const body = (tool_name: string, call_id = "c-1-0") => ({ tool_name, call_id, input: {} })

describeTransports("EXECUTE_HOST_TOOL", ({ openSessionWith }) => {
  it.effect("joins a repetition to what runs already, though its first caller hung up (R28)", () =>
    Effect.gen(function* () {
      const held = yield* makeHeld
      const { call } = yield* openSessionWith(held.tools)
      const execute = call("EXECUTE_HOST_TOOL", { id: "one", body: body("held.read") })
      const first = yield* Effect.forkChild(execute, { startImmediately: true })
      yield* Deferred.await(held.entered)
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(execute, { startImmediately: true })
      yield* call("REPORT_STATUS")
      yield* held.letGo
      const answer = yield* Fiber.join(second)
      assert.deepStrictEqual(JSON.parse(answer.text), { call_id: "c-1-0", status: "success", output: { runs: 1 } })
      assert.strictEqual((yield* execute).text, answer.text)
      assert.deepStrictEqual(held.state, { runs: 1, interrupted: 0 })
    })
  )

  it.effect("runs an effect once for a call_id, whatever the request id (D3)", () =>
    Effect.gen(function* () {
      const held = yield* makeHeld
      const { call, world } = yield* openSessionWith(held.tools)
      yield* held.letGo
      const first = yield* call("EXECUTE_HOST_TOOL", { body: body("held.send") })
      const again = yield* call("EXECUTE_HOST_TOOL", { body: body("held.send") })
      assert.deepStrictEqual(JSON.parse(again.text), JSON.parse(first.text))
      assert.strictEqual(held.state.runs, 1)
      const other = yield* call("EXECUTE_HOST_TOOL", { body: { ...body("held.send"), tool_name: "held.read" } })
      assert.strictEqual(other.status, 200)
      const reused = yield* call("EXECUTE_HOST_TOOL", { body: { ...body("held.send"), input: { n: 1 } } })
      assert.deepStrictEqual([reused.status, refusalOf(reused).type], [409, "CALL_ID_REUSED"])
      assert.deepInclude(world.audit.at(-1)?.detail as object, { refused: "CALL_ID_REUSED", tool: "held.send" })
    })
  )

  it.effect("answers a defect with an error and no stack", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSessionWith((yield* makeHeld).tools)
      const answer = yield* call("EXECUTE_HOST_TOOL", { body: body("broken") })
      assert.deepStrictEqual([answer.status, JSON.parse(answer.text).status], [200, "error"])
      assert.notInclude(answer.text, "canary")
      assert.lengthOf(world.audit, 0)
    })
  )

  it.effect("refuses and audits unknown names and inputs, in words of a bounded length", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSessionWith((yield* makeHeld).tools)
      const unknown = yield* call("EXECUTE_HOST_TOOL", { body: body("x".repeat(100_000)) })
      assert.deepStrictEqual([unknown.status, refusalOf(unknown).type], [404, "NOT_AVAILABLE"])
      const keys = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key${index}`, "canary"]))
      const unfit = yield* call("EXECUTE_HOST_TOOL", { body: { ...body("held.read"), input: keys } })
      assert.deepStrictEqual([unfit.status, refusalOf(unfit).type], [400, "BAD_REQUEST"])
      assert.isAtMost(refusalOf(unfit).message.length, API_PROBLEM_CHARS_MAX)
      assert.notInclude(unfit.text, "canary")
      assert.lengthOf(world.audit, 2)
      assert.isBelow(JSON.stringify(world.audit).length, 2000)
    })
  )

  it.effect("ends what runs when the epoch's socket closes, before it waits for the requests", () =>
    Effect.gen(function* () {
      const held = yield* makeHeld
      const world = yield* makeWorld
      const home = yield* temporaryFolder
      const services = yield* Layer.build(
        layerAgentRoutes.pipe(
          Layer.provideMerge(layerAgentListeners),
          Layer.provideMerge(layerWorld(world, home, held.tools))
        )
      )
      const epoch = yield* Scope.make()
      const { path } = yield* Effect.flatMap(AgentSockets, (sockets) => sockets.open(SESSION)).pipe(
        Effect.provideContext(services),
        Scope.provide(epoch)
      )
      const headers = {
        authorization: "Bearer lease",
        "content-type": "application/json",
        "x-choir-request-id": "one",
        "x-choir-session-id": SESSION
      }
      const request = { path: "/rpc/EXECUTE_HOST_TOOL", headers, body: JSON.stringify(body("held.send")) }
      const asking = yield* Effect.forkChild(Effect.exit(ask(path, request)), { startImmediately: true })
      yield* Deferred.await(held.entered)
      yield* Scope.close(epoch, Exit.void)
      assert.deepStrictEqual(held.state, { runs: 1, interrupted: 1 })
      const exit = yield* Fiber.join(asking)
      assert.isTrue(Exit.isFailure(exit) || exit.value.status >= 500)
    })
  )
})
