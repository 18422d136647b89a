import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, PubSub, Schema, Scope } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { CallId } from "#schema/Ids.ts"
import { makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { layerRunEndings } from "#src/choird/hosttools/HostTools.ts"
import { AGENT, layerWorld, makeWorld, SESSION } from "../../support/control.ts"
import { temporaryFolder } from "../../support/engines.ts"

const caller = { session_id: SESSION, agent_id: AGENT, epoch: 1, standing: "current" as const }

describe("a host tool whose call has ended", () => {
  it.effect("is interrupted once the call's result is stored, and others run on", () =>
    Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const held = makeHostTool({
        name: "held.read",
        effect: "none",
        timeout_ms: 60_000,
        input: Schema.Struct({}),
        run: () =>
          Effect.andThen(Deferred.succeed(entered, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
          )
      })
      const world = yield* makeWorld
      const services = yield* Layer.build(
        layerRunEndings.pipe(Layer.provideMerge(layerWorld(world, yield* temporaryFolder, [held])))
      )
      const tools = yield* Effect.provideContext(HostTools, services)
      const epoch = yield* Scope.make()
      const run = (id: string) =>
        Effect.forkChild(
          Effect.exit(tools.execute(caller, { tool_name: "held.read", call_id: CallId.make(id), input: {} }, epoch)),
          { startImmediately: true }
        )
      const [one, other] = [yield* run("c-1-0"), yield* run("c-2-0")]
      yield* Deferred.await(entered)
      const result = { call_id: "c-1-0", status: "cancelled", summary: "the user cancelled it", duration_ms: 1 }
      const events = [{ event_type: "ToolResultCommitted", payload: result } as unknown as ChoirEvent]
      yield* PubSub.publish(world.appended, { session_id: SESSION, agent_id: AGENT, events, state: world.state })
      yield* Deferred.await(interrupted)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(one)))
      assert.isUndefined(other.pollUnsafe())
      yield* Scope.close(epoch, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(other)))
    })
  )
})
