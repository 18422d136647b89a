import { existsSync, statSync } from "node:fs"
import type { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, EDGE, InboxId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { AgentSockets, layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { BODIES, openSession, VERBS } from "../../support/agentSocket.ts"
import { append, chained, DM, head, layerWorld, makeWorld, SESSION } from "../../support/control.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { describeTransports } from "../../support/everyTransport.ts"
import { ask, dial, refusalOf, until, untilClosed } from "../../support/unixHttp.ts"
import { AGENT_CONNECTIONS_MAX, AGENT_REQUESTS_BURST } from "#src/choird/listeners/OpenSession.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

const said = (id: string): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make(id), dm: DM, text: "hi", attachments: [] }
})
const replied = (id: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "reply", text: "hello", in_reply_to: InboxId.make(id) }
})

describe("a session's socket", () => {
  it.effect("is alone in its folder and gone with its scope", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const home = yield* temporaryFolder
      const sockets = yield* Effect.provide(
        AgentSockets,
        layerAgentListeners.pipe(Layer.provide(layerWorld(world, home)))
      )
      const scope = yield* Scope.make()
      const { dir, path } = yield* Scope.provide(sockets.open(SESSION), scope)
      assert.strictEqual(path, `${home}/socks/agents/${SESSION}/choird.sock`)
      assert.strictEqual(statSync(dir).mode & 0o777, 0o700)
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(existsSync(dir))
    })
  )
})

