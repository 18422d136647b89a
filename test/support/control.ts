/** In-memory doubles of choird's stores and lifecycle, for tests of its APIs: one world, one agent, one session. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Option, PubSub, Redacted, Result, Stream } from "effect"
import type { Caller, Snapshot } from "#schema/AgentApi.ts"
import type { PrintedEvent } from "#schema/SessionsApi.ts"
import type { StartAgent } from "#schema/AgentsApi.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { AgentId, ApprovalId, InboxId, ResourceName, SecretName, SessionId, SignalId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { refused } from "#src/choird/approvals/ApprovalRefused.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { AgentRefused } from "#src/choird/agents/AgentRefused.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore, SecretMissing } from "#src/choird/config/ConfigStore.ts"
import type { Incoming } from "#src/choird/queues/Incoming.ts"
import type { Outgoing } from "#src/choird/queues/Outbox.ts"
import type { AuditEntry } from "#src/choird/logs/Audit.ts"
import type { HostTool } from "#src/choird/hosttools/HostTool.ts"
import { HostTools } from "#src/choird/hosttools/HostTools.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { Appended } from "#src/choird/sessions/Appends.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { wordsOf } from "#src/choird/sessions/jobSummaries.ts"
import { SessionUnknown } from "#src/choird/sessions/readLog.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { type Asked, type Pushed, Signals } from "#src/choird/queues/Signals.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { fold, initialState } from "#src/shared/session/fold.ts"
import { agentView } from "./agentView.ts"
import { controlConfig as config } from "./controlConfig.ts"
import { memoryQueues } from "./memoryQueues.ts"
import { reconfiguration } from "./reconfiguration.ts"
import { memoryAudit } from "./audited.ts"
import { memoryModels } from "./memoryModels.ts"
import { stored } from "./awayDatabase.ts"
import { SALT } from "./stores.ts"
import { memoryCallResults } from "./callResults.ts"

export const AGENT = AgentId.make("ada")
export const SESSION = SessionId.make("0123456789abcdef")
export const OTHER_SESSION = SessionId.make("fedcba9876543210")
export const DM = ResourceName.make("terminal")
const BOUND = SecretName.make("model-key")

const name = ResourceName.make
const bindings: ResourceBindings = {
  workspace: name("desk"),
  llm: name("small"),
  core_llm: name("small"),
  dm: DM
}

const view = agentView(AGENT, {
  session_id: SESSION,
  bindings,
  image_version: "abc1234",
  manifests: { tool_manifest_hash: "0".repeat(64), skill_manifest_hash: "0".repeat(64) }
})

const row: SessionRow = {
  session_id: SESSION,
  agent_id: AGENT,
  status: "active",
  started_at: "2025-01-01T00:00:00.000Z",
  ended_at: null,
  resource_bindings: bindings,
  epoch: 1,
  last_rev: 0,
  log_bytes: 0,
  frozen_reason: null,
  image_version: "abc1234",
  container: null
}

const caller = (standing: Caller["standing"], session_id = SESSION): Caller => ({
  session_id,
  agent_id: AGENT,
  epoch: standing === "superseded" ? 0 : 1,
  standing
})

/** The state of everything, for a test to look at and to change. `effects` names each change that a service was asked for. */
export interface World {
  view: AgentView
  row: SessionRow
  /** What the newest start was asked for. */
  asked: StartAgent | undefined
  /** The agent's newest session, where it is another than `row`. */
  latest: SessionRow | undefined
  events: Array<PrintedEvent>
  state: typeof initialState
  /** What a new epoch is told to go on from. */
  snapshot: Snapshot | undefined
  inboxFull: boolean
  /** So much was asked of the session already. */
  full: boolean
  /** The database does not answer. */
  away: boolean
  /** Old data that could not be removed. */
  unpruned: ReadonlyArray<string>
  /** What people asked of the session, by the id of the request. */
  readonly sentSignals: Map<string, Asked>
  /** The oldest message that no event carries yet. */
  nextMessage: InboxId | undefined
  /** What TERMINATE_SELF waits for inside the lifecycle. */
  terminated: Effect.Effect<void>
  /** What a heartbeat waits for while it is stored. */
  appending: Effect.Effect<void>
  readonly tokens: Map<string, Caller>
  readonly effects: Array<string>
  readonly audit: Array<AuditEntry>
  readonly inbox: Array<Incoming>
  readonly outbox: Array<Outgoing>
  readonly pushed: Array<Pushed>
  readonly pushes: PubSub.PubSub<Pushed>
  readonly drafts: PubSub.PubSub<ShownDraft>
  /** Versions of the configuration after the first one. */
  readonly versions: PubSub.PubSub<number>
  readonly appended: PubSub.PubSub<Appended>
  readonly changes: PubSub.PubSub<AgentView>
  readonly wakes: PubSub.PubSub<void>
}

