import assert from "node:assert/strict"
import { test } from "node:test"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { AgentSettings } from "choir/agent/AgentSettings"
import { Arbiter } from "choir/agent/Arbiter"
import { EventLog } from "choir/agent/EventLog"
import { LockManager } from "choir/agent/LockManager"
import { SecretStore } from "choir/agent/SecretStore"
import { runSession } from "choir/agent/Session"
import { defineSkill } from "choir/agent/tools/defineSkill"
import { SecretName } from "choir/schema/Ids"
import { LockRequest } from "choir/schema/Tool"
import { makeMemoryControlPlane, SESSION } from "choir/testing/MemoryControlPlane"
import { calls, inOrder, says } from "choir/testing/ScriptedModel"
import { layerLanes, ofType, quiet, runAgent, settingsOf, testTool } from "choir/testing/TestAgent"

const KEY = SecretName.make("bank")

/** A tool of this project: it pays with a secret that no model and no event may ever see. */
const makePay = (paid: Array<{ readonly key: string; readonly holders: ReadonlyArray<string> }>) =>
  Effect.gen(function* () {
    const secrets = yield* SecretStore
    const locks = yield* LockManager
    yield* secrets.replaceAll(new Map([[KEY, Redacted.make("s3cret")]]))
    const run = Effect.gen(function* () {
      const key = yield* secrets.get(KEY)
      const held = yield* locks.held
      paid.push({ key: key === undefined ? "" : Redacted.value(key), holders: held.map(({ lane }) => lane) })
      return { status: "success", summary: "paid 5 EUR" } as const
    })
    return testTool("bank.pay", () => run, {
      effect: "external",
      locks: [LockRequest.make({ resource: "file:ledger.csv", mode: "X" })]
    })
  })

test("a payment is committed before it is made, under its lock, and without its key", () =>
  Effect.gen(function* () {
    const paid: Array<{ readonly key: string; readonly holders: ReadonlyArray<string> }> = []
    const plane = yield* makeMemoryControlPlane
    const authority = Layer.mergeAll(Arbiter.layer, LockManager.layer, SecretStore.layer).pipe(
      Layer.provideMerge(Layer.mergeAll(EventLog.layer(SESSION), AgentSettings.layer(settingsOf(1)), plane.layer(1)))
    )
    const script = inOrder(calls(["bank.pay", { amount: 5 }]), says("It is paid."))
    const agent = Layer.unwrap(Effect.map(makePay(paid), (pay) => layerLanes({ script, tools: [pay] }))).pipe(
      Layer.provideMerge(authority)
    )
    yield* Effect.forkScoped(Effect.provide(runSession, agent))

    yield* plane.say("Pay the bill, please.")
    yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 1 && quiet(state))

    assert.deepEqual(
      plane.events.map(({ event_type, lane }) => `${lane} ${event_type}`),
      [
        "edge UserMsg",
        "edge ModelOutput",
        "edge ToolCallRequested",
        "edge ToolCallCommitted",
        "edge ToolResultCommitted",
        "edge ModelOutput",
        "edge AgentMessage"
      ]
    )
    assert.equal(ofType(plane.events, "AgentMessage")[0]?.payload.text, "It is paid.")
    assert.deepEqual(paid, [{ key: "s3cret", holders: ["edge"] }])
    assert.ok(!JSON.stringify(plane.events).includes("s3cret"))
  }).pipe(Effect.scoped, Effect.runPromise))

test("a message that a crash left open is answered once, by the agent's next life", () =>
  Effect.gen(function* () {
    const plane = yield* makeMemoryControlPlane
    const asked = yield* Deferred.make<void>()
    const thinking = Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
    const life = yield* Effect.forkScoped(runAgent({ plane, script: () => thinking }))
    yield* plane.say("Are you there?")
    yield* plane.until((events) => ofType(events, "UserMsg").length === 1)
    yield* Deferred.await(asked)
    yield* Fiber.interrupt(life)

    yield* Effect.forkScoped(runAgent({ plane, epoch: 2, script: inOrder(says("I am.")) }))
    yield* plane.until((_, state) => quiet(state))

    const texts = ofType(plane.events, "AgentMessage").map(({ payload }) => payload.text)
    assert.deepEqual(texts, ["I am."])
  }).pipe(Effect.scoped, Effect.runPromise))

/** A skill of this project: a program behind a contract, which no model can call in another way. */
const makeVat = defineSkill({
  name: "add-vat",
  description: "Add the tax to a net amount.",
  registry: { version: "1.0.0", tier: "task" },
  contract: {
    does: "adds the tax to a net amount",
    does_not: "pay it",
    state: { net: { schema: { type: "number" } }, gross: { schema: { type: "number" } } },
    state_read: ["net"],
    state_write: ["gross"],
    assertions: [{ statement: "the gross amount is positive", path: "gross", op: ">", value: 0 }]
  },
  run: ({ net }) => Effect.succeed({ writes: { gross: Number(net) * 1.25 }, summary: "25 %" })
})

test("a skill of this project is run without a model, and its result is what its contract says", () =>
  Effect.gen(function* () {
    const { spec, tool } = yield* makeVat
    const plane = yield* makeMemoryControlPlane
    const begin = calls(["choir.skill.start", { skill: "add-vat", input: { net: 100 } }])
    const script = inOrder(begin, says("It is 125."))
    yield* Effect.forkScoped(runAgent({ plane, script, tools: [tool], skills: new Map([[spec.name, spec]]) }))
    yield* plane.say("What is 100 with tax?")
    yield* plane.until((events, state) => ofType(events, "AgentMessage").length === 1 && quiet(state))

    const end = ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload
    assert.deepEqual(end?.output, { gross: 125 })
    const models = ofType(plane.events, "ModelOutput").map(({ payload }) => payload.model)
    assert.deepEqual(models, ["small", "skill:add-vat@1.0.0", "skill:add-vat@1.0.0", "small"])
  }).pipe(Effect.scoped, Effect.runPromise))
