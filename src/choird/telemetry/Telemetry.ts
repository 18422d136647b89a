/**
 * The telemetry of agents, from acknowledged events and the agents' views: lines in the agent's log, metrics, and spans. It only
 * listens, so that nothing it does or fails to do affects a session.
 */
import { Cause, Context, Effect, Exit, Layer, Option, Stream, Tracer } from "effect"
import { type AgentId, jobOf, type SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { Appended } from "#src/choird/sessions/Appends.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { type Fact, factsOf, type Interval, laneFacts, newWatch, type Watch } from "./facts.ts"
import { AGENT_LINE, configurationRuns, count, makeLabels } from "#src/choird/logs/metrics.ts"
import { SESSION_STATES_MAX } from "#src/choird/sessions/snapshots.ts"

/** The tracer of sessions; absent unless config.json names a collector. */
export const SessionTracer = Context.Reference<Tracer.Tracer | undefined>("choir/choird/SessionTracer", {
  defaultValue: () => undefined
})

interface Origin {
  readonly agent_id: AgentId
  readonly session_id: SessionId
}

const nanos = (ms: number) => BigInt(Math.round(ms)) * 1_000_000n

/** All spans of a session are one trace, whose id follows from the session's. */
const traceOf = (session_id: SessionId) => {
  const digest = sha256(`choir/trace ${session_id}`)
  return Tracer.externalSpan({ traceId: digest.slice(0, 32), spanId: digest.slice(32, 48) })
}

/** Exports a span that has already ended. */
const trace = (tracer: Tracer.Tracer | undefined, { agent_id, session_id }: Origin, interval: Interval) =>
  Effect.sync(() => {
    const { end_ms, fields, lane, name, ok, start_ms } = interval
    const span = tracer?.span({
      name,
      parent: Option.some(traceOf(session_id)),
      annotations: Context.empty(),
      links: [],
      startTime: nanos(start_ms),
      kind: "internal",
      root: false,
      sampled: true
    })
    for (const [key, value] of Object.entries({ agent_id, session_id, lane, ...fields })) span?.attribute(key, value)
    span?.end(nanos(Math.max(start_ms, end_ms)), ok ? Exit.void : Exit.failCause(Cause.fail(name)))
  })

/** Logs a session's telemetry to its agent's log, with searchable fields. */
const line = ({ agent_id, session_id }: Origin, { fields, kind, lane, message }: Fact) =>
  Effect.logInfo(message).pipe(
    Effect.annotateLogs({ ...fields, ...AGENT_LINE, topic: kind, agent_id, session_id, lane })
  )

/** Counts facts. Only so many names of models, skills and tools are distinguished. */
const makeFactCounts = () => {
  const models = makeLabels()
  const skills = makeLabels()
  const tools = makeLabels()
  return Effect.fnUntraced(function* (agent: AgentId, { fields, kind, lane }: Fact) {
    const lane_kind = jobOf(lane) === undefined ? "edge" : "core"
    const text = (name: string) => String(fields[name] ?? "")
    if (kind === "lane") return yield* count("lanes", { agent, lane: lane_kind, state: text("to") })
    if (kind === "model") {
      const model = models(text("model"))
      yield* count("model_calls", { agent, model, lane: lane_kind, status: text("status") })
      yield* count("model_tokens", { agent, model, direction: "input" }, Number(fields["input_tokens"]))
      yield* count("model_tokens", { agent, model, direction: "output" }, Number(fields["output_tokens"]))
      return yield* count("model_latency", { model }, Number(fields["latency_ms"]))
    }
    if (kind === "skill") return yield* count("skills", { agent, skill: skills(text("skill")), status: text("status") })
    if (kind === "inject") return yield* count("injections", { agent, source: text("source"), status: text("status") })
    if (kind === "cancel") return yield* count("cancels", { agent, by: text("by"), what: text("what") })
    if (kind !== "tool") return
    const tool = tools(text("tool"))
    if (fields["lock_wait_ms"] !== undefined) yield* count("lock_wait", { agent }, Number(fields["lock_wait_ms"]))
    if (fields["status"] === undefined) return
    yield* count("tool_calls", { agent, tool, status: text("status") })
    yield* count("tool_duration", { tool }, Number(fields["duration_ms"]))
  })
}

/** A failure is logged and skipped: the next event may be exported again. */
const spared = <E>(work: Effect.Effect<void, E>) =>
  Effect.catchCause(work, (cause) => Effect.logWarning("telemetry dropped events", cause))
const listen = <A, E>(stream: Stream.Stream<A>, tell: (value: A) => Effect.Effect<void, E>) =>
  Stream.runForEach(stream, (value) => spared(tell(value))).pipe(
    restarted("telemetry"),
    Effect.forkScoped({ startImmediately: true })
  )

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const store = yield* ConfigStore
  const tracer = yield* SessionTracer
  const counted = makeFactCounts()
  const watches = new BoundedMap<SessionId, Watch>(SESSION_STATES_MAX)

  const watchOf = ({ events, session_id }: Appended) => {
    const found = watches.get(session_id)
    if (found !== undefined) return found
    const watch = newWatch((events[0]?.rev ?? 1) - 1)
    watches.set(session_id, watch)
    return watch
  }

  const appended = Effect.fnUntraced(function* (append: Appended) {
    const { agent_id, events, state } = append
    const watch = watchOf(append)
    const first = events[0]?.rev ?? watch.rev + 1
    if (first > watch.rev + 1) yield* count("missed", { agent: agent_id }, first - watch.rev - 1)
    const facts = events.flatMap((event) => factsOf(watch, event))
    watch.rev = events.at(-1)?.rev ?? watch.rev
    for (const { event_type } of events) yield* count("events", { agent: agent_id, type: event_type })
    for (const fact of [...facts, ...laneFacts(watch, state)]) {
      yield* counted(agent_id, fact)
      yield* line(append, fact)
      if (fact.interval !== undefined) yield* trace(tracer, append, fact.interval)
    }
    yield* Effect.logInfo(`acknowledged to revision ${watch.rev}`).pipe(
      Effect.annotateLogs({
        ...AGENT_LINE,
        topic: "heartbeat",
        agent_id,
        session_id: append.session_id,
        lane: events.at(-1)?.lane ?? "edge",
        events: events.length
      })
    )
  })

  const statuses = new Map<AgentId, AgentView["status"]>()
  const changed = Effect.fnUntraced(function* ({ agent_id, epoch, status }: AgentView) {
    if (statuses.get(agent_id) === status) return
    statuses.set(agent_id, status)
    yield* count("agent_status", { agent: agent_id, status })
    if (status === "running") yield* count("epochs", { agent: agent_id, kind: epoch > 1 ? "restart" : "first" })
  })

  yield* listen(events.appended, appended)
  yield* listen(lifecycle.changes, changed)
  let version = 0
  yield* listen(store.changes, (running) => {
    // Secrets may change without the number, and each number is reported once.
    if (running.version === version) return Effect.void
    version = running.version
    return configurationRuns(version)
  })
})

/** Listens until its scope closes. */
export const layerTelemetry = Layer.effectDiscard(make)
