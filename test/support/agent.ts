/**
 * An agent in one process for tests: the real arbiter, locks, lanes, budgets and replication, over a control plane and a model in
 * memory. The control plane checks what choird checks: revisions, chain and fold.
 */
import { Deferred, Effect, Layer, PubSub, Result, Schema, Stream } from "effect"
import type { HeartbeatReply } from "#schema/AgentApi.ts"
import { TestClock } from "effect/testing"
import { Config, type AgentConfig } from "#schema/Config.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import type { Signal } from "#schema/Signal.ts"
import { ToolName, toWireName } from "#schema/Tool.ts"
import { AgentSettings, type Settings } from "#src/agent/AgentSettings.ts"
import { Arbiter } from "#src/agent/Arbiter.ts"
import { Budget } from "#src/agent/Budget.ts"
import { ControlPlane, Denied } from "#src/agent/ControlPlane.ts"
import { EventLog } from "#src/agent/EventLog.ts"
import { ImageTexts } from "#src/agent/ImageTexts.ts"
import { type ChatMessage, type ChatTool } from "#src/agent/chatCompletion.ts"
import { type Completion, Llm } from "#src/agent/Llm.ts"
import { LockManager } from "#src/agent/LockManager.ts"
import { Mailbox } from "#src/agent/Mailbox.ts"
import { ModelCalls } from "#src/agent/ModelCalls.ts"
import { Replication } from "#src/agent/Replication.ts"
import { SecretStore } from "#src/agent/SecretStore.ts"
import { runSession } from "#src/agent/Session.ts"
import { ToolRegistry } from "#src/agent/ToolRegistry.ts"
import { ToolRunner } from "#src/agent/ToolRunner.ts"
import { type AnyTool } from "#src/agent/tools/ControlTool.ts"
import { coreCancel } from "#src/agent/tools/coreCancel.ts"
import { coreInject } from "#src/agent/tools/coreInject.ts"
import { coreList } from "#src/agent/tools/coreList.ts"
import { coreSpawn } from "#src/agent/tools/coreSpawn.ts"
import type { PreparedCall, Tool } from "#src/agent/tools/Tool.ts"
import { chain, genesis, hex } from "#src/shared/hashChain.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { SessionState } from "#src/shared/session/State.ts"

export const SESSION = SessionId.make("0123456789abcdef")

const decodeConfig = Schema.decodeUnknownSync(Config)

/** An agent's configuration with the defaults of config.json. */
export const agentConfig = (budgets: Partial<AgentConfig["budgets"]> = {}): AgentConfig => {
  const config = decodeConfig({
    global_repo: { url: "/global" },
    models: { small: { provider: "test", model: "small", endpoint: "http://127.0.0.1:1/v1" } }
  })
  return {
    llm: ResourceName.make("small"),
    core_llm: ResourceName.make("small"),
    models: config.models,
    budgets: { ...config.budgets, ...budgets },
    memory: config.memory,
    approvals: config.approvals,
    heartbeat_interval_ms: config.heartbeat_interval_ms,
    rate_limit_retry_ms: config.rate_limit_retry_ms
  }
}

/** What an agent of this epoch is told at INIT_HELLO. */
export const settingsOf = (epoch: number, config: AgentConfig = agentConfig()): Settings => {
  const name = ResourceName.make
  const resource_bindings = { workspace: name("ws"), llm: name("small"), core_llm: name("small"), dm: name("me") }
  return { session_id: SESSION, epoch, resource_bindings, config_version: 1, config }
}

/** choird as an agent sees it, in memory. It outlives agents, as choird does. */
export interface MemoryPlane {
  readonly events: ReadonlyArray<ChoirEvent>
  state(): SessionState
  push(signal: Signal): Effect.Effect<void>
  /** Sends a user's message and answers its inbox id. */
  say(text: string): Effect.Effect<InboxId>
  /** Waits until acknowledged events fit. */
  until(fits: (events: ReadonlyArray<ChoirEvent>, state: SessionState) => boolean): Effect.Effect<void>
  /** Takes no heartbeat while the effect runs. */
  away<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
  /** From here on nothing of the running agent arrives and it gets no answer, until the next one starts. */
  cutOff(): void
  /** Stores until a revision is reached, whose reply is lost already; waits for that. */
  cutOffAt(rev: number): Effect.Effect<void>
  readonly terminated: Deferred.Deferred<string>
  layer(epoch: number): Layer.Layer<ControlPlane>
}

