import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Queue, Redacted, Ref, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { AgentApi } from "#schema/AgentApi.ts"
import { SessionId } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { AgentSockets, layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { layerOperatorServer } from "#src/choird/api/operator/OperatorServer.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { ConfigVersions } from "#src/choird/config/ConfigVersions.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { layerHostTools } from "#src/choird/hosttools/HostTools.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { agentView } from "../../support/agentView.ts"
import { describeStores } from "../../support/engines.ts"
import { database, images, platform, retention } from "../../support/operatorSocket.ts"
import { BINDINGS, modelOutput, newAgent, reply, stores, Talk, userMsg } from "../../support/stores.ts"

const ZEROS = "0".repeat(64)
const VERSION = "abc1234"

/** A lifecycle with one running agent, which remembers what it was told. */
const lifecycle = (view: AgentView, told: Array<string>) => {
  const tell = (what: string) => Effect.sync(() => void told.push(what))
  return Layer.mock(Lifecycle, {
    list: Effect.succeed([view]),
    view: () => Effect.succeed(view),
    hello: () => tell("hello"),
    heartbeat: () => tell("heard"),
    whileAnswering: (_, answer) => answer,
    terminating: (_, reason) => tell(reason),
    changes: Stream.never
  })
}

/** A running session over the real stores, with typed clients of both sockets. */
const run = Effect.gen(function* () {
  const told: Array<string> = []
  const base = yield* Layer.build(stores)
  const { home } = Context.get(base, ConfigStore)
  const agent_id = newAgent()
  const { epoch, session_id } = yield* Context.get(base, SessionStore).create(agent_id, BINDINGS, VERSION)
  const bootstrap = yield* Context.get(base, Tokens).bootstrap(session_id, agent_id, epoch)
  const view = agentView(agent_id, {
    session_id,
    epoch,
    bindings: BINDINGS,
    image_version: VERSION,
    manifests: { tool_manifest_hash: ZEROS, skill_manifest_hash: ZEROS },
    config_version: 0
  })
  const services = yield* Layer.build(
    Layer.mergeAll(layerAgentRoutes, layerOperatorServer("0.1.0")).pipe(
      Layer.provide(layerHostTools(Effect.succeed([]))),
      Layer.provideMerge([layerAgentListeners, Models.layer]),
      Layer.provideMerge([
        platform,
        retention({ unpruned: [] }),
        NodeFileSystem.layer,
        database({ away: false }),
        images(),
        lifecycle(view, told),
        Layer.mock(ConfigVersions, {}),
        Layer.mock(ConfigWriter, {}),
        Layer.mock(Reconfiguration, {}),
        Layer.succeedContext(base)
      ])
    )
  )
  const { path } = yield* Context.get(services, AgentSockets).open(session_id)
  const token = yield* Ref.make(Redacted.value(bootstrap))
  const agentHttp = Context.get(yield* Layer.build(layerSocketClient(path)), HttpClient.HttpClient)
  const agent = yield* HttpApiClient.make(AgentApi, {
    baseUrl: "http://choird",
    transformClient: HttpClient.mapRequestEffect((request) =>
      Effect.map(Ref.get(token), (bearer) => HttpClientRequest.bearerToken(request, bearer))
    )
  }).pipe(Effect.provideService(HttpClient.HttpClient, agentHttp))
  const operatorHttp = yield* Layer.build(layerSocketClient(join(home, "socks", "choird.sock")))
  const operator = yield* Effect.provideContext(
    HttpApiClient.make(OperatorApi, { baseUrl: "http://choird" }),
    operatorHttp
  )
  let requests = 0
  const envelope = () => ({ "x-choir-request-id": String((requests += 1)), "x-choir-session-id": session_id })
  return { agent, agent_id, envelope, operator, session_id, talk: new Talk(session_id, agent_id), token, told }
})

describeStores("a conversation over both sockets and the real stores", (it) => {
  it.effect("goes from the console to the agent and back, and ends settled and flushed", () =>
    Effect.gen(function* () {
      const { agent, agent_id, envelope, operator, session_id, talk, token, told } = yield* run
      const hello = yield* agent.rpc.INIT_HELLO({
        headers: envelope(),
        payload: {
          agent_id,
          session_id,
          image_version: VERSION,
          agent_version: "0.1.0",
          tool_manifest_hash: ZEROS,
          skill_manifest_hash: ZEROS
        }
      })
      assert.deepStrictEqual([hello.status, hello.epoch, hello.tail_events.length], ["fresh", 1, 0])
      yield* Ref.set(token, hello.lease_token)

      const seen = yield* Queue.bounded<ChatEvent>(64)
      const ready = yield* Deferred.make<void>()
      const chat = yield* operator.chat.stream({ params: { id: agent_id } })
      yield* Stream.runForEach(chat, ({ data }) =>
        Effect.andThen(Queue.offer(seen, data), Deferred.succeed(ready, undefined))
      ).pipe(Effect.forkScoped)
      yield* Deferred.await(ready)

      const sent = yield* operator.chat.send({
        params: { id: agent_id },
        payload: { client_id: agent_id, text: "hello" }
      })
      const signals = yield* agent.rpc.events({ headers: {}, query: { session_id } })
      const [signal] = yield* Stream.runCollect(Stream.take(signals, 1))
      assert.deepInclude(signal?.data, { type: "UserMessage", inbox_id: sent.inbox_id, text: "hello" })

      talk.commit(userMsg(sent.inbox_id), modelOutput("c-1"), reply(sent.inbox_id, "hi"))
      const early = yield* Effect.flip(
        agent.rpc.TERMINATE_SELF({
          headers: envelope(),
          payload: { reason: "stop", final_rev: talk.rev, final_hash: talk.hash(talk.rev) }
        })
      )
      assert.nestedInclude(early, { "error.type": "NOT_FLUSHED", "error.ack_rev": 0 })
      const beat = { headers: envelope(), payload: talk.heartbeat(0) }
      const stored = yield* agent.rpc.HEARTBEAT(beat)
      assert.deepInclude(stored, { action: "OK", ack_rev: 3 })
      assert.deepStrictEqual(yield* agent.rpc.HEARTBEAT(beat), stored)

      const events: Array<ChatEvent> = []
      while (events.at(-1)?.type !== "settled") events.push(yield* Queue.take(seen))
      const shown = events.filter(({ type }) => type === "message" || type === "settled")
      assert.deepInclude(shown[0], { type: "message", kind: "reply", text: "hi", in_reply_to: sent.inbox_id })
      assert.deepStrictEqual(shown.slice(1), [{ type: "settled", inbox_id: sent.inbox_id }])
      const outbox_ids = shown.flatMap((event) => (event.type === "message" ? [event.outbox_id] : []))
      assert.deepStrictEqual(yield* operator.chat.ack({ params: { id: agent_id }, payload: { outbox_ids } }), {
        acked: 1
      })

      assert.deepInclude(yield* operator.sessions.verify({ params: { id: session_id } }), { ok: true, events: 3 })
      const printed = yield* Effect.flatMap(
        operator.sessions.events({ params: { id: session_id }, query: {} }),
        Stream.runCollect
      )
      assert.deepStrictEqual(
        printed.map(({ hash }) => hash),
        [1, 2, 3].map((rev) => talk.hash(rev))
      )
      const done = { reason: "stop", final_rev: talk.rev, final_hash: talk.hash(talk.rev) }
      assert.deepStrictEqual(yield* agent.rpc.TERMINATE_SELF({ headers: envelope(), payload: done }), { ack: true })
      assert.deepStrictEqual([told[1], told.at(-1)], ["hello", "stop"])
    })
  )

  it.effect("refuses what belongs to nobody or somebody else, and stores nothing of it", () =>
    Effect.gen(function* () {
      const { agent, envelope, operator, session_id, talk, token } = yield* run
      const beat = () => agent.rpc.HEARTBEAT({ headers: envelope(), payload: talk.turn(1).heartbeat(0) })
      assert.nestedInclude(yield* Effect.flip(beat()), { "error.type": "AUTH" })
      yield* Ref.set(token, "x".repeat(43))
      assert.nestedInclude(yield* Effect.flip(beat()), { "error.type": "AUTH" })
      assert.strictEqual((yield* operator.sessions.verify({ params: { id: session_id } })).events, 0)
      const nowhere = SessionId.make("zzzzzzzzzzzzzzzz")
      assert.nestedInclude(yield* Effect.flip(operator.sessions.cores({ params: { id: nowhere } })), {
        "error.type": "UNKNOWN_SESSION"
      })
    })
  )
})
