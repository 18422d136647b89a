import { statSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { AgentId, coreLane, EDGE, InboxId, JobName, LaneId, ResourceName, SessionId, SignalId } from "#schema/Ids.ts"
import type { EventDraft } from "#schema/Event.ts"
import { GatewayHealth } from "#src/choird/gateway/GatewayHealth.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { RepoCacheFailed } from "#src/choird/repos/Repos.ts"
import { AGENT, append, SESSION, type World } from "../../support/control.ts"
import { started } from "../../support/jobEvents.ts"
import { answered, image, images, openOperator, output, said } from "../../support/operatorSocket.ts"
import { ask, refusalOf } from "../../support/unixHttp.ts"
import { CHAT_TEXT_CHARS_MAX } from "#src/choird/queues/chatTextLimit.ts"

/** What was asked of the session, in order. */
const sentBodies = ({ sentSignals }: World) =>
  [...sentSignals.values()].map(({ body: { type, ...rest } }) =>
    [type, ...Object.values(rest).map((value) => (typeof value === "string" ? value : JSON.stringify(value)))].join(" ")
  )

const STRANGER = AgentId.make("bob")
const NO_SESSION = SessionId.make("zzzzzzzzzzzzzzzz")
const one = InboxId.make("1")

describe("the operator's socket", () => {
  it.effect("is 0600, speaks the pinned shape and serves no OpenAPI", () =>
    Effect.gen(function* () {
      const { path } = yield* openOperator()
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      for (const each of ["/openapi.json", "/docs", "/rpc/HEARTBEAT", "/events"]) {
        const answer = yield* ask(path, { path: each })
        assert.deepStrictEqual([answer.status, refusalOf(answer).type], [404, "NOT_FOUND"])
      }
      const bad = yield* ask(path, { method: "GET", path: "/agents/NO_SUCH_NAME" })
      assert.deepStrictEqual([bad.status, refusalOf(bad).type], [400, "BAD_REQUEST"])
    })
  )

  it.effect("tells the status of all parts", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      world.view = { ...world.view, status: "crashed", reason: "killed" }
      world.unpruned = ["archives: out of range"]
      const status = yield* api.system.status()
      assert.deepStrictEqual(status.postgres, { kind: "embedded", version: "17.5", pgvector: "0.8.0", ok: true })
      assert.deepStrictEqual(status.runtime.limits, ["cpus", "pids"])
      assert.deepStrictEqual(
        status.gateways.map(({ name, ok, type }) => [name, type, ok]),
        [
          ["screen", "console", true],
          ["bot", "telegram", false]
        ]
      )
      assert.deepStrictEqual(status.warnings, [
        "pruning failed in part: archives: out of range; to try it again at once: choirctl prune",
        "the gateway bot does not work: not started",
        "the agent ada crashed: killed"
      ])
      assert.deepStrictEqual(
        status.agents.map(({ agent_id, uptime_ms }) => [agent_id, uptime_ms]),
        [["ada", 0]]
      )
    })
  )

  it.effect("tells the status while the database is away, and what is the matter wherever it is needed (R3)", () =>
    Effect.gen(function* () {
      const { api, path, world } = yield* openOperator()
      world.away = true
      const { agents, approvals, postgres, warnings } = yield* api.system.status()
      assert.isFalse(postgres.ok)
      assert.deepStrictEqual(approvals, { pending: null })
      assert.deepStrictEqual(
        agents.map(({ agent_id, health, session_id, status }) => [agent_id, status, session_id, health]),
        [[AGENT, "running", SESSION, undefined]]
      )
      assert.match(warnings.join(), /the database does not answer: agents continue/u)
      const answer = yield* ask(path, { method: "GET", path: "/sessions" })
      const { message, type } = refusalOf(answer)
      assert.deepStrictEqual([answer.status, type, answer.headers["retry-after"]], [500, "DATABASE_AWAY", "5"])
      assert.match(message, /the database is unavailable: ECONNREFUSED/u)
      assert.match(answer.text, /"hint":"check that it runs and has free disk space/u)
      world.away = false
      assert.isTrue((yield* api.system.status()).postgres.ok)
    })
  )

  it.effect("shows of each agent that runs its epoch, lag, last heartbeat, crashes and what is spent (R78)", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const health = {
        epoch: 1,
        lag_revs: 3,
        heartbeat_age_ms: 1200,
        crashes: 1,
        crashes_max: 3,
        tokens: { used: 0, limit: 2_000_000 },
        cost_usd: { used: 0, limit: null, unpriced: [ResourceName.make("small")] }
      }
      const [agent] = (yield* api.system.status()).agents
      assert.deepStrictEqual(agent?.health, health)
      assert.deepStrictEqual((yield* api.agents.status({ params: { id: AGENT } })).health, health)
      world.view = { ...world.view, status: "stopped" }
      assert.isUndefined((yield* api.system.status()).agents[0]?.health)
    })
  )

  it.effect("shows the running configuration and who leases which workspace", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      assert.nestedPropertyVal(yield* api.system.config(), "heartbeat_interval_ms", 5000)
      assert.deepStrictEqual(
        (yield* api.system.workspaces()).map(({ leased_by, name }) => [name, leased_by]),
        [
          ["desk", "ada"],
          ["shed", null]
        ]
      )
    })
  )

  it.effect("answers a shutdown before it is asked for", () =>
    Effect.gen(function* () {
      const { api, services, world } = yield* openOperator()
      assert.deepStrictEqual(yield* api.system.shutdown(), { ok: true })
      yield* Effect.provideContext(
        Effect.flatMap(Shutdown, ({ requested }) => requested),
        services
      )
      assert.strictEqual(world.audit[0]?.action, "shutdown")
    })
  )
})