export const makePlane = Effect.gen(function* () {
  const events: Array<ChoirEvent> = []
  const inbox: Array<Signal> = []
  const pushes = yield* PubSub.unbounded<Signal>()
  const looks = new Set<() => void>()
  const terminated = yield* Deferred.make<string>()
  let state = initialState
  let hash: Uint8Array = genesis(SESSION)
  let current = 0
  let present = true
  let deafFrom = Number.POSITIVE_INFINITY
  const isDeaf = () => events.length >= deafFrom
  let messages = 0

  const store = (patches: ReadonlyArray<ChoirEvent>) => {
    const folded = foldAll(state, patches)
    if (Result.isFailure(folded)) throw new Error(`refused: ${folded.failure.reason}`)
    for (const event of patches) hash = chain(hash, event).hash
    events.push(...patches)
    state = folded.success
    for (const look of looks) look()
  }
  const unanswered = () =>
    inbox.filter(
      (signal) =>
        signal.type !== "Stop" &&
        !("inbox_id" in signal && BigInt(signal.inbox_id) <= state.last_inbox_id) &&
        !("signal_id" in signal && state.signals.includes(signal.signal_id))
    )
  const plane: MemoryPlane = {
    events,
    state: () => state,
    terminated,
    cutOff: () => {
      deafFrom = 0
    },
    cutOffAt: (rev) =>
      Effect.suspend(() => {
        deafFrom = rev
        return plane.until(isDeaf)
      }),
    push: (signal) =>
      Effect.suspend(() => {
        inbox.push(signal)
        return Effect.asVoid(PubSub.publish(pushes, signal))
      }),
    say: (text) =>
      Effect.suspend(() => {
        const inbox_id = InboxId.make(String(++messages))
        const dm = ResourceName.make("me")
        return Effect.as(
          plane.push({ type: "UserMessage", inbox_id, dm, text, attachments: [], created_at: "" }),
          inbox_id
        )
      }),
    until: (fits) =>
      Effect.suspend(() => {
        if (fits(events, state)) return Effect.void
        const reached = Deferred.makeUnsafe<void>()
        const look = () => {
          if (fits(events, state)) Deferred.doneUnsafe(reached, Effect.void)
        }
        looks.add(look)
        return Effect.ensuring(
          Deferred.await(reached),
          Effect.sync(() => looks.delete(look))
        )
      }),
    away: (effect) =>
      Effect.suspend(() => {
        present = false
        return Effect.ensuring(
          effect,
          Effect.sync(() => {
            present = true
          })
        )
      }),
    layer: (epoch) => {
      current = epoch
      deafFrom = Number.POSITIVE_INFINITY
      return Layer.succeed(
        ControlPlane,
        ControlPlane.of({
          hello: () => Effect.die("the tests restore the log themselves"),
          secrets: () => Effect.succeed(new Map()),
          config: (config_version) => Effect.succeed({ config_version }),
          report: () => Effect.void,
          terminate: ({ final_rev, reason }) =>
            Effect.suspend(() => {
              if (isDeaf()) return Effect.never
              return final_rev === events.length
                ? Effect.asVoid(Deferred.succeed(terminated, reason))
                : Effect.fail(new Denied({ verb: "TERMINATE_SELF", type: "NOT_FLUSHED", reason: "" }))
            }),
          heartbeat: ({ base_rev, hash_new, patches }) =>
            Effect.suspend((): Effect.Effect<HeartbeatReply> => {
              if (isDeaf()) return Effect.never
              const reply = { ack_rev: events.length, config_version_latest: 1 }
              if (epoch !== current) return Effect.succeed({ ...reply, action: "FENCED" })
              if (!present) return Effect.succeed({ ...reply, action: "BACKOFF", retry_after_ms: 50 })
              if (base_rev !== events.length)
                return Effect.succeed({ ...reply, action: "RESEND_FROM", resend_from: events.length + 1 })
              store(patches)
              if (hex(hash) !== hash_new) throw new Error("the chain differs")
              return isDeaf() ? Effect.never : Effect.succeed({ ...reply, ack_rev: events.length, action: "OK" })
            }),
          signals: Stream.unwrap(
            Effect.map(PubSub.subscribe(pushes), (subscription) =>
              Stream.concat(Stream.fromIterable(unanswered()), Stream.fromSubscription(subscription)).pipe(
                Stream.map((signal) => ({ id: undefined, signal }))
              )
            )
          )
        })
      )
    }
  }
  return plane
})

/** What a scripted model sees and says. */
export type Script = (
  messages: ReadonlyArray<ChatMessage>,
  tools: ReadonlyArray<ChatTool>
) => Effect.Effect<Partial<Completion>>

/** A model's answer in text. */
export const says = (text: string): Partial<Completion> => ({ text })

