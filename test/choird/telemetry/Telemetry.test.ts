import { get } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, PubSub, Redacted, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, InboxId, JobName, Rev } from "#schema/Ids.ts"
import { layerCollector, OTLP_REQUESTS_MAX } from "#src/choird/telemetry/Collector.ts"
import { makeLabels, TELEMETRY_NAMES_MAX } from "#src/choird/logs/metrics.ts"
import { layerPrometheus } from "#src/choird/telemetry/Prometheus.ts"
import { layerTelemetry } from "#src/choird/telemetry/Telemetry.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { collector, logsOf, type Manner, metricsOf, spansOf } from "../../support/collector.ts"
import { AGENT, DM, layerWorld, makeWorld, SESSION, type World } from "../../support/control.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { answered } from "../../support/operatorSocket.ts"

/** Stands in every text of the conversation, and in nothing that leaves the host. */
const CANARY = "canary-text"
const one = InboxId.make("1")
const usage = { input_tokens: 120, output_tokens: 30, cost_usd: 0.01 }
const call_id = CallId.make("c-1-2-0")
const locks = [{ resource: "workspace", mode: "X" as const }]

/** A call that choird's arbiter refused before its request. */
const refused_id = CallId.make("c-1-2-1")

const turn: ReadonlyArray<EventDraft> = [
  { event_type: "UserMsg", lane: EDGE, payload: { inbox_id: one, dm: DM, text: CANARY, attachments: [] } },
  {
    event_type: "ModelOutput",
    lane: EDGE,
    payload: {
      call_id: CallId.make("c-1-2"),
      purpose: "turn",
      model: "small",
      text: CANARY,
      tool_calls: [
        { call_id, name: "choir-exec", input: { command: CANARY } },
        { call_id: refused_id, name: "choir-fs-read", input: {} }
      ],
      finish_reason: "tool_calls",
      usage,
      latency_ms: 250
    }
  },
  {
    event_type: "ToolCallRequested",
    lane: EDGE,
    payload: { call_id, tool: "choir.exec", input: { command: CANARY }, effect: "workspace", locks }
  },
  { event_type: "ToolCallCommitted", lane: EDGE, payload: { call_id, locks } },
  {
    event_type: "ToolResultCommitted",
    lane: EDGE,
    payload: { call_id, status: "success", summary: CANARY, output: { text: CANARY }, duration_ms: 40 }
  },
  {
    event_type: "ToolResultCommitted",
    lane: EDGE,
    payload: { call_id: refused_id, status: "rejected", summary: CANARY, duration_ms: 0 }
  },
  {
    event_type: "SkillTransitionCommitted",
    lane: EDGE,
    payload: { skill: "review", from: "", to: "read", on: "start", step: 0, input: CANARY }
  },
  {
    event_type: "SkillTransitionCommitted",
    lane: EDGE,
    payload: { skill: "review", from: "read", to: "", on: "done", step: 2, ended: "completed", output: CANARY }
  },
  { event_type: "InjectedInstruction", lane: EDGE, payload: { target: EDGE, source: "user", content: CANARY } },
  {
    event_type: "InjectedInstruction",
    lane: EDGE,
    payload: { target: EDGE, source: "edge", content: CANARY, refused: CANARY }
  },
  { event_type: "Cancelled", lane: EDGE, payload: { target: EDGE, by: "user", reason: CANARY, turn: Rev.make(1) } },
  started("research"),
  stopped("research"),
  answered("reply", one, CANARY)
]

/** Events a second apart, as choird would store them. */
const events = turn.map((draft, index): ChoirEvent => ({
  v: 1,
  rev: index + 1,
  ...draft,
  created_at: new Date((index + 1) * 1000).toISOString()
}))

/** Has telemetry hear of the turn, in one append for each event. */
const tell = (world: World) =>
  Effect.forEach(
    events,
    (event) => {
      const busy = { ...initialState, edge: { ...initialState.edge, state: "EDGE_REASONING" as const } }
      const state = event.rev === events.length ? initialState : busy
      return PubSub.publish(world.appended, { session_id: SESSION, agent_id: AGENT, events: [event], state })
    },
    { discard: true }
  )