export const makeWorld = Effect.gen(function* () {
  const world: World = {
    view,
    row,
    latest: undefined,
    asked: undefined,
    events: [],
    state: initialState,
    snapshot: undefined,
    inboxFull: false,
    full: false,
    away: false,
    unpruned: [],
    sentSignals: new Map(),
    nextMessage: undefined,
    appending: Effect.void,
    terminated: Effect.void,
    tokens: new Map([
      ["boot", caller("bootstrap")],
      ["lease", caller("current")],
      ["older", caller("superseded")],
      ["stranger", caller("current", OTHER_SESSION)]
    ]),
    effects: [],
    audit: [],
    inbox: [],
    outbox: [],
    pushed: [],
    // What is published before a stream has subscribed reaches it all the same.
    versions: yield* PubSub.sliding<number>({ capacity: 4, replay: 4 }),
    pushes: yield* PubSub.sliding<Pushed>({ capacity: 64, replay: 64 }),
    drafts: yield* PubSub.sliding<ShownDraft>(64),
    appended: yield* PubSub.sliding<Appended>(64),
    changes: yield* PubSub.sliding<AgentView>(64),
    wakes: yield* PubSub.sliding<void>(1)
  }
  return world
})

export const head = (world: World) => ({
  rev: world.events.length,
  hash: world.events.at(-1)?.hash ?? hex(genesis(SESSION))
})

/** Gives drafts their places in the chain. */
export const chained = (world: World, drafts: ReadonlyArray<EventDraft>): ReadonlyArray<PrintedEvent> => {
  const links: Array<PrintedEvent> = []
  for (const draft of drafts) {
    const { hash, rev } =
      links.length > 0 ? { rev: world.events.length + links.length, hash: links.at(-1)!.hash } : head(world)
    const event = { v: 2, rev: rev + 1, ...draft, created_at: "2025-01-01T00:00:00.000Z", salt: SALT } as ChoirEvent
    links.push({ event, hash: hex(chainEvent(Buffer.from(hash, "hex"), event).hash) })
  }
  return links
}

/** Commits events as the store does: state first, then the news, unless every reader was too slow for it, then the reader's wake. */
export const append = Effect.fnUntraced(function* (world: World, drafts: ReadonlyArray<EventDraft>, isHeard = true) {
  const links = chained(world, drafts)
  for (const { event } of links)
    world.state = Result.getOrThrowWith(fold(world.state, event), (refusal) => new Error(refusal.reason))
  world.events.push(...links)
  for (const { event } of links)
    if (event.event_type === "AgentMessage" && event.payload.text !== undefined)
      world.outbox.push({
        outbox_id: String(world.outbox.length + 1),
        source: "event",
        source_id: `${SESSION}:${event.rev}`,
        part: 0,
        gateway: name("screen"),
        dm: DM,
        agent_id: AGENT,
        kind: event.payload.kind,
        text: event.payload.text,
        in_reply_to: event.payload.in_reply_to ?? null,
        created_ms: 0
      })
  const events = links.map(({ event }) => event)
  if (!isHeard) return
  yield* PubSub.publish(world.appended, { session_id: SESSION, agent_id: AGENT, events, state: world.state })
  yield* PubSub.publish(world.wakes, undefined)
})

const known = (session_id: SessionId) =>
  session_id === SESSION ? Effect.void : Effect.fail(new SessionUnknown({ session_id }))

const effect = (world: World, what: string) => Effect.sync(() => void world.effects.push(what))