/** A model's tool calls, by canonical names. */
export const calls = (...wanted: ReadonlyArray<readonly [name: string, input: Schema.Json]>): Partial<Completion> => ({
  tool_calls: wanted.map(([name, input]) => ({ name: toWireName(ToolName.make(name)), input })),
  finish_reason: "tool_calls"
})

const llmLayer = (script: Script) =>
  Layer.succeed(
    Llm,
    Llm.of({
      complete: (model, messages, tools) =>
        Effect.map(script(messages, tools), (said) => ({
          model,
          tool_calls: [],
          finish_reason: "stop",
          usage: { input_tokens: 10, output_tokens: 5 },
          latency_ms: 0,
          ...said
        }))
    })
  )

/** A tool of a test: what it does, how it counts, and what it locks. */
export const testTool = (
  name: string,
  run: PreparedCall["run"],
  options: Partial<Pick<Tool, "effect" | "readOnly" | "lanes"> & Pick<PreparedCall, "locks" | "timeout_ms">> = {}
): Tool => ({
  llm: { name: ToolName.make(name), description: name, input_schema: { type: "object" } },
  effect: options.effect ?? "workspace",
  lanes: options.lanes ?? "both",
  readOnly: options.readOnly ?? false,
  prepare: () => Effect.succeed({ locks: options.locks ?? [], timeout_ms: options.timeout_ms ?? 60_000, run })
})

const registryLayer = (tools: ReadonlyArray<Tool>) =>
  Layer.effect(
    ToolRegistry,
    Effect.gen(function* () {
      const arbiter = yield* Arbiter
      const settings = yield* AgentSettings
      const all: ReadonlyArray<AnyTool> = [
        coreSpawn(settings),
        coreInject,
        coreCancel,
        coreList(arbiter.state),
        ...tools
      ]
      const byName = new Map(all.map((tool) => [toWireName(tool.llm.name), tool]))
      return ToolRegistry.of({
        find: (lane, wire) => {
          const tool = byName.get(wire)
          return tool?.lanes === "edge" && lane !== "edge" ? undefined : tool
        },
        offered: () => [],
        names: () => [...byName.keys()]
      })
    })
  )

export interface AgentOptions {
  readonly plane: MemoryPlane
  readonly script: Script
  readonly tools?: ReadonlyArray<Tool>
  readonly epoch?: number
  readonly config?: AgentConfig
  /** Sees each commit of this life, before replication does. */
  readonly onCommit?: () => void
}

/** One life of an agent: it restores what the plane has and runs until it ends or is interrupted, which is its crash. */
export const runAgent = (options: AgentOptions) => {
  const { config = agentConfig(), epoch = 1, onCommit = () => undefined, plane, script, tools = [] } = options
  const settings = AgentSettings.layer(settingsOf(epoch, config))
  const log = Layer.effectDiscard(
    Effect.flatMap(EventLog, (log) => Effect.sync(() => log.restore([...plane.events])))
  ).pipe(Layer.provideMerge(EventLog.layer(SESSION)))
  const watched = Layer.effectDiscard(Effect.flatMap(Arbiter, (arbiter) => arbiter.onCommit(onCommit)))
  const base = watched.pipe(
    Layer.provideMerge(Arbiter.layer),
    Layer.provideMerge(
      Layer.mergeAll(log, settings, SecretStore.layer, LockManager.layer, Mailbox.layer, plane.layer(epoch))
    )
  )
  const guards = Layer.mergeAll(
    Replication.layer,
    Budget.layer,
    llmLayer(script),
    registryLayer(tools),
    Layer.succeed(ImageTexts, { user: "", soul: "", soulCore: "" })
  ).pipe(Layer.provideMerge(base))
  return Effect.provide(runSession, Layer.mergeAll(ToolRunner.layer, ModelCalls.layer).pipe(Layer.provideMerge(guards)))
}

/** Events of one type, in order. */
export const ofType = <T extends ChoirEvent["event_type"]>(events: ReadonlyArray<ChoirEvent>, type: T) =>
  events.filter((event): event is Extract<ChoirEvent, { event_type: T }> => event.event_type === type)

/** Whether every message has its reply and nothing runs or waits. */
export const quiet = (state: SessionState): boolean =>
  state.edge.state === "EDGE_IDLE" && state.cores.size === 0 && state.reports.length === 0

/** Time passes by itself wherever nothing else happens. */
export const ticking = Effect.forkScoped(Effect.forever(Effect.andThen(TestClock.adjust("25 millis"), Effect.yieldNow)))

/** Whether a prompt is a core job's. */
export const isCore = (messages: ReadonlyArray<ChatMessage>): boolean =>
  messages.some(({ content, role }) => role === "user" && content.includes("\nTask:\n"))