/** Telemetry over a world, with lines for a test to look at. Closing it sends what is left. */
const running = Effect.fnUntraced(function* <A, E>(world: World, exporters: Layer.Layer<A, E>) {
  const home = yield* temporaryFolder
  const scope = yield* Scope.fork(yield* Effect.scope)
  const lines: Array<Record<string, unknown>> = []
  const logger = Logger.make(({ fiber, message }) =>
    lines.push({ message: String(message), ...fiber.getRef(References.CurrentLogAnnotations) })
  )
  yield* Layer.build(
    layerTelemetry.pipe(Layer.provideMerge(exporters), Layer.provide([layerWorld(world, home), Logger.layer([logger])]))
  ).pipe(Scope.provide(scope))
  /** What telemetry writes last of the turn. */
  const told = Effect.repeat(Effect.yieldNow, {
    until: () => lines.some(({ message }) => message === `acknowledged to revision ${events.length}`)
  })
  return { lines, told, close: Scope.close(scope, Exit.void) }
})

const toCollector = (endpoint: string) =>
  layerCollector({ endpoint, interval_ms: 1000, secret: Redacted.make("the-key"), version: "0.1.0" })

describe("telemetry of a session", () => {
  it.live("tells of turns, lanes, models, tools, locks and jobs, each with session and lane, in the agent's log", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { lines, told } = yield* running(world, Layer.empty)
      yield* tell(world)
      yield* told
      const topics = lines.filter(({ topic }) => topic !== undefined)
      for (const line of topics) assert.include(line, { agent_id: AGENT, session_id: SESSION, log: "agent" })
      const research = coreLane(JobName.make("research"))
      assert.deepStrictEqual(
        topics
          .filter(({ topic }) => topic !== "heartbeat")
          .map(({ lane, message }) => `${String(lane)}: ${String(message)}`),
        [
          "edge: turn begins",
          "edge: lane none to EDGE_REASONING",
          "edge: model call: small ok",
          "edge: tool call requested: choir.exec",
          "edge: locks acquired: choir.exec",
          "edge: tool call ended: choir.exec success",
          "edge: tool call ended: choir.fs.read rejected",
          "edge: skill review: started",
          "edge: skill review: completed",
          "edge: instruction taken",
          "edge: instruction refused",
          "edge: cancelled by user: turn",
          `${research}: job begins`,
          `${research}: job ended: completed`,
          "edge: turn ended",
          "edge: lane EDGE_REASONING to EDGE_IDLE"
        ]
      )
      const of = (message: string) => topics.find((line) => line["message"] === message)
      assert.include(of("model call: small ok"), { input_tokens: 120, output_tokens: 30, latency_ms: 250, rev: 2 })
      assert.include(of("locks acquired: choir.exec"), { lock_wait_ms: 1000, locks: 1 })
      assert.include(of("tool call ended: choir.exec success"), { duration_ms: 40, locks_released: 1 })
      assert.notInclude(JSON.stringify(lines), CANARY)
    })
  )

  it.live("sends traces, logs and metrics to a collector, with session and lane, and without a text or the key", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const to = yield* collector()
      const { close, told } = yield* running(world, toCollector(to.endpoint))
      yield* tell(world)
      yield* told
      yield* close
      const spans = spansOf(to)
      assert.deepStrictEqual(
        spans.map(({ attributes, ms, name, ok }) => [name, attributes["lane"], ms, ok]),
        [
          ["model call", "edge", 250, true],
          ["tool call", "edge", 2000, true],
          ["tool call", "edge", 4000, false],
          ["job", "core:research", 1000, true],
          ["turn", "edge", 13000, true]
        ]
      )
      for (const { attributes } of spans) assert.include(attributes, { session_id: SESSION, agent_id: AGENT })
      assert.strictEqual(new Set(spans.map(({ trace }) => trace)).size, 1)
      const record = logsOf(to).find(({ message }) => message === "model call: small ok")
      assert.include(record?.attributes, { session_id: SESSION, lane: "edge", model: "small", input_tokens: 120 })
      assert.include(metricsOf(to), "choir_model_calls_total")
      assert.isTrue(to.sent.every(({ authorization }) => authorization === "Bearer the-key"))
      const all = to.sent.map(({ text }) => text).join("")
      assert.notInclude(all, CANARY)
      assert.notInclude(all, "the-key")
      const metrics = to.sent.filter(({ path }) => path === "/v1/metrics").map(({ text }) => text)
      assert.notInclude(metrics.join(""), SESSION)
    })
  )

  const bad: ReadonlyArray<readonly [name: string, manner: Manner]> = [
    ["silent", "silent"],
    ["full of errors", { status: 500 }],
    ["asking to wait for a year", { status: 429, headers: { "retry-after": "31536000" } }],
    ["redirecting", { status: 302, headers: { location: "http://127.0.0.1:1/" } }]
  ]
  for (const [name, manner] of bad)
    it.effect(`is not held up by a collector that is ${name}: what it misses is dropped`, () =>
      Effect.gen(function* () {
        const world = yield* makeWorld
        const to = yield* collector(() => manner)
        const { close, lines, told } = yield* running(world, toCollector(to.endpoint))
        yield* tell(world)
        yield* told
        yield* TestClock.adjust("1 second")
        yield* Effect.repeat(Effect.sync(to.asked), { until: (count) => count > 0 })
        yield* TestClock.adjust("1 minute")
        assert.isAtMost(to.asked(), 2 * OTLP_REQUESTS_MAX)
        yield* Effect.repeat(Effect.yieldNow, {
          until: () => lines.some(({ message }) => String(message).startsWith("the telemetry collector"))
        })
        yield* Effect.raceFirst(close, TestClock.adjust("10 seconds").pipe(Effect.andThen(Effect.never)))
      })
    )
})

