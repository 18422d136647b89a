import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { detail, fakeChoird, SESSION, summary } from "../../support/fakeChoird.ts"

describe("choirctl agent", () => {
  it.effect("lists agents as a table and as the pinned document", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const people = yield* choirctl(home, ["agent", "list"])
      assert.deepStrictEqual(people, {
        code: 0,
        err: "",
        out: [
          "AGENT    STATUS   UPTIME  SESSION           IMAGE   CONFIG",
          `agent-1  running  1m 5s   ${SESSION}  0a1b2c  3`,
          ""
        ].join("\n")
      })
      const programs = yield* choirctl(home, ["agent", "list", "--json"])
      assert.deepStrictEqual(document(programs), [summary])
      assert.strictEqual(programs.out.trimEnd().split("\n").length, 1)
    })
  )

  it.effect("shows one agent with every pinned key", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const programs = yield* choirctl(home, ["agent", "status", "agent-1", "--json"])
      assert.deepStrictEqual(document(programs), detail)
      const people = yield* choirctl(home, ["agent", "status", "agent-1"])
      for (const text of ["EDGE_IDLE", "1,200 of 2,000,000", "0.2500 USD", "workspace main"])
        assert.include(people.out, text)
      assert.deepStrictEqual(calls[0], { name: "agent", id: "agent-1" })
    })
  )

  it.effect("sends every override of a start and nothing that was not said", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const overrides = ["workspace", "llm", "core-llm", "voice-profile", "git-identity", "notion", "email"]
      const flags = overrides.map((name) => `--${name}=x-${name}`)
      const ran = yield* choirctl(home, ["agent", "start", "agent-1", "--fresh", "--dm=phone", ...flags])
      assert.strictEqual(ran.out, `agent-1 is running, session ${SESSION}\n`)
      assert.deepStrictEqual(calls[0], {
        name: "start",
        id: "agent-1",
        input: {
          dm: ["phone"],
          fresh: true,
          ...Object.fromEntries(overrides.map((name) => [name.replace("-", "_"), `x-${name}`]))
        }
      })
      yield* choirctl(home, ["agent", "start", "agent-1"])
      assert.deepStrictEqual(calls[1]?.input, {})
    })
  )

  it.effect("warns at a start of models without a price only where the cost is limited", () =>
    Effect.gen(function* () {
      const unpriced = [ResourceName.make("opus"), ResourceName.make("haiku")]
      for (const limit of [5, null]) {
        const home = yield* temporaryFolder
        const tokens = { used: 0, limit: 100 }
        const health = { epoch: 1, lag_revs: 0, heartbeat_age_ms: 10, crashes: 0, crashes_max: 3, tokens }
        const started = { ...summary, health: { ...health, cost_usd: { used: 0, limit, unpriced } } }
        yield* fakeChoird(home, { changed: Effect.succeed(started) })
        const ran = yield* choirctl(home, ["agent", "start", "agent-1", "--llm=opus"])
        const warning =
          "warning: opus, haiku have no price, so their calls do not count towards budgets.max_cost_usd (5)"
        assert.strictEqual(ran.err.includes(warning), limit !== null, ran.err)
      }
    })
  )

  it.effect("starts on several DMs, named one by one or in a list, and refuses what is not a name", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["agent", "start", "agent-1", "--dm", "phone", "--dm=terminal"])
      yield* choirctl(home, ["agent", "start", "agent-1", "--dm", "phone,terminal", "--dm", "tablet"])
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ dm: ["phone", "terminal"] }, { dm: ["phone", "terminal", "tablet"] }]
      )
      const ran = yield* choirctl(home, ["agent", "start", "agent-1", "--dm", "My Phone"])
      assert.deepStrictEqual([ran.code, calls.length], [2, 2])
      assert.include(ran.err, "a resource name is a-z")
    })
  )

  it.effect("shows every DM of an agent, and leaves the bindings to programs as they are", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const names = [ResourceName.make("phone"), ResourceName.make("terminal")] as const
      const resource_bindings = { ...detail.resource_bindings!, dm: names[0], dms: names }
      yield* fakeChoird(home, { agent: Effect.succeed({ ...detail, resource_bindings }) })
      assert.include((yield* choirctl(home, ["agent", "status", "agent-1"])).out, ", dm phone and terminal\n")
      const programs = yield* choirctl(home, ["agent", "status", "agent-1", "--json"])
      assert.deepInclude(document(programs) as object, { resource_bindings })
    })
  )

  it.effect("stops and restarts", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, { changed: Effect.succeed({ ...summary, status: "stopped" }) })
      const stopped = yield* choirctl(home, ["agent", "stop", "agent-1"])
      assert.strictEqual(stopped.out, `agent-1 is stopped, session ${SESSION}\n`)
      yield* choirctl(home, ["agent", "restart", "agent-1", "--json"])
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["stop", "restart"]
      )
    })
  )

  it.effect("prints the steps of a build beside its one result", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["agent", "build", "agent-1", "--force", "--json"])
      assert.strictEqual(ran.code, 0)
      assert.strictEqual(ran.err, "fetching\n")
      assert.deepInclude(document(ran), { image_version: "0a1b2c", built: true })
      assert.deepStrictEqual(calls[0]?.input, { force: true })
    })
  )

  it.effect("updates one agent or all, tells the steps on the side, and fails when one of them did", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* Effect.scoped(
        Effect.gen(function* () {
          const choird = yield* fakeChoird(home)
          const one = yield* choirctl(home, ["agent", "update", "agent-1"])
          assert.deepStrictEqual([one.code, one.out], [0, "agent-1 runs on its new image: 0123456\n"])
          assert.include(one.err, "restart on 0123456")
          assert.strictEqual((yield* choirctl(home, ["agent", "update-all", "--json"])).code, 0)
          assert.deepStrictEqual(
            choird.map(({ name }) => name),
            ["update", "update-all"]
          )
        })
      )
      const agent_id = AgentId.make("agent-1")
      const error = { type: "ImageBuildFailed", message: "RUN x failed", hint: "correct it" }
      const row = { agent_id, outcome: "failed" as const, image_version: null, warnings: ["stale"], error }
      yield* fakeChoird(home, { update: Effect.succeed([{ type: "done", result: [row] }]) })
      const ran = yield* choirctl(home, ["agent", "update-all", "--json"])
      assert.strictEqual(ran.code, 1)
      assert.deepStrictEqual(document(ran), [row])
      const read = yield* choirctl(home, ["agent", "update-all"])
      assert.strictEqual(read.out, "agent-1 failed: RUN x failed\n  correct it\n")
      assert.include(read.err, "warning: agent-1: stale")
    })
  )

  it.effect("fails when a build fails, and when its stream ends before it does", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const error = { type: "RepoInvalid", message: "tools/x.json is not valid" }
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* fakeChoird(home, { build: Effect.succeed([{ type: "failed", error }]) })
          const ran = yield* choirctl(home, ["agent", "build", "agent-1", "--json"])
          assert.strictEqual(ran.code, 1)
          assert.deepStrictEqual(document(ran), { ok: false, error: { ...error, hint: null } })
        })
      )
      yield* fakeChoird(home, { build: Effect.succeed([{ type: "step", text: "fetching" }]) })
      const ran = yield* choirctl(home, ["agent", "build", "agent-1"])
      assert.strictEqual(ran.code, 1)
      assert.match(ran.err, /hint: choirctl --home \S+ agent build agent-1/u)
    })
  )
})