const configStore = (world: World, home: string) =>
  Layer.mock(ConfigStore, {
    home,
    current: Effect.succeed({ version: 1, config }),
    secrets: Effect.succeed({ [BOUND]: Redacted.make("s3cret") }),
    secret: (secret) =>
      secret === BOUND ? Effect.succeed(Redacted.make("s3cret")) : Effect.fail(new SecretMissing({ secret })),
    changes: Stream.map(Stream.concat(Stream.make(1), Stream.fromPubSub(world.versions)), (version) => ({
      version,
      config
    })),
    secretValues: (names) =>
      Effect.sync(
        () => new Map([...names].flatMap((name) => (name === BOUND ? [[name, Redacted.make("s3cret")] as const] : [])))
      ),
    secretsOf: () => Effect.succeed(new Set([BOUND, SecretName.make("unset")]))
  })

const tokens = (world: World) =>
  Layer.mock(Tokens, {
    identify: (token) => Effect.sync(() => Option.fromNullishOr(world.tokens.get(Redacted.value(token)))),
    lease: () => Effect.as(effect(world, "lease"), Redacted.make(`lease-${world.effects.length}`)),
    settle: () => effect(world, "settle")
  })

const lifecycle = (world: World) => {
  const viewOf = (agent_id: AgentId) =>
    Effect.suspend(() =>
      agent_id === AGENT
        ? Effect.succeed(world.view)
        : Effect.fail(
            new AgentRefused({ kind: "UNKNOWN_AGENT", agent_id, reason: `no ${agent_id}`, hint: "choirctl agent list" })
          )
    )
  const act = (what: string) => (agent_id: AgentId) => Effect.andThen(effect(world, what), viewOf(agent_id))
  return Layer.mock(Lifecycle, {
    lastHeartbeat: () => Effect.succeed({ age_ms: 1200, head_rev: world.state.rev + 3, crashes: 1 }),
    list: Effect.sync(() => [world.view]),
    view: viewOf,
    start: (agent_id, options) => {
      world.asked = options
      return act("start")(agent_id)
    },
    startAsBefore: (agent_id, before) => {
      world.asked = before
      return act("start")(agent_id)
    },
    stop: act("stop"),
    restart: (agent_id) =>
      Effect.fail(new AgentRefused({ kind: "NOT_RUNNING", agent_id, reason: "stopped", hint: "start it" })),
    hello: () => effect(world, "hello"),
    heartbeat: () => effect(world, "heard"),
    whileAnswering: (_, answer) => Effect.ensuring(answer, effect(world, "answered")),
    terminating: (_, reason) =>
      Effect.andThen(
        effect(world, `terminating ${reason}`),
        Effect.suspend(() => world.terminated)
      ),
    changes: Stream.fromPubSub(world.changes)
  })
}

/** A page of two events after a revision. */
const firstTwo = ({ events }: World, after: number) => {
  const rest = events.slice(after).map(({ event }) => event)
  return { events: rest.slice(0, 2), more: rest.length > 2 }
}

const eventStore = (world: World) =>
  Layer.mock(EventStore, {
    unstored: Effect.succeed([]),
    append: (_, heartbeat) =>
      Effect.gen(function* () {
        world.effects.push("append")
        yield* world.appending
        return { ack_rev: heartbeat.new_rev, action: "OK" as const, config_version_latest: 1 }
      }),
    state: (session_id) =>
      Effect.andThen(
        known(session_id),
        Effect.sync(() => world.state)
      ),
    head: (session_id) =>
      Effect.andThen(
        known(session_id),
        Effect.sync(() => head(world))
      ),
    recovery: (session_id) =>
      Effect.andThen(
        known(session_id),
        Effect.sync(() => {
          const { snapshot } = world
          const page = firstTwo(world, snapshot?.tail_after.rev ?? 0)
          return snapshot === undefined ? page : { snapshot, ...page }
        })
      ),
    tail: (session_id, from) =>
      Effect.andThen(
        known(session_id),
        Effect.sync(() => firstTwo(world, from - 1))
      ),
    events: (session_id, { from, last }) =>
      Stream.fromIterableEffect(
        Effect.andThen(
          known(session_id),
          Effect.sync(() => world.events.slice((from ?? 1) - 1).slice(last === undefined ? 0 : -last))
        )
      ),
    jobWords: (_, state) => Effect.sync(() => wordsOf(state, storedEvents(world))),
    verify: (session_id) =>
      Effect.andThen(
        known(session_id),
        Effect.sync(() => ({ ok: true, events: head(world).rev, head: head(world).hash }))
      ),
    appended: Stream.fromPubSub(world.appended)
  })