describe("gateways and DMs", () => {
  it.effect("are listed with the bot's state and the agent at each", () =>
    Effect.gen(function* () {
      const { api, services, world } = yield* openOperator()
      const health = yield* Effect.provideContext(Effect.service(GatewayHealth), services)
      const [bot, screen] = [ResourceName.make("bot"), ResourceName.make("screen")]
      yield* health.report(bot, { ok: true, detail: "polling" })
      yield* health.named(bot, "double_bot")
      const console = { name: screen, type: "console", bot: null, ok: false, detail: "not started" }
      assert.deepStrictEqual<unknown>(yield* api.dms.gateways(), [
        { name: bot, type: "telegram", bot: "double_bot", ok: true, detail: "polling", dms: ["phone"] },
        { ...console, dms: ["terminal"] }
      ])
      const dms = [
        { name: "phone", gateway: bot, user_id: "1", admin: false, agent_id: null },
        { name: "terminal", gateway: screen, user_id: "local", admin: false, agent_id: AGENT }
      ]
      assert.deepStrictEqual<unknown>(yield* api.dms.list(), dms)
      world.view = { ...world.view, status: "stopped", bindings: null }
      assert.deepStrictEqual(
        (yield* api.dms.list()).map(({ agent_id }) => agent_id),
        [null, null]
      )
    })
  )
})

describe("agents", () => {
  it.effect("are listed, started and stopped, and refusals keep their hint", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      assert.strictEqual((yield* api.agents.list())[0]?.session_id, SESSION)
      yield* api.agents.start({ params: { id: AGENT }, payload: { fresh: true } })
      yield* api.agents.stop({ params: { id: AGENT } })
      assert.deepStrictEqual(world.effects, ["start", "stop"])
      const refused = yield* Effect.flip(api.agents.restart({ params: { id: AGENT }, payload: {} }))
      assert.nestedInclude(refused, { "error.type": "NOT_RUNNING", "error.hint": "start it" })
      const refusedStart = yield* Effect.flip(api.agents.start({ params: { id: STRANGER }, payload: {} }))
      assert.nestedInclude(refusedStart, { "error.type": "UNKNOWN_AGENT" })
      assert.deepStrictEqual(
        world.audit.map(({ action, agent_id, detail, who }) => [who, action, agent_id, detail]),
        [
          ["operator", "agent.start", AGENT, {}],
          ["operator", "agent.stop", AGENT, {}],
          ["operator", "agent.restart", AGENT, { refused: "NOT_RUNNING" }],
          ["operator", "agent.start", STRANGER, { refused: "UNKNOWN_AGENT" }]
        ]
      )
      const unknown = yield* Effect.flip(api.agents.status({ params: { id: STRANGER } }))
      assert.nestedInclude(unknown, { "error.type": "UNKNOWN_AGENT" })
    })
  )

  it.effect("keep their last session when they do not run", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      world.view = { ...world.view, status: "stopped", session_id: null, bindings: null }
      world.row = { ...world.row, status: "stopped", last_rev: 4, frozen_reason: "conflict at 5" }
      const detail = yield* api.agents.status({ params: { id: AGENT } })
      assert.deepStrictEqual([detail.session_id, detail.last_rev, detail.reason], [SESSION, 4, "conflict at 5"])
      assert.deepStrictEqual([detail.lanes, detail.resource_bindings?.workspace], [[], "desk"])
    })
  )

  it.effect("show lanes and what is spent of the budgets", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const begun = { skill: "plan", from: "", to: "look", on: "start", step: 0 }
      const inSkill: EventDraft = { event_type: "SkillTransitionCommitted", lane: EDGE, payload: begun }
      yield* append(world, [said(one), started("a"), output(EDGE, "c1"), inSkill])
      const detail = yield* api.agents.status({ params: { id: AGENT } })
      assert.deepStrictEqual(detail.lanes, [
        { lane: EDGE, state: "EDGE_FINALIZING", skill: "plan", skill_state: "look", step: 1 },
        { lane: coreLane(JobName.make("a")), state: "CORE_INITIALIZING", skill: null, skill_state: null, step: 0 }
      ])
      assert.deepStrictEqual(detail.budgets.tokens, { used: 15, limit: 2_000_000 })
      assert.deepStrictEqual(detail.budgets.core_jobs, { used: 1, limit: 8 })
      assert.deepStrictEqual(detail.budgets.cost_usd, { used: 0, limit: null, unpriced: [ResourceName.make("small")] })
      assert.strictEqual(detail.acked_rev, 4)
    })
  )

  it.effect("are built step by step, and a failed build says why", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      const steps = yield* Effect.flatMap(api.agents.build({ params: { id: AGENT }, payload: {} }), Stream.runCollect)
      assert.deepStrictEqual(
        [...steps],
        [
          { type: "step", text: "fetch global" },
          { type: "done", result: { agent_id: AGENT, ...image } }
        ]
      )
      const failure = new RepoCacheFailed({ path: "/repos", reason: "disk full" })
      const broken = yield* openOperator(images(Effect.fail(failure)))
      const lines = yield* Effect.flatMap(
        broken.api.agents.build({ params: { id: AGENT }, payload: {} }),
        Stream.runCollect
      )
      assert.deepStrictEqual(lines.at(-1), {
        type: "failed",
        error: { type: "RepoCacheFailed", message: failure.message }
      })
    })
  )
})