describe("choirctl status and workspace", () => {
  it.effect("shows choird, its parts and its warnings", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const { code, out } = yield* choirctl(home, ["status"])
      assert.strictEqual(code, 0)
      for (const text of ["0.1.0, up 1h 1m", "embedded 18.6", "sandbox", "gateway terminal", "agent-1"])
        assert.include(out, text)
      assert.include(out, "warning: it shares the network")
    })
  )

  it.effect("trusts the files of a workspace, and says what they counted as", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["workspace", "trust", "main", "--yes"])
      assert.include(out, "main no longer counts as text from outside (files from people, web:evil.example)")
      assert.include(out, "agent start AGENT --fresh")
      assert.deepStrictEqual(calls, [{ name: "trust", id: "main" }])
      const held = yield* choirctl(home, ["workspace", "trust", "main"])
      assert.strictEqual(held.code, 1)
      assert.include(held.err, `agent-1 works in main\nhint: choirctl --home ${home} agent stop agent-1`)
      assert.isFalse(calls.slice(1).some(({ name }) => name === "trust"))
    })
  )

  it.effect("empties a workspace, and stops the agent that holds it first", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["workspace", "reset", "main", "--yes"])
      assert.strictEqual(
        out,
        `main is empty: /w/main\nagent-1 was stopped to do this; to start it again: choirctl --home ${home} agent start agent-1\nif a session that has read text from outside continues, it labels the workspace again; to begin a new session: choirctl --home ${home} agent start AGENT --fresh\n`
      )
      const programs = yield* choirctl(home, ["workspace", "reset", "main", "--yes", "--json"])
      assert.deepStrictEqual(document(programs), { name: "main", path: "/w/main", stopped: "agent-1" })
      assert.deepStrictEqual(calls, [
        { name: "reset", id: "main" },
        { name: "reset", id: "main" }
      ])
      assert.strictEqual((yield* choirctl(home, ["workspace", "reset", "../x"])).code, 2)
    })
  )

  it.effect("lists workspaces with their holders", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["workspace", "list"])
      assert.strictEqual(
        out,
        "WORKSPACE  HELD BY  USED  FROM OUTSIDE  PATH\nmain       agent-1  -     -             /w/main\n"
      )
      const programs = yield* choirctl(home, ["workspace", "list", "--json"])
      assert.deepStrictEqual(document(programs), [{ name: "main", path: "/w/main", leased_by: "agent-1" }])
    })
  )
})