describeTransports("a session's limits and routes", ({ openSession }) => {
  it.effect("serves the verbs and nothing else (threat: container calls admin verbs)", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      const operator = Object.values(OperatorApi.groups).flatMap((group) =>
        Object.values(group.endpoints).map((endpoint): readonly [string, string] => [endpoint.method, endpoint.path])
      )
      assert.isAbove(operator.length, 20)
      const nobody = ["/rpc/NOPE", "/openapi.json", "/docs", "/", "/rpc"]
      const others = nobody.flatMap((path) => [["GET", path] as const, ["POST", path] as const])
      for (const [method, route] of [...operator, ...others]) {
        const named = route.replaceAll(":id", "ada").replaceAll(/:\w+/gu, "x")
        const answer = yield* ask(path, { method, path: named, headers: { authorization: "Bearer lease" } })
        assert.deepStrictEqual([named, answer.status, refusalOf(answer).type], [named, 404, "NOT_FOUND"])
      }
      assert.deepStrictEqual(world.effects, [])
    })
  )

  it.effect("counts 100 requests a second with a burst of 200 (R47)", () =>
    Effect.gen(function* () {
      const { call } = yield* openSession
      for (let count = 0; count < AGENT_REQUESTS_BURST; count += 1) yield* call("REPORT_STATUS")
      const limited = yield* call("REPORT_STATUS")
      assert.strictEqual(limited.status, 429)
      assert.strictEqual(limited.headers["retry-after"], "1")
      assert.deepStrictEqual(JSON.parse(limited.text).error.retry_after_ms, 10)
      yield* TestClock.adjust("10 millis")
      assert.strictEqual((yield* call("REPORT_STATUS")).status, 200)
    })
  )

  it.effect("serves 8 connections at once and not the ninth, until one closes (R47)", () =>
    Effect.gen(function* () {
      const { path } = yield* openSession
      const body = JSON.stringify(BODIES.REPORT_STATUS)
      let sent = 0
      const send = (socket: Socket) => {
        const head = ["host: localhost", "authorization: Bearer lease", `x-choir-session-id: ${SESSION}`]
        const envelope = [`x-choir-request-id: ${(sent += 1)}`, "content-type: application/json"]
        const lines = [...head, ...envelope, `content-length: ${body.length}`]
        socket.write(`POST /rpc/REPORT_STATUS HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
      }
      const connect = Effect.tap(dial(path), (socket) => Effect.sync(() => send(socket)))
      const sockets = yield* Effect.forEach(Array.from({ length: AGENT_CONNECTIONS_MAX }), () =>
        Effect.tap(connect, (socket) => until(socket, '"ack":true'))
      )
      assert.match(yield* untilClosed(yield* connect), /^$|^HTTP\/1\.1 429 .*connection: close/isu)
      const [first] = sockets
      const closed = yield* Effect.forkChild(untilClosed(first!), { startImmediately: true })
      first?.end()
      yield* Fiber.join(closed)
      yield* until(yield* connect, '"ack":true')
    })
  )

  it.effect("answers 413 to a body over 1 MiB, and 401 to it without a token (R47)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const body = " ".repeat(BODY_BYTES_MAX + 1)
      assert.strictEqual((yield* call("HEARTBEAT", { body })).status, 413)
      assert.strictEqual((yield* call("HEARTBEAT", { body, token: "nobody" })).status, 401)
      assert.notInclude(world.effects, "append")
    })
  )
})

describeTransports("bodies", ({ openSession }) => {
  for (const verb of VERBS) {
    it.effect(`${verb} refuses what does not decode, by path and without the value`, () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        const extra = yield* call(verb, { body: { ...BODIES[verb], canary_key: "canary-value" } })
        assert.strictEqual(extra.status, 400)
        assert.strictEqual(refusalOf(extra).type, "BAD_REQUEST")
        assert.include(refusalOf(extra).message, "canary_key")
        assert.notInclude(extra.text, "canary-value")
        for (const body of ["", "{", "null", "[]", "1"]) assert.strictEqual((yield* call(verb, { body })).status, 400)
        const plain = yield* call(verb, { headers: { "content-type": "text/plain" } })
        assert.strictEqual(plain.status, 415)
        const unnamed = yield* call(verb, { headers: { "x-choir-request-id": "no spaces allowed" } })
        assert.strictEqual(unnamed.status, 400)
        assert.deepStrictEqual(
          world.effects.filter((each) => each !== "settle"),
          []
        )
      })
    )
  }
})

describeTransports("INIT_HELLO", ({ openSession }) => {
  it.effect("swaps the token, tells the start, and pages the tail with the lease token (D12)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const fresh = JSON.parse((yield* call("INIT_HELLO")).text)
      assert.strictEqual(fresh.status, "fresh")
      assert.deepStrictEqual(fresh.tail_events, [])
      assert.deepStrictEqual(world.effects, ["heard", "lease", "hello"])
      yield* append(world, [said("1"), replied("1"), said("2")])
      const first = JSON.parse((yield* call("INIT_HELLO", { token: "lease" })).text)
      assert.strictEqual(first.status, "resumed")
      assert.deepStrictEqual([first.tail_events.length, first.tail_more], [2, true])
      assert.notStrictEqual(first.lease_token, fresh.lease_token)
      const asked = world.effects.length
      const next = yield* call("INIT_HELLO", { token: "lease", body: { ...BODIES.INIT_HELLO, tail_from: 3 } })
      const page = JSON.parse(next.text)
      assert.deepStrictEqual([page.tail_events.length, page.tail_more], [1, false])
      assert.strictEqual(page.lease_token, "lease")
      // A page is a sign of life, and nothing else (D8).
      assert.deepStrictEqual(world.effects.slice(asked), ["heard"])
    })
  )

  it.effect("refuses another image than the one that was started", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call("INIT_HELLO", { body: { ...BODIES.INIT_HELLO, image_version: "fffffff" } })
      assert.strictEqual(answer.status, 409)
      assert.strictEqual(refusalOf(answer).type, "IMAGE_MISMATCH")
      assert.deepStrictEqual(world.effects, [])
      assert.lengthOf(world.audit, 1)
    })
  )

  it.effect("refuses a run that the lifecycle no longer knows", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      world.view = { ...world.view, epoch: 2 }
      assert.strictEqual((yield* call("INIT_HELLO")).status, 401)
      assert.deepStrictEqual(world.effects, [])
    })
  )
})

describeTransports("the other verbs", ({ openSession }) => {
  it.effect(
    "GET_SECRETS answers with the values of bound secrets, and names those that are unbound or have no value",
    () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        const given = yield* call("GET_SECRETS")
        assert.deepStrictEqual(JSON.parse(given.text), { secrets: { "model-key": "s3cret" } })
        const mixed = yield* call("GET_SECRETS", {
          body: { resources: ["model-key", "postgres-admin-creds", "unset"] }
        })
        assert.deepStrictEqual(JSON.parse(mixed.text), {
          secrets: { "model-key": "s3cret" },
          unbound: ["postgres-admin-creds"],
          unset: ["unset"]
        })
        assert.deepStrictEqual(world.audit[0]?.detail, { refused: "UNBOUND", names: ["postgres-admin-creds"] })
      })
  )

  it.effect("HEARTBEAT is heard before it is stored (D8)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call("HEARTBEAT")
      assert.deepStrictEqual(JSON.parse(answer.text), { ack_rev: 0, action: "OK", config_version_latest: 1 })
      assert.deepStrictEqual(world.effects, ["settle", "heard", "append", "answered"])
    })
  )

  it.effect(
    "leaves an audit row for each skill that was denied by its capabilities, whose words are made safe (R77)",
    () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        const denied = (name: string, more: object = {}): EventDraft => ({
          event_type: "ToolResultCommitted",
          lane: EDGE,
          payload: { call_id: CallId.make(name), status: "rejected", summary: "refused", duration_ms: 0, ...more }
        })
        const links = chained(world, [
          denied("c1", { denied: { skill: "tidy\u0007", capabilities: ["net", "exec"] } }),
          denied("c2"),
          {
            event_type: "InjectedInstruction",
            lane: EDGE,
            payload: {
              target: EDGE,
              source: "user",
              content: "",
              refused: "not granted",
              denied: { skill: "brief", capabilities: ["net"] }
            }
          }
        ])
        const sent = { new_rev: links.length, hash_new: links.at(-1)?.hash, patches: links.map(({ event }) => event) }
        const hash_prev = hex(genesis(SESSION))
        const answer = yield* call("HEARTBEAT", { body: { ...BODIES.HEARTBEAT, hash_prev, ...sent } })
        assert.strictEqual(JSON.parse(answer.text).action, "OK", answer.text)
        assert.deepStrictEqual(
          world.audit.map(({ action, detail, session_id }) => [action, detail, session_id]),
          [
            ["rpc.HEARTBEAT", { refused: "CAPABILITY", skill: "tidy?", capabilities: ["net", "exec"] }, SESSION],
            ["rpc.HEARTBEAT", { refused: "CAPABILITY", skill: "brief", capabilities: ["net"] }, SESSION]
          ]
        )
      })
  )

  it.effect("REPORT_STATUS is acknowledged and changes nothing, and takes nothing that the events of a lane say", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const answer = yield* call("REPORT_STATUS")
      assert.deepStrictEqual([answer.status, JSON.parse(answer.text)], [200, { ack: true }])
      assert.deepStrictEqual(world.effects, ["settle"])
      const refused = yield* call("REPORT_STATUS", { body: { ...BODIES.REPORT_STATUS, state: "EDGE_REASONING" } })
      assert.strictEqual(refused.status, 400)
    })
  )

  it.effect("TERMINATE_SELF ends a session whose last event is here, and no other (D18)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      yield* append(world, [said("1"), replied("1")])
      const { hash, rev } = head(world)
      const early = yield* call("TERMINATE_SELF", { body: { reason: "stop", final_rev: 3, final_hash: hash } })
      assert.deepStrictEqual([early.status, refusalOf(early).type], [409, "NOT_FLUSHED"])
      assert.strictEqual(JSON.parse(early.text).error.ack_rev, 2)
      const other = yield* call("TERMINATE_SELF", {
        body: { reason: "stop", final_rev: rev, final_hash: "0".repeat(64) }
      })
      assert.strictEqual(other.status, 409)
      assert.notInclude(world.effects, "terminating stop")
      const done = yield* call("TERMINATE_SELF", { body: { reason: "stop", final_rev: rev, final_hash: hash } })
      assert.deepStrictEqual(JSON.parse(done.text), { ack: true })
      assert.include(world.effects, "terminating stop")
    })
  )

  it.effect("TERMINATE_SELF keeps the session's summary before it ends, decoded strictly and never before it may", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      yield* append(world, [said("1"), replied("1")])
      const { hash, rev } = head(world)
      const summary = { title: "canary", summary: "", decisions: [], open_points: [], facts: [] }
      const goodbye = (final_rev: number, summary: unknown) =>
        call("TERMINATE_SELF", { body: { reason: "stop", final_rev, final_hash: hash, summary } })
      assert.strictEqual((yield* goodbye(rev + 1, summary)).status, 409)
      const { facts: _, ...short } = summary
      for (const wrong of [
        short,
        "canary",
        { ...summary, more: 1 },
        { ...summary, title: "x".repeat(201) },
        { ...summary, summary: "x".repeat(8001) },
        { ...summary, facts: Array(33).fill("x") },
        { ...summary, decisions: ["x".repeat(501)] },
        { ...summary, open_points: [1] }
      ]) {
        const refused = yield* goodbye(rev, wrong)
        assert.strictEqual(refused.status, 400)
        assert.notInclude(refused.text, "canary")
      }
      assert.isFalse(world.effects.some((what) => /summary|terminating/u.test(what)))
      assert.strictEqual((yield* goodbye(rev, summary)).status, 200)
      assert.deepStrictEqual(world.effects.slice(-2), ["summary canary", "terminating stop"])
    })
  )

  it.effect("FETCH_DYNAMIC_CONFIG tells the configuration only to whom it is new", () =>
    Effect.gen(function* () {
      const { call } = yield* openSession
      assert.deepStrictEqual(JSON.parse((yield* call("FETCH_DYNAMIC_CONFIG")).text), { config_version: 1 })
      const older = yield* call("FETCH_DYNAMIC_CONFIG", { body: { current_config_version: 0 } })
      assert.strictEqual(JSON.parse(older.text).config.llm, "small")
      assert.notInclude(older.text, "bot-token")
    })
  )

  it.effect("REQUEST_APPROVAL answers the approval and how it stands, once for a request id (R28)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const headers = { "x-choir-request-id": "one" }
      for (let times = 0; times < 2; times += 1) {
        const answer = yield* call("REQUEST_APPROVAL", { headers })
        assert.deepStrictEqual(JSON.parse(answer.text), { approval_id: "1", status: "pending" })
      }
      assert.deepStrictEqual(
        world.effects.filter((each) => each.startsWith("ask")),
        ["ask c-1"]
      )
    })
  )

  it.effect("there is no such kind of approval and no host tool, which is said and audited (R77)", () =>
    Effect.gen(function* () {
      const { call, world } = yield* openSession
      const skill = yield* call("REQUEST_APPROVAL", { body: { ...BODIES.REQUEST_APPROVAL, request_type: "skill" } })
      for (const answer of [skill, yield* call("EXECUTE_HOST_TOOL")])
        assert.deepStrictEqual([answer.status, refusalOf(answer).type], [404, "NOT_AVAILABLE"])
      assert.lengthOf(world.audit, 2)
    })
  )
})

describe("a session's socket, which tells whose a request is", () => {
  it.effect("counts the requests of the session that asks (R47)", () =>
    Effect.gen(function* () {
      const { call } = yield* openSession
      for (let count = 0; count < AGENT_REQUESTS_BURST; count += 1) yield* call("REPORT_STATUS", { token: "nobody" })
      assert.strictEqual((yield* call("REPORT_STATUS")).status, 429)
    })
  )
  it.effect("counts connections that say nothing (R47)", () =>
    Effect.gen(function* () {
      const { path } = yield* openSession
      yield* Effect.forEach(Array.from({ length: AGENT_CONNECTIONS_MAX }), () => dial(path))
      assert.strictEqual(yield* untilClosed(yield* dial(path)), "")
    })
  )
})

describe("layerAgentRoutes", () => {
  it.effect("answers a request that came before it was built", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const home = yield* temporaryFolder
      const services = yield* Layer.build(layerAgentListeners.pipe(Layer.provideMerge(layerWorld(world, home))))
      const { path } = yield* Effect.provideContext(
        Effect.flatMap(AgentSockets, (sockets) => sockets.open(SESSION)),
        services
      )
      const early = yield* Effect.forkChild(ask(path, { path: "/rpc/NOPE" }), { startImmediately: true })
      yield* Effect.provideContext(Layer.build(layerAgentRoutes), services)
      assert.strictEqual((yield* Fiber.join(early)).status, 404)
    })
  )
})
