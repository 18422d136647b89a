import { assert, describe, it as test } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName, SessionId } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { exclusive, Leases, type LeaseRow } from "#src/choird/agents/Leases.ts"
import { describeEngines } from "../../support/engines.ts"
import { BINDINGS, CONFIG, newAgent, stores } from "../../support/stores.ts"

const [S1, S2] = [SessionId.make("0000000000000001"), SessionId.make("0000000000000002")]
const wanted = (...names: ReadonlyArray<string>): ReadonlyArray<Pick<LeaseRow, "kind" | "name">> =>
  names.map((name) => ({ kind: "workspace", name }))

describe("exclusive", () => {
  test("names what one agent at a time may hold, and leaves out a shared e-mail account", () => {
    const account = { smtp_host: "h", smtp_port: 1, imap_host: "h", imap_port: 1, secret: "mail" }
    const config = Schema.decodeUnknownSync(Config)({
      ...CONFIG,
      email_accounts: { own: account, ours: { ...account, sharing: "shared" } }
    })
    const agent = AgentId.make("helper")
    const named = (bindings: typeof BINDINGS) =>
      exclusive(config, agent, bindings).map(({ kind, name }) => `${kind} ${name}`)
    assert.deepStrictEqual(named(BINDINGS), ["workspace main", "dm desk", "browser helper"])
    const all = { ...BINDINGS, git_identity: ResourceName.make("me"), notion: ResourceName.make("wiki") }
    assert.deepStrictEqual(named({ ...all, email: ResourceName.make("own") }), [
      "workspace main",
      "dm desk",
      "git_identity me",
      "notion wiki",
      "email own",
      "browser helper"
    ])
    assert.includeMembers(
      [...named({ ...BINDINGS, dms: [BINDINGS.dm, ResourceName.make("phone")] })],
      ["dm desk", "dm phone"]
    )
    assert.notInclude(named({ ...all, email: ResourceName.make("ours") }), "email ours")
  })
})

describeEngines("Leases", (it, { kind }) => {
  const name = (text: string) => `${kind}-${text}`
  const mine = (agent_id: AgentId) =>
    Effect.map(
      Effect.flatMap(Leases, ({ all }) => all),
      (rows) => rows.filter((row) => row.agent_id === agent_id)
    )

  it.effect("are kept from everybody while a workspace is emptied, and not kept when somebody has one (D43)", () =>
    Effect.gen(function* () {
      const leases = yield* Leases
      const [first, second] = [newAgent(), newAgent()]
      yield* leases.acquire(first, S1, wanted(name("taken")))
      const held = yield* Effect.flip(Effect.scoped(databaseDefect(leases.withhold(wanted(name("w"), name("taken"))))))
      assert.deepStrictEqual([held.resource, held.holder], [name("taken"), first])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* leases.withhold(wanted(name("w"), name("v")))
          const refused = yield* Effect.flip(databaseDefect(leases.acquire(second, S2, wanted(name("u"), name("v")))))
          assert.deepStrictEqual(
            [refused.resource, refused.holder, refused.hint],
            [name("v"), null, "try again in a moment"]
          )
          assert.strictEqual((yield* Effect.flip(databaseDefect(leases.withhold(wanted(name("w")))))).holder, null)
          assert.deepStrictEqual(yield* mine(second), [])
        })
      )
      yield* leases.acquire(second, S2, wanted(name("w"), name("v")))
      yield* leases.release(first)
      yield* leases.release(second)
    }).pipe(Effect.provide(stores))
  )

  it.effect("go to a start or to a reset, never to both", () =>
    Effect.gen(function* () {
      const leases = yield* Leases
      const agent = newAgent()
      for (let round = 0; round < 20; round++) {
        const inside = { agent: false, reset: false, both: false }
        const enter = (who: "agent" | "reset") =>
          Effect.acquireRelease(
            Effect.sync(() => {
              inside[who] = true
              inside.both ||= inside.agent && inside.reset
            }),
            () => Effect.sync(() => void (inside[who] = false))
          )
        const start = Effect.andThen(leases.acquire(agent, S1, wanted(name("w"))), enter("agent"))
        const reset = Effect.andThen(leases.withhold(wanted(name("w"))), enter("reset"))
        const pair = round % 2 === 0 ? [start, reset] : [reset, start]
        const held = pair.map((each) => Effect.exit(Effect.andThen(each, Effect.yieldNow)))
        yield* Effect.scoped(Effect.all(held, { concurrency: 2 }))
        yield* leases.release(agent)
        assert.isFalse(inside.both)
      }
    }).pipe(Effect.provide(stores))
  )

  it.effect("are all taken or none, and say who holds what", () =>
    Effect.gen(function* () {
      const leases = yield* Leases
      const [first, second] = [newAgent(), newAgent()]
      yield* leases.acquire(first, S1, wanted(name("a"), name("b")))
      const error = yield* Effect.flip(databaseDefect(leases.acquire(second, S2, wanted(name("c"), name("b")))))
      assert.deepStrictEqual([error.kind, error.resource, error.holder], ["workspace", name("b"), first])
      assert.include(error.hint, `choirctl agent stop ${first}`)
      assert.deepStrictEqual(yield* mine(second), [])
      yield* leases.release(first)
      yield* leases.acquire(second, S2, wanted(name("c"), name("b")))
      assert.deepStrictEqual(yield* mine(second), [
        { kind: "workspace", name: name("b"), agent_id: second, session_id: S2 },
        { kind: "workspace", name: name("c"), agent_id: second, session_id: S2 }
      ])
    }).pipe(Effect.provide(stores))
  )

  it.effect("stay an agent's own through epochs, restarts of choird and a next session (D19)", () =>
    Effect.gen(function* () {
      const agent = newAgent()
      yield* Effect.flatMap(Leases, ({ acquire }) => acquire(agent, S1, wanted(name("d")))).pipe(Effect.provide(stores))
      yield* Effect.gen(function* () {
        const leases = yield* Leases
        yield* leases.acquire(agent, S1, wanted(name("d")))
        yield* leases.transfer(agent, S2)
        assert.deepStrictEqual(yield* mine(agent), [
          { kind: "workspace", name: name("d"), agent_id: agent, session_id: S2 }
        ])
      }).pipe(Effect.provide(stores))
    })
  )

  it.effect("go to one of the agents that race for them, in whatever order they ask", () =>
    Effect.gen(function* () {
      const leases = yield* Leases
      const agents = Array.from({ length: 6 }, newAgent)
      const names = [name("x"), name("y"), name("z")]
      const outcomes = yield* Effect.forEach(
        agents,
        (agent, index) => Effect.result(leases.acquire(agent, S1, wanted(...(index % 2 ? names : names.toReversed())))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Success").length, 1)
      assert.strictEqual((yield* Effect.forEach(agents, mine)).flat().length, 3)
    }).pipe(Effect.provide(stores))
  )
})