const storedEvents = ({ events }: World) => events.map(({ event }) => event)

/** A stored signal, ended by the event that carries its id. */
const asked = (world: World, request_id: string): Asked | undefined => {
  const found = world.sentSignals.get(request_id)
  if (found === undefined) return undefined
  const ending = world.events.find(
    ({ event }) => "signal_id" in event.payload && event.payload.signal_id === found.signal_id
  )
  return { ...found, acked_rev: ending?.event.rev ?? null }
}

const stores = (world: World) =>
  Layer.mergeAll(
    Layer.mock(Approvals, {
      request: (_, { call_id, request_type }) =>
        request_type === "confirm_tool"
          ? Effect.as(effect(world, `ask ${call_id}`), {
              approval_id: ApprovalId.make("1"),
              status: "pending" as const
            })
          : refused("NOT_AVAILABLE", "not in this version", "do not go on"),
      list: () => databaseDefect(stored(world, [])),
      pending: databaseDefect(stored(world, new Map([[AGENT, 2]])))
    }),
    memoryAudit(world.audit),
    Layer.mock(Leases, {
      all: Effect.succeed([{ kind: "workspace" as const, name: "desk", agent_id: AGENT, session_id: SESSION }])
    }),
    Layer.mock(SessionStore, {
      get: (session_id) => Effect.sync(() => (session_id === SESSION ? Option.some(world.row) : Option.none())),
      latest: () => Effect.suspend(() => stored(world, Option.some(world.latest ?? world.row))),
      list: () => Effect.suspend(() => stored(world, [world.row])),
      newer: () => Effect.succeedNone,
      summarize: (_, { title }) => effect(world, `summary ${title}`),
      summary: () => Effect.succeedNone
    }),
    Contexts.layer,
    Layer.mock(WorkspaceLabels, { of: () => Effect.succeed({}), all: Effect.succeed(new Map()) }),
    Layer.mock(Runs, { history: () => Effect.succeed({}), orphans: Effect.succeed(new Map()) }),
    Layer.mock(Drafts, {
      changes: Stream.fromPubSub(world.drafts),
      put: (agent_id, { inbox_id, text }) => effect(world, `draft of ${agent_id} to ${inbox_id}: ${text}`)
    }),
    Layer.mock(Signals, {
      asked: (_, request_id) => Effect.sync(() => asked(world, request_id)),
      nextMessage: () => Effect.sync(() => world.nextMessage),
      send: (_, request_id, body) =>
        Effect.sync(() => {
          if (world.full) return { type: "full", pending: 100 }
          const signal_id = SignalId.make(String(7 + world.sentSignals.size))
          world.sentSignals.set(request_id, { signal_id, body, acked_rev: null })
          return { type: "queued", signal_id, body, acked_rev: null }
        }),
      stream: (_, after) =>
        Stream.concat(
          Stream.fromIterable(world.pushed.filter(({ id }) => Number(id ?? 0) > Number(after ?? 0))),
          Stream.fromPubSub(world.pushes)
        )
    })
  )

/** All the services that the APIs are built on. */
export const layerWorld = (world: World, home: string, hostTools: ReadonlyArray<HostTool> = []) =>
  Steering.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        NodeFileSystem.layer,
        configStore(world, home),
        HostTools.layer(hostTools).pipe(Layer.provide(memoryCallResults)),
        tokens(world),
        lifecycle(world),
        eventStore(world),
        memoryQueues(world),
        stores(world),
        memoryModels((what) => effect(world, what)),
        Layer.mock(Plans, { about: () => Effect.undefined }),
        Layer.mock(Schedules, {}),
        reconfiguration((what) => effect(world, what), config)
      )
    )
  )