const page = (port: number, headers: Record<string, string> = {}, path = "/metrics") =>
  Effect.callback<{ readonly status: number; readonly text: string }, Error>((resume) => {
    get({ host: "127.0.0.1", port, path, headers, agent: false }, (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (part: string) => (text += part))
      response.on("end", () => resume(Effect.succeed({ status: response.statusCode ?? 0, text })))
    }).once("error", (error) => resume(Effect.fail(error)))
  })

describe("the page for Prometheus", () => {
  const PORT = 20_000 + (process.pid % 20_000)
  const TOKEN = Redacted.make("token")
  const authorization = "Bearer token"

  it.live("has a line for each series, labelled with agents, models, tools and outcomes and nothing else", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { told } = yield* running(world, layerPrometheus(`127.0.0.1:${PORT}`, TOKEN))
      yield* tell(world)
      yield* told
      const { status, text } = yield* page(PORT, { authorization })
      assert.strictEqual(status, 200)
      const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))
      for (const line of lines) assert.match(line, /^[a-zA-Z_:][\w:]*(?:\{(?:\w+="[^"]*",?)*\})? [-+.\deInfNa]+$/u)
      const labels = new Set(lines.flatMap((line) => [...line.matchAll(/(\w+)="/gu)].map(([, name]) => name)))
      const names = "agent model lane status outcome direction tool type state kind action le skill source by what"
      const allowed = new Set(names.split(" "))
      assert.deepStrictEqual(
        [...labels].filter((label) => !allowed.has(label ?? "")),
        []
      )
      assert.match(text, /choir_tool_calls_total\{[^}]*tool="choir\.exec"[^}]*\} \d/u)
      assert.match(text, /choir_skill_transitions_total\{[^}]*skill="review"[^}]*status="completed"[^}]*\} \d/u)
      assert.match(text, /choir_injections_total\{[^}]*status="refused"[^}]*\} \d/u)
      assert.match(text, /choir_cancels_total\{[^}]*what="turn"[^}]*\} \d/u)
      assert.notInclude(text, SESSION)
      assert.notInclude(text, CANARY)
    })
  )

  it.live("answers nobody under another name, no page of a browser, and nothing but GET /metrics", () =>
    Effect.gen(function* () {
      yield* Layer.build(layerPrometheus(`127.0.0.1:${PORT}`, TOKEN))
      assert.strictEqual((yield* page(PORT, { authorization, host: "evil.example" })).status, 403)
      assert.strictEqual((yield* page(PORT, { authorization, origin: "http://127.0.0.1" })).status, 403)
      assert.strictEqual((yield* page(PORT, { authorization }, "/")).status, 404)
      // A second one finds the port taken, and goes on without a page.
      yield* Layer.build(layerPrometheus(`127.0.0.1:${PORT}`, TOKEN)).pipe(Effect.provide(Logger.layer([])))
    })
  )
})

describe("labels", () => {
  it("are bounded, whatever an agent calls its models and tools", () => {
    const label = makeLabels()
    for (let index = 0; index < TELEMETRY_NAMES_MAX; index += 1) assert.strictEqual(label(`t${index}`), `t${index}`)
    assert.strictEqual(label("one more"), "other")
    assert.strictEqual(label("onemore"), "other")
    assert.strictEqual(label("t0"), "t0")
    assert.strictEqual(makeLabels()('a"b'), "other")
  })
})
