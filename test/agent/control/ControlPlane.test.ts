import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, PubSub, Queue, Redacted, Schema, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse, HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import type { Heartbeat } from "#schema/AgentApi.ts"
import { CallId, JobName, SignalId } from "#schema/Ids.ts"
import { ToolName } from "#schema/Tool.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { RPC_RETRY_AFTER_MS_MAX, RPC_RETRY_MS, RPC_TIMEOUT_MS, Unreachable } from "#src/agent/control/verbAnswer.ts"
import { type HostOutcome, makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { layerEndpointClient } from "#src/shared/wire/endpoints.ts"
import { type HttpApp, listen } from "#src/shared/wire/http.ts"
import type { CoreLane } from "#src/shared/session/State.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { listenTcp } from "#src/choird/listeners/tcp.ts"
import { BODIES, openSessionWith } from "../../support/agentSocket.ts"
import { SESSION } from "../../support/control.ts"
import { temporaryFolder } from "../../support/engines.ts"
import {
  AGENT_CALLS_MAX,
  HOST_CALLS_MAX,
  SLOW_HOST_CALLS_MAX,
  TOOLS_IN_FLIGHT_MAX
} from "#src/agent/control/choirdConnections.ts"
import { AGENT_CONNECTIONS_MAX } from "#src/choird/listeners/OpenSession.ts"

const WORK = JobName.make("work")
const signal_id = SignalId.make("1")
const beat = BODIES.HEARTBEAT as unknown as Heartbeat
const SLOW_MS = RPC_TIMEOUT_MS + 15_000

/** The agent's real client on the real socket of a session whose host tools are these; slow ones end when they are let go. */
const connect = Effect.gen(function* () {
  const gate = yield* Deferred.make<void>()
  const entered = yield* Queue.bounded<string>(100)
  const seen: Array<unknown> = []
  const input = Schema.Struct({ id: Schema.String })
  const done = (id: string): HostOutcome => ({ status: "success", output: { id } })
  const slow = makeHostTool({
    name: "slow.read",
    effect: "none",
    timeout_ms: SLOW_MS,
    input,
    run: ({ id }) => Effect.andThen(Queue.offer(entered, id), Effect.as(Deferred.await(gate), done(id)))
  })
  const quick = makeHostTool({
    name: "quick.read",
    effect: "none",
    timeout_ms: 1000,
    input,
    run: ({ id }, caller) => {
      seen.push(caller.job_id)
      return Effect.succeed(done(id))
    }
  })
  const session = yield* openSessionWith([slow, quick])
  const client = yield* Layer.build(layerSocketClient(session.socket.path))
  const planeOver = (http: HttpClient.HttpClient) =>
    Effect.provide(ControlPlane, ControlPlane.layer(SESSION, Redacted.make("lease"))).pipe(
      Effect.provideService(HttpClient.HttpClient, http)
    )
  const http = Context.get(client, HttpClient.HttpClient)
  const plane = yield* planeOver(http)
  const call = (name: "slow.read" | "quick.read", id: string) => ({
    tool_name: ToolName.make(name),
    call_id: CallId.make(`c-${id}`),
    input: { id },
    timeout_ms: name === "slow.read" ? SLOW_MS : 1000
  })
  return { ...session, call, entered, http, letGo: Deferred.succeed(gate, undefined), plane, planeOver, seen }
})

const fork = Effect.forkChild({ startImmediately: true })

describe("EXECUTE_HOST_TOOL from an agent", () => {
  it("leaves connections for the push stream, a heartbeat and a quick call, and choird's limit as it is (R47, R62)", () => {
    assert.strictEqual(AGENT_CONNECTIONS_MAX, 8)
    assert.isAtMost(AGENT_CALLS_MAX + 2, AGENT_CONNECTIONS_MAX)
    assert.isBelow(SLOW_HOST_CALLS_MAX, AGENT_CALLS_MAX)
  })

  it.effect(`keeps heartbeats, signals and quick calls going while ${TOOLS_IN_FLIGHT_MAX} slow ones wait (R62)`, () =>
    Effect.gen(function* () {
      const { call, entered, letGo, plane, world } = yield* connect
      const signals = yield* Queue.bounded<string | undefined>(10)
      yield* Effect.forkScoped(Stream.runForEach(plane.signals, ({ id }) => Queue.offer(signals, id)))
      const ids = Array.from({ length: TOOLS_IN_FLIGHT_MAX }, (_, index) => String(index))
      const ended: Array<string> = []
      const slow = yield* Effect.forEach(ids, (id) =>
        fork(Effect.tap(plane.execute(call("slow.read", id)), () => Effect.sync(() => ended.push(id))))
      )
      for (let count = 0; count < SLOW_HOST_CALLS_MAX; count++) yield* Queue.take(entered)
      for (let count = 1; count <= 10; count++) {
        const id = String(count)
        assert.strictEqual((yield* plane.heartbeat(beat)).action, "OK")
        assert.deepStrictEqual((yield* plane.execute(call("quick.read", `quick-${id}`))).output, { id: `quick-${id}` })
        yield* PubSub.publish(world.pushes, { id, signal: { type: "CancelCore", signal_id, job_name: WORK } })
        assert.strictEqual(yield* Queue.take(signals), id)
      }
      assert.deepStrictEqual(ended, [])
      assert.strictEqual(yield* Queue.size(entered), 0)
      yield* letGo
      for (const each of slow) assert.strictEqual((yield* Fiber.join(each)).status, "success")
      assert.sameMembers(ended, ids)
    })
  )

  it.effect("frees its connection when it is interrupted, and the next in order takes it", () =>
    Effect.gen(function* () {
      const { call, entered, letGo, plane } = yield* connect
      const ids = Array.from({ length: SLOW_HOST_CALLS_MAX + 2 }, (_, index) => String(index))
      const slow = yield* Effect.forEach(ids, (id) => fork(plane.execute(call("slow.read", id))))
      const first: Array<string> = []
      for (let count = 0; count < SLOW_HOST_CALLS_MAX; count++) first.push(yield* Queue.take(entered))
      assert.sameMembers(first, ids.slice(0, SLOW_HOST_CALLS_MAX))
      yield* Effect.forEach(slow.slice(0, 2), Fiber.interrupt)
      assert.sameMembers([yield* Queue.take(entered), yield* Queue.take(entered)], ids.slice(SLOW_HOST_CALLS_MAX))
      yield* letGo
      for (const each of slow.slice(2)) assert.strictEqual((yield* Fiber.join(each)).status, "success")
    })
  )

  it.effect("gives up at its own time, whatever it waits for", () =>
    Effect.gen(function* () {
      const { call, entered, plane } = yield* connect
      const ids = Array.from({ length: SLOW_HOST_CALLS_MAX + 1 }, (_, index) => String(index))
      const slow = yield* Effect.forEach(ids, (id) => fork(Effect.flip(plane.execute(call("slow.read", id)))))
      for (let count = 0; count < SLOW_HOST_CALLS_MAX; count++) yield* Queue.take(entered)
      // choird's own timeouts stand at the same time, so that either may answer first; the waiting one has only its own.
      yield* TestClock.adjust(SLOW_MS)
      const waited = yield* Fiber.join(slow.at(-1)!)
      assert.strictEqual(
        waited.message,
        `choird did not answer EXECUTE_HOST_TOOL: there was no answer within ${SLOW_MS} ms`
      )
    })
  )

  it.effect(`waits for at most ${HOST_CALLS_MAX} at once`, () =>
    Effect.gen(function* () {
      const { call, letGo, plane } = yield* connect
      const all = yield* Effect.forEach(Array.from({ length: HOST_CALLS_MAX }), (_, index) =>
        fork(plane.execute(call("slow.read", String(index))))
      )
      const refused = yield* Effect.flip(plane.execute(call("quick.read", "more")))
      assert.include(refused.message, `already waiting for ${HOST_CALLS_MAX} host tool calls`)
      yield* letGo
      for (const each of all) yield* Fiber.join(each)
      assert.strictEqual((yield* plane.execute(call("quick.read", "more"))).status, "success")
    })
  )

  it.effect("asks again with the same request id when the answer is lost, and it runs once (R28)", () =>
    Effect.gen(function* () {
      const { call, http, planeOver, seen } = yield* connect
      const ids: Array<string | undefined> = []
      const lost = yield* Deferred.make<void>()
      // The first answer is lost on its way.
      const lossy = HttpClient.transformResponse(http, (answer) =>
        Effect.flatMap(answer, (response) => {
          ids.push(response.request.headers["x-choir-request-id"])
          return ids.length === 1
            ? Effect.andThen(
                Deferred.succeed(lost, undefined),
                Effect.fail(
                  new HttpClientError.HttpClientError({
                    reason: new HttpClientError.TransportError({ request: response.request })
                  })
                )
              )
            : Effect.succeed(response)
        })
      )
      const plane = yield* planeOver(lossy)
      const reply = yield* fork(plane.execute(call("quick.read", "1")))
      yield* Deferred.await(lost)
      yield* TestClock.adjust(RPC_RETRY_MS)
      assert.strictEqual((yield* Fiber.join(reply)).status, "success")
      assert.deepStrictEqual([ids.length, new Set(ids).size, seen.length], [2, 1, 1])
    })
  )

  it.effect("carries a job's proof, and is refused when the job does not run (R21, D35)", () =>
    Effect.gen(function* () {
      const { call, plane, seen, world } = yield* connect
      const job_id = CallId.make("c-7-0")
      assert.strictEqual((yield* Effect.flip(plane.execute(call("quick.read", "1"), job_id)))._tag, "Denied")
      world.state = {
        ...world.state,
        cores: new Map([[WORK, { job_id, calls: [] } as unknown as CoreLane]])
      }
      yield* plane.execute(call("quick.read", "2"), job_id)
      yield* plane.execute(call("quick.read", "3"))
      assert.deepStrictEqual(seen, [job_id, undefined])
      const calls = [{ call_id: call("quick.read", "4").call_id }]
      world.state = { ...world.state, cores: new Map([[WORK, { job_id, calls } as unknown as CoreLane]]) }
      assert.strictEqual((yield* Effect.flip(plane.execute(call("quick.read", "4"))))._tag, "Denied")
      yield* plane.execute(call("quick.read", "4"), job_id)
      assert.deepStrictEqual(seen, [job_id, undefined, job_id])
    })
  )

  it.effect("is denied what choird does not run, and not asked again", () =>
    Effect.gen(function* () {
      const { call, plane, world } = yield* connect
      const unknown = { ...call("quick.read", "1"), tool_name: ToolName.make("choir.web.browse") }
      assert.deepInclude(yield* Effect.flip(plane.execute(unknown)), { _tag: "Denied", type: "NOT_AVAILABLE" })
      const unfit = { ...call("quick.read", "1"), input: { id: 1 } }
      assert.deepInclude(yield* Effect.flip(plane.execute(unfit)), { _tag: "Denied", type: "BAD_REQUEST" })
      assert.deepStrictEqual(
        world.audit.map(({ action, detail }) => [action, (detail as { refused: string }).refused]),
        [
          ["rpc.EXECUTE_HOST_TOOL", "NOT_AVAILABLE"],
          ["rpc.EXECUTE_HOST_TOOL", "BAD_REQUEST"]
        ]
      )
    })
  )
})

describe("a choird that wants to be left alone, or says nothing", () => {
  it.effect("is asked again after the time that its 429 names, and not before (R47)", () =>
    Effect.gen(function* () {
      const { http, planeOver } = yield* connect
      const asked = yield* Queue.bounded<number>(10)
      let count = 0
      const refusal = { error: { type: "RATE_LIMITED", message: "wait", retry_after_ms: 5000 } }
      const busyAtFirst = HttpClient.make((request) =>
        Effect.suspend(() => {
          count += 1
          const answer = Response.json(refusal, { status: 429, headers: { "retry-after": "5" } })
          const limited = Effect.succeed(HttpClientResponse.fromWeb(request, answer))
          return Effect.andThen(Queue.offer(asked, count), count === 1 ? limited : http.execute(request))
        })
      )
      const plane = yield* planeOver(busyAtFirst)
      const reply = yield* fork(plane.config(1))
      assert.strictEqual(yield* Queue.take(asked), 1)
      yield* TestClock.adjust(5000 - 1)
      assert.strictEqual(yield* Queue.size(asked), 0)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(reply)).config_version, 1)
      assert.strictEqual(count, 2)
    })
  )

  it.effect("is asked again for answers that got lost before it takes the silence for a crash (R7)", () =>
    Effect.gen(function* () {
      const { http, planeOver } = yield* connect
      const THRESHOLD_MS = 10_000
      const asked = yield* Queue.bounded<string>(10)
      const seen = new Set<string>()
      // The first answer to each verb never arrives, and nobody is told.
      const silent = HttpClient.make((request) =>
        Effect.suspend(() => {
          const verb = new URL(request.url).pathname.split("/").at(-1) ?? ""
          const isLost = !seen.has(verb)
          seen.add(verb)
          return Effect.andThen(Queue.offer(asked, verb), isLost ? Effect.never : http.execute(request))
        })
      )
      const plane = yield* planeOver(silent)
      for (const [verb, call] of [
        ["FETCH_DYNAMIC_CONFIG", Effect.asVoid(plane.config(1))],
        ["GET_SECRETS", Effect.asVoid(plane.secrets([]))]
      ] as const) {
        const reply = yield* fork(Effect.result(call))
        assert.strictEqual(yield* Queue.take(asked), verb)
        yield* TestClock.adjust(THRESHOLD_MS / 2)
        assert.strictEqual(yield* Queue.take(asked), verb)
        yield* Fiber.join(reply)
      }
    })
  )

  it.effect("is waited for no longer because it often asked to be asked again (R7)", () =>
    Effect.gen(function* () {
      const { http, planeOver } = yield* connect
      const asked = yield* Queue.bounded<number>(20)
      const REFUSED = 6
      let count = 0
      const refusal = { error: { type: "INTERNAL", message: "the database is away" } }
      // It answers that it cannot, several times and at once; then one answer is lost.
      const away = HttpClient.make((request) =>
        Effect.suspend(() => {
          count += 1
          const answer = HttpClientResponse.fromWeb(request, Response.json(refusal, { status: 500 }))
          const lost = count === REFUSED + 1 ? Effect.never : http.execute(request)
          return Effect.andThen(Queue.offer(asked, count), count <= REFUSED ? Effect.succeed(answer) : lost)
        })
      )
      const plane = yield* planeOver(away)
      const reply = yield* fork(plane.config(1))
      for (let attempt = 1; attempt <= REFUSED; attempt++) {
        assert.strictEqual(yield* Queue.take(asked), attempt)
        yield* TestClock.adjust(RPC_RETRY_MS)
      }
      assert.strictEqual(yield* Queue.take(asked), REFUSED + 1)
      yield* TestClock.adjust(5000)
      assert.strictEqual(yield* Queue.take(asked), REFUSED + 2)
      assert.strictEqual((yield* Fiber.join(reply)).config_version, 1)
    })
  )

  it("makes nobody wait for longer than a minute", () => {
    const wait = (retry_after_ms: number) => new Unreachable({ verb: "x", reason: "y", retry_after_ms }).wait_ms
    assert.deepStrictEqual([0, 1000, 1e9].map(wait), [RPC_RETRY_MS, 1000, RPC_RETRY_AFTER_MS_MAX])
  })

  const IDLE_MS = 100
  const comment = Stream.concat(Stream.make(": choir\n\n"), Stream.never).pipe(Stream.encodeText)

  for (const transport of ["a socket", "TCP"])
    it.live(`has its push stream opened again when that brings not even a comment (${transport})`, () =>
      Effect.gen(function* () {
        const opened = yield* Queue.bounded<string>(10)
        const app: HttpApp = Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          yield* Queue.offer(opened, request.url)
          return HttpServerResponse.stream(comment, { contentType: "text/event-stream" })
        })
        const path = join(yield* temporaryFolder, "s", "choird.sock")
        const limits = { connectionsMax: 8 }
        const overTcp = Effect.map(listenTcp(app, { host: "127.0.0.1", port: 0, ...limits }), (port) =>
          layerEndpointClient({ url: `http://127.0.0.1:${port}`, idle_ms: IDLE_MS })
        )
        const bySocket = Effect.as(listen(app, { path, ...limits }), layerSocketClient(path, IDLE_MS))
        const client = yield* transport === "TCP"
          ? Layer.build(Layer.unwrap(overTcp))
          : Layer.build(Layer.unwrap(bySocket))
        const plane = yield* ControlPlane.pipe(
          Effect.provide(ControlPlane.layer(SESSION, Redacted.make("lease"))),
          Effect.provideContext(client)
        )
        yield* Effect.forkScoped(Stream.runDrain(plane.signals))
        for (let count = 0; count < 3; count += 1)
          assert.strictEqual(yield* Queue.take(opened), `/events?session_id=${SESSION}`)
      })
    )
})
