/** The host tools of plans as any agent may call them, over the real stores: in which chats it sets, sees and removes. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, CallId, ResourceName } from "#schema/Ids.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { planTools } from "#src/choird/plans/planTools.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { memoryCallResults } from "../../support/callResults.ts"
import { describeStores } from "../../support/engines.ts"
import { BINDINGS, CONFIG, newAgent, PHONE, storesWith } from "../../support/stores.ts"

const TABLET = ResourceName.make("tablet")
const GUEST = ResourceName.make("guest")
const FAMILY = ResourceName.make("family")
const DMS = {
  phone: { gateway: "bot", user_id: "1", admin: true },
  tablet: { gateway: "bot", user_id: "3" },
  guest: { gateway: "bot", user_id: "5" },
  family: { gateway: "bot", user_id: "-100200300" }
}

const stores = storesWith({ ...CONFIG, dms: DMS })
const alive = Layer.fresh(
  Layer.unwrap(Effect.map(planTools, (tools) => HostTools.layer(tools))).pipe(
    Layer.provideMerge(Layer.merge(stores, memoryCallResults))
  )
)

let calls = 0
/** An agent at the phone, the tablet and the family's group, and its calls, in turns that began at a chat. */
const talking = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const sessions = yield* SessionStore
  const tools = yield* HostTools
  const agent_id = newAgent()
  const bindings = { ...BINDINGS, dm: PHONE, dms: [PHONE, TABLET, FAMILY] }
  const { session_id } = yield* sessions.create(agent_id, bindings, "0000000")
  const inboxOf = Effect.fnUntraced(function* (dm: ResourceName, of: AgentId = agent_id) {
    const [row] = yield* sql<{ readonly inbox_id: string }>`INSERT INTO choir_control.inbox
        (gateway, client_id, agent_id, dm, text, attachments)
      VALUES ('bot', ${`${of}-${(calls += 1)}`}, ${of}, ${dm}, 'hello', '[]'::jsonb) RETURNING inbox_id::text`
    return row?.inbox_id ?? assert.fail("no row")
  })
  const call = Effect.fnUntraced(function* (
    name: "set" | "list" | "cancel",
    input: Readonly<Record<string, unknown>>,
    call_id = `c-${(calls += 1)}-0`
  ) {
    const request = { tool_name: `choir.plan.${name}`, call_id: CallId.make(call_id) }
    const whole = name === "set" ? { untrusted: false, call_id, ...input } : input
    return yield* tools.execute(
      { agent_id, session_id, epoch: 1, standing: "current" },
      { ...request, input: whole as never },
      yield* Scope.make()
    )
  })
  return { agent_id, inboxOf, call }
})

const textsOf = (output: unknown) =>
  (output as { readonly plans: ReadonlyArray<{ readonly text: string }> }).plans.map(({ text }) => text).toSorted()

describeStores("the tools of reminders", (it) => {
  it.effect("show and remove, in the turn of one person, nothing of another but for an admin", () =>
    Effect.gen(function* () {
      const { call, inboxOf } = yield* talking
      const at = { [PHONE]: yield* inboxOf(PHONE), [TABLET]: yield* inboxOf(TABLET), [FAMILY]: yield* inboxOf(FAMILY) }
      for (const [dm, inbox_id] of Object.entries(at))
        yield* call("set", { when: "in 3 hours", text: `of ${dm}`, inbox_id })
      const seen = (dm: ResourceName) => Effect.map(call("list", { inbox_id: at[dm] }), ({ output }) => textsOf(output))
      assert.deepStrictEqual(yield* seen(TABLET), ["of tablet"])
      assert.deepStrictEqual(yield* seen(FAMILY), ["of family"])
      assert.deepStrictEqual(yield* seen(PHONE), ["of family", "of phone", "of tablet"])
      const cancel = (plan_id: number, dm: ResourceName) =>
        call("cancel", { plan_id, untrusted: false, inbox_id: at[dm] })
      const refused = yield* cancel(1, TABLET)
      assert.deepInclude(refused, { status: "error" })
      assert.include(JSON.stringify(refused.output), "there is no reminder 1 in this chat")
      assert.deepInclude(yield* cancel(2, TABLET), { status: "success" })
      assert.deepInclude(yield* cancel(3, PHONE), { status: "success" })
    }).pipe(Effect.provide(alive))
  )

  it.effect("reach no chat that the agent is not bound to, by whatever message it names", () =>
    Effect.gen(function* () {
      const { agent_id, call, inboxOf } = yield* talking
      const plans = yield* Plans
      for (const inbox_id of [yield* inboxOf(GUEST), yield* inboxOf(TABLET, newAgent()), "999999999999999999"])
        yield* call("set", { when: "in 3 hours", text: "for whom?", inbox_id })
      const made = yield* plans.list(agent_id, false)
      assert.deepStrictEqual(
        made.map(({ dm }) => dm),
        [PHONE, PHONE]
      )
    }).pipe(Effect.provide(alive))
  )

  it.effect("answer any bytes in words or as a refusal, and soon", () =>
    Effect.gen(function* () {
      const { agent_id, call } = yield* talking
      const plans = yield* Plans
      for (const text of [
        "\u0000",
        "bread\u0000",
        "bread \uD800",
        "\uDC00\uD800",
        "\u{202E}daerb",
        "🍞".repeat(1000)
      ]) {
        const { output, status } = yield* call("set", { when: "in 3 hours", text })
        assert.notInclude(JSON.stringify(output), "crashed", JSON.stringify(text).slice(0, 40))
        assert.include(["success", "error"], status)
      }
      for (const when of [
        "9".repeat(200),
        "every ".repeat(30),
        "\u0000 in 3 hours",
        "\uD800",
        "in ".repeat(60),
        "9:".repeat(99)
      ]) {
        const { output } = yield* call("set", { when, text: "bread" })
        assert.notInclude(JSON.stringify(output), "crashed", when)
      }
      for (const { text } of yield* plans.list(agent_id, false)) assert.isTrue(text.isWellFormed())
    }).pipe(Effect.provide(alive))
  )

  it.effect("set one reminder for a call that is asked again, even when its time has come in between", () =>
    Effect.gen(function* () {
      const { agent_id, call } = yield* talking
      const sql = yield* SqlClient.SqlClient
      const plans = yield* Plans
      const words = { when: "2027-03-01 18:00", text: "bread" }
      yield* call("set", words, "c-set-0")
      yield* sql`UPDATE choir_control.plans SET state = 'ended', next_at = NULL WHERE agent_id = ${agent_id}`
      assert.deepInclude(yield* call("set", { ...words, when: "2020-03-01 18:00" }, "c-set-0"), { status: "success" })
      assert.lengthOf(yield* plans.list(agent_id, true), 1)
    }).pipe(Effect.provide(alive))
  )
})