describe("sessions", () => {
  it.effect("are shown one by one with what they are bound to and where their log ends", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), output(EDGE, "c1"), answered("reply", one, "hello")])
      const { container: _, log_bytes: __, ...row } = world.row
      assert.deepStrictEqual(yield* api.session.show({ params: { id: SESSION } }), {
        ...row,
        last_rev: 3,
        head: world.events[2]!.hash,
        summary: null
      })
      const unknown = yield* Effect.flip(api.session.show({ params: { id: NO_SESSION } }))
      assert.nestedInclude(unknown, { "error.type": "UNKNOWN_SESSION" })
    })
  )

  it.effect("are listed, printed and verified, and unknown ones are 404", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), output(EDGE, "c1"), answered("reply", one, "hello")])
      assert.lengthOf(yield* api.sessions.list({ query: {} }), 1)
      const print = (query: { readonly from?: number; readonly last?: number }) =>
        Effect.flatMap(api.sessions.events({ params: { id: SESSION }, query }), Stream.runCollect)
      assert.deepStrictEqual([...(yield* print({}))], world.events)
      assert.deepStrictEqual([...(yield* print({ last: 1 }))], world.events.slice(-1))
      for (const query of [{ from: -1 }, { last: 1.5 }, { from: 2 ** 40 }])
        assert.nestedInclude(yield* Effect.flip(print(query)), { "error.type": "BAD_REQUEST" })
      assert.deepStrictEqual(yield* api.sessions.verify({ params: { id: SESSION } }), {
        ok: true,
        events: 3,
        head: world.events[2]!.hash
      })
      const unknown = { params: { id: NO_SESSION }, query: {} }
      assert.nestedInclude(yield* Effect.flip(api.sessions.events(unknown)), { "error.type": "UNKNOWN_SESSION" })
      assert.nestedInclude(yield* Effect.flip(api.sessions.verify(unknown)), { "error.type": "UNKNOWN_SESSION" })
    })
  )

  it.effect("cancel the named job, or the only one", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const cancel = (job?: string) =>
        api.sessions.cancel({
          params: { id: SESSION },
          payload: job === undefined ? {} : { job_name: JobName.make(job) }
        })
      assert.nestedInclude(yield* Effect.flip(cancel()), { "error.type": "NO_SUCH_JOB" })
      yield* append(world, [said(one), started("a")])
      const signal = { signal_id: SignalId.make("7"), rev: null, refused: null }
      assert.deepStrictEqual(yield* cancel(), { job_name: JobName.make("a"), ...signal })
      yield* append(world, [started("b")])
      const ambiguous = yield* Effect.flip(cancel())
      assert.nestedInclude(ambiguous, { "error.type": "JOB_AMBIGUOUS", "error.hint": "name one of: a, b" })
      assert.nestedInclude(yield* Effect.flip(cancel("c")), { "error.hint": "running jobs: a, b" })
      yield* cancel("b")
      assert.deepStrictEqual(sentBodies(world), ["CancelCore a", "CancelCore b"])
      assert.deepStrictEqual(
        (yield* api.sessions.cores({ params: { id: SESSION } })).map(({ job_name }) => job_name),
        [JobName.make("a"), JobName.make("b")]
      )
      world.row = { ...world.row, status: "stopped" }
      const stopped = yield* Effect.flip(cancel("a"))
      assert.nestedInclude(stopped, { "error.type": "NOT_RUNNING", "error.hint": "choirctl agent start ada" })
    })
  )

  it.effect("take instructions and compactions, the same request once (R28)", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const params = { id: SESSION }
      const inject = (text: string, request_id?: string) =>
        api.sessions.inject({ params, payload: { text, ...(request_id === undefined ? {} : { request_id }) } })
      const first = yield* inject("be quick", "r1")
      assert.deepStrictEqual(first, { signal_id: SignalId.make("7"), rev: null, refused: null })
      assert.deepStrictEqual(yield* inject("be quick", "r1"), first)
      yield* inject("be quick")
      yield* api.sessions.compact({ params, payload: {} })
      yield* api.sessions.compact({ params, payload: { lane: EDGE } })
      assert.deepStrictEqual(sentBodies(world), ["Inject be quick", "Inject be quick", "Compact", "Compact edge"])
      assert.nestedInclude(yield* Effect.flip(inject("be slow", "r1")), { "error.type": "REQUEST_ID_REUSED" })
    })
  )

  const refusals: ReadonlyArray<
    readonly [string, { readonly text?: string; readonly lane?: string }, (world: World) => void, string]
  > = [
    ["an empty instruction", { text: " \n" }, () => undefined, "EMPTY"],
    ["one that no event could hold", { text: "x".repeat(CHAT_TEXT_CHARS_MAX + 1) }, () => undefined, "TOO_LARGE"],
    ["a lane that is not there", { lane: "core:nobody" }, () => undefined, "NO_SUCH_JOB"],
    ["more than a session can keep", { text: "x" }, (world) => (world.full = true), "SIGNALS_FULL"],
    [
      "a session that does not run",
      { text: "x" },
      (world) => (world.row = { ...world.row, status: "closed" }),
      "NOT_RUNNING"
    ]
  ]
  for (const [what, { lane, text }, arrange, type] of refusals)
    it.effect(`refuse ${what}, and leave one audit row without its words (R77)`, () =>
      Effect.gen(function* () {
        const { api, world } = yield* openOperator()
        arrange(world)
        const params = { id: SESSION }
        const asked =
          text === undefined
            ? api.sessions.compact({ params, payload: { lane: LaneId.make(lane ?? "") } })
            : api.sessions.inject({ params, payload: { text } })
        assert.nestedInclude(yield* Effect.flip(asked), { "error.type": type })
        assert.lengthOf(world.audit, 1)
        assert.deepInclude(world.audit[0], { who: "operator", session_id: SESSION })
        assert.nestedPropertyVal(world.audit[0], "detail.refused", type)
        assert.strictEqual(world.sentSignals.size, 0)
      })
    )

  it.effect("that nobody knows are refused and audited", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const asked = api.sessions.inject({ params: { id: NO_SESSION }, payload: { text: "x" } })
      assert.nestedInclude(yield* Effect.flip(asked), { "error.type": "UNKNOWN_SESSION" })
      assert.nestedPropertyVal(world.audit[0], "detail.refused", "UNKNOWN_SESSION")
    })
  )
})

describe("models", () => {
  it.effect("are listed, told and switched", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const rows = yield* api.system.models()
      const small = { name: ResourceName.make("small"), type: "llm", provider: "p", model: "m" } as const
      assert.deepStrictEqual(rows, [{ ...small, default_of: [AGENT], fallback: [] }])
      const used = { llm: ResourceName.make("small"), in_use: true }
      assert.deepInclude(yield* api.agents.models({ params: { id: AGENT } }), used)
      yield* api.agents.setModels({ params: { id: AGENT }, payload: { llm: ResourceName.make("small") } })
      assert.deepStrictEqual(world.effects, ["operator sets small -"])
    })
  )
})
