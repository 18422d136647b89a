/** A choird that serves the operator API on a real socket and answers what a test tells it to. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Queue, Stream } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import type { ApprovalDetail, ApprovalSummary } from "#schema/ApprovalsApi.ts"
import type { GrantSummary } from "#schema/Grant.ts"
import { fakeApprovals, grantSummary } from "./fakeApprovals.ts"
import type { AuditRow, SystemStatus, WorkspaceReset, WorkspaceSummary } from "#schema/SystemApi.ts"
import type { AgentDetail, AgentModels, BuildProgress } from "#schema/AgentsApi.ts"
import type { AgentSummary } from "#schema/AgentSummary.ts"
import type { UpdateProgress } from "#schema/AgentsApi.ts"
import type { ModelSummary } from "#schema/AgentSummary.ts"
import type { ChatAnswer, ChatEvent } from "#schema/ChatApi.ts"
import type {
  CoreSummary,
  PrintedEvent,
  ResumedSession,
  SessionDetail,
  SessionSummary,
  SignalSummary,
  Verification
} from "#schema/SessionsApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { AgentId, ApprovalId, CallId, EDGE, InboxId, ResourceName, SessionId, SignalId } from "#schema/Ids.ts"
import type { PromptContext } from "#schema/PromptContext.ts"
import { layerSchemaErrors } from "#src/choird/api/schemaErrors.ts"
import { sseResponse } from "#src/choird/listeners/sse.ts"
import { listen } from "#src/shared/wire/http.ts"
import { auditRow } from "./fakeAudit.ts"
import { coreSummary } from "./coreSummary.ts"
import { fakeBackup } from "./fakeBackup.ts"
import { promptContext } from "./promptContext.ts"
import { fakeMemory } from "./fakeMemory.ts"
import { fakePairing } from "./fakePairing.ts"
import { fakePlans } from "./fakePlans.ts"
import { fakeRetention } from "./fakeRetention.ts"
import { fakeSessions } from "./fakeSessions.ts"
import { fakeSkills } from "./fakeSkills.ts"
import { type ConfigurationAnswers, fakeConfiguration, usualConfiguration } from "./fakeConfiguration.ts"
import { fakeWorkspaces } from "./fakeWorkspaces.ts"
import { fakeUpdates, oneRedeployed } from "./fakeUpdates.ts"

export const SESSION = SessionId.make("0k8v3w9m2p1n4q7r")
export const AGENT = AgentId.make("agent-1")

export const summary: AgentSummary = {
  agent_id: AGENT,
  status: "running",
  session_id: SESSION,
  image_version: "0a1b2c",
  uptime_ms: 65_000,
  config_version: 3
}

export const detail: AgentDetail = {
  agent_id: AGENT,
  status: "running",
  session_id: SESSION,
  lanes: [{ lane: "edge" as never, state: "EDGE_IDLE", skill: "tidy", skill_state: "look", step: 4 }],
  budgets: {
    tokens: { used: 1200, limit: 2_000_000 },
    tool_calls: { used: 3, limit: 2000 },
    cost_usd: { used: 0.25, limit: null },
    core_jobs: { used: 1, limit: 8 }
  },
  resource_bindings: {
    workspace: ResourceName.make("main"),
    llm: ResourceName.make("sonnet"),
    core_llm: ResourceName.make("sonnet"),
    dm: ResourceName.make("terminal")
  },
  uptime_ms: 65_000,
  config_version: 3,
  last_rev: 12,
  acked_rev: 12,
  leases: [{ kind: "workspace", name: "main" }],
  approvals_pending: 1,
  reason: null
}

export const agentModels: AgentModels = {
  agent_id: AGENT,
  llm: ResourceName.make("opus"),
  core_llm: ResourceName.make("sonnet"),
  default_llm: ResourceName.make("sonnet"),
  default_core_llm: ResourceName.make("sonnet"),
  voice_profile: null,
  in_use: false
}

export const systemStatus: SystemStatus = {
  choird: { version: "0.1.0", uptime_ms: 3_700_000, config_version: 3, pid: 42 },
  postgres: { kind: "embedded", version: "18.6", pgvector: "0.8.7", ok: true },
  runtime: { type: "sandbox", isolation: "a sandbox", limits: ["pids"], warnings: ["it shares the network"] },
  gateways: [{ name: ResourceName.make("terminal"), type: "console", ok: true, detail: "choirctl chat" }],
  agents: [summary],
  approvals: { pending: 1 },
  warnings: []
}

export const approvalSummary: ApprovalSummary = {
  approval_id: ApprovalId.make("7"),
  agent_id: AGENT,
  session_id: SESSION,
  request_type: "confirm_tool",
  summary: 'mail.send {"to":"ada"}',
  status: "pending",
  created_at: "1970-01-01T00:00:00.000Z",
  expires_at: "1970-01-01T00:30:00.000Z"
}

export const approvalDetail: ApprovalDetail = {
  ...approvalSummary,
  call_id: CallId.make("s-1-4-0"),
  lane: EDGE,
  text: 'tool: mail.send\ninput: {"to":"ada"}',
  payload: { tool: "mail.send", input: { to: "ada" }, lane: "edge", why: "always" },
  hash: "3fa9c012".padEnd(64, "0"),
  resolved_at: null,
  resolved_by: null,
  reason: null,
  outcome: null,
  step: null
}

export const printedEvent: PrintedEvent = {
  event: {
    v: 1,
    rev: 1,
    event_type: "UserMsg",
    lane: "edge" as never,
    payload: { inbox_id: InboxId.make("7"), dm: ResourceName.make("terminal"), text: "hi", attachments: [] },
    created_at: "2026-01-02T03:04:05.678Z"
  },
  hash: "ab".repeat(32)
}

export const sessionDetail: SessionDetail = {
  session_id: SESSION,
  agent_id: AGENT,
  status: "stopped",
  started_at: "2026-01-02T03:04:05.678Z",
  ended_at: "2026-01-02T04:04:05.678Z",
  epoch: 2,
  last_rev: 12,
  head: "ab".repeat(32),
  image_version: "0a1b2c",
  resource_bindings: detail.resource_bindings!,
  frozen_reason: null,
  summary: null
}

/** One request as choird understood it. */
export interface Call {
  readonly name: string
  readonly id?: string
  readonly input?: unknown
}

type Answer<A> = Effect.Effect<A, ApiError>

/** What choird answers. */
export interface Answers extends ConfigurationAnswers {
  readonly status: Answer<SystemStatus>
  readonly config: Answer<{ readonly [key: string]: never } | string>
  readonly workspaces: Answer<ReadonlyArray<WorkspaceSummary>>
  readonly reset: Answer<WorkspaceReset>
  /** The bytes of a backup. */
  readonly backup: Answer<Uint8Array>
  readonly agents: Answer<ReadonlyArray<AgentSummary>>
  readonly agent: Answer<AgentDetail>
  readonly build: Answer<ReadonlyArray<BuildProgress>>
  readonly update: Answer<ReadonlyArray<UpdateProgress>>
  readonly changed: Answer<AgentSummary>
  readonly sessions: Answer<ReadonlyArray<SessionSummary>>
  readonly session: Answer<SessionDetail>
  readonly resumed: Answer<ResumedSession>
  readonly events: Answer<ReadonlyArray<PrintedEvent>>
  readonly context: Answer<PromptContext>
  readonly cores: Answer<ReadonlyArray<CoreSummary>>
  readonly verify: Answer<Verification>
  readonly audit: Answer<ReadonlyArray<AuditRow>>
  readonly signal: Answer<SignalSummary>
  readonly models: Answer<ReadonlyArray<ModelSummary>>
  readonly agentModels: Answer<AgentModels>
  readonly approvals: Answer<ReadonlyArray<ApprovalSummary>>
  readonly approval: Answer<ApprovalDetail>
  readonly grants: Answer<ReadonlyArray<GrantSummary>>
  readonly grant: Answer<GrantSummary>
  /** What a text is answered by choird itself; null for a message. */
  readonly command: (text: string) => ChatAnswer | null
  /** What a sent message leads to; the stream carries it to every client. */
  readonly reaction: (text: string, inbox_id: InboxId) => ReadonlyArray<ChatEvent>
}

const usual: Answers = {
  status: Effect.succeed(systemStatus),
  config: Effect.succeed("the configuration"),
  workspaces: Effect.succeed([{ name: ResourceName.make("main"), path: "/w/main", leased_by: AGENT }]),
  reset: Effect.succeed({ name: ResourceName.make("main"), path: "/w/main", stopped: AGENT }),
  backup: Effect.succeed(new TextEncoder().encode("no backup")),
  agents: Effect.succeed([summary]),
  agent: Effect.succeed(detail),
  update: oneRedeployed(AGENT),
  build: Effect.succeed([
    { type: "step", text: "fetching" },
    { type: "done", result: { agent_id: AGENT, image_version: "0a1b2c", path: "/i", built: true, warnings: [] } }
  ]),
  changed: Effect.succeed(summary),
  session: Effect.succeed(sessionDetail),
  resumed: Effect.succeed({ session_id: SESSION, agent_id: AGENT, epoch: 4 }),
  sessions: Effect.succeed([
    {
      session_id: SESSION,
      agent_id: AGENT,
      status: "active",
      started_at: "1970-01-01T00:00:00.000Z",
      ended_at: null,
      last_rev: 12
    }
  ]),
  events: Effect.succeed([printedEvent]),
  context: Effect.succeed(promptContext),
  cores: Effect.succeed([coreSummary]),
  verify: Effect.succeed({ ok: true, events: 12, head: "cd".repeat(32) }),
  audit: Effect.succeed([auditRow]),
  signal: Effect.succeed({ signal_id: SignalId.make("5"), rev: null, refused: null }),
  models: Effect.succeed([
    {
      name: ResourceName.make("sonnet"),
      type: "llm",
      provider: "p",
      model: "m",
      default_of: [AGENT],
      fallback: [ResourceName.make("opus")],
      price: { input: 3, output: 15 }
    },
    { name: ResourceName.make("opus"), type: "llm", provider: "p", model: "o" }
  ]),
  agentModels: Effect.succeed(agentModels),
  approvals: Effect.succeed([approvalSummary]),
  approval: Effect.succeed(approvalDetail),
  grants: Effect.succeed([grantSummary]),
  grant: Effect.succeed(grantSummary),
  ...usualConfiguration,
  command: () => null,
  reaction: (text, inbox_id) => [reply(inbox_id, `echo ${text}`), { type: "settled", inbox_id }]
}

export const reply = (inbox_id: string, text: string, part = 0): ChatEvent => ({
  type: "message",
  outbox_id: `${inbox_id}${part}`,
  source: `event:${inbox_id}`,
  part,
  kind: "reply",
  text,
  in_reply_to: InboxId.make(inbox_id)
})

/** What a console sees and says; outlives a choird, as its database does. */
export interface ChatDesk {
  /** Messages that no client has acknowledged. */
  readonly unread: Array<ChatEvent>
  readonly clients: Set<Queue.Queue<ChatEvent>>
  readonly sent: Array<{ readonly client_id: string; readonly text: string }>
  readonly acked: Array<string>
}

export const makeDesk = (unread: ReadonlyArray<ChatEvent> = []): ChatDesk => ({
  unread: [...unread],
  clients: new Set(),
  sent: [],
  acked: []
})

/** To every client, and kept until it is acknowledged. */
export const say = (desk: ChatDesk, events: ReadonlyArray<ChatEvent>) => {
  desk.unread.push(...events.filter(({ type }) => type === "message"))
  for (const client of desk.clients) for (const event of events) Queue.offerUnsafe(client, event)
}

const chatGroup = (desk: ChatDesk, answers: Answers, calls: Array<Call>) =>
  HttpApiBuilder.group(OperatorApi, "chat", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        send: ({ payload }) =>
          Effect.sync(() => {
            const known = desk.sent.findIndex(({ client_id }) => client_id === payload.client_id)
            const inbox_id = InboxId.make(String((known < 0 ? desk.sent.length : known) + 1))
            if (known < 0) {
              desk.sent.push(payload)
              say(desk, answers.reaction(payload.text, inbox_id))
            }
            return { inbox_id, position: 0 }
          }),
        command: ({ payload }) =>
          Effect.sync(() => {
            calls.push({ name: "command", input: payload })
            return { answer: answers.command(payload.text) }
          }),
        stream: () =>
          Effect.gen(function* () {
            const client = yield* Queue.bounded<ChatEvent>(100)
            desk.clients.add(client)
            const first: ReadonlyArray<ChatEvent> = [
              ...desk.unread,
              { type: "agent", status: "running", reason: null },
              { type: "activity", edge: "EDGE_IDLE", cores: [] }
            ]
            const events = Stream.concat(Stream.fromIterable(first), Stream.fromQueue(client)).pipe(
              Stream.ensuring(Effect.sync(() => desk.clients.delete(client)))
            )
            return yield* sseResponse(Stream.map(events, (data) => ({ id: undefined, data })))
          }),
        ack: ({ payload }) =>
          Effect.sync(() => {
            calls.push({ name: "ack", input: payload })
            desk.acked.push(...payload.outbox_ids)
            const kept = desk.unread.filter(
              (event) => event.type !== "message" || !payload.outbox_ids.includes(event.outbox_id)
            )
            desk.unread.splice(0, desk.unread.length, ...kept)
            return { acked: payload.outbox_ids.length }
          })
      })
    )
  )

/** Serves the home's socket until the scope closes; answers with the calls that arrived. */
export const fakeChoird = Effect.fn("fakeChoird")(function* (
  home: string,
  told: Partial<Answers> = {},
  desk: ChatDesk = makeDesk()
) {
  const answers = { ...usual, ...told }
  const calls: Array<Call> = []
  const noted = <A>(call: Call, answer: Answer<A>): Answer<A> =>
    Effect.andThen(
      Effect.sync(() => calls.push(call)),
      answer
    )
  const system = HttpApiBuilder.group(OperatorApi, "system", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        status: () => noted({ name: "status" }, answers.status),
        config: () => noted({ name: "config" }, answers.config),
        workspaces: () => noted({ name: "workspaces" }, answers.workspaces),
        models: () => noted({ name: "models" }, answers.models),
        offlineModel: () => noted({ name: "offlineModel" }, Effect.succeed({ endpoint: "http://127.0.0.1:9/v1" })),
        try: () => noted({ name: "try" }, Effect.succeed([])),
        shutdown: () => noted({ name: "shutdown" }, Effect.succeed({ ok: true as const }))
      })
    )
  )
  const agents = HttpApiBuilder.group(OperatorApi, "agents", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        list: () => noted({ name: "list" }, answers.agents),
        status: ({ params }) => noted({ name: "agent", id: params.id }, answers.agent),
        build: ({ params, payload }) =>
          Effect.map(noted({ name: "build", id: params.id, input: payload }, answers.build), Stream.fromIterable),
        start: ({ params, payload }) => noted({ name: "start", id: params.id, input: payload }, answers.changed),
        stop: ({ params }) => noted({ name: "stop", id: params.id }, answers.changed),
        restart: ({ params }) =>
          Effect.map(noted({ name: "restart", id: params.id }, answers.changed), (row) => ({ ...row, keeps: [] })),
        models: ({ params }) => noted({ name: "agentModels", id: params.id }, answers.agentModels),
        setModels: ({ params, payload }) =>
          noted({ name: "setModels", id: params.id, input: payload }, answers.agentModels)
      })
    )
  )
  const session = HttpApiBuilder.group(OperatorApi, "session", (handlers) =>
    Effect.succeed(
      handlers.handleAll({ show: ({ params }) => noted({ name: "show", id: params.id }, answers.session) })
    )
  )
  const resume = HttpApiBuilder.group(OperatorApi, "resume", (handlers) =>
    Effect.succeed(
      handlers.handleAll({ resume: ({ params }) => noted({ name: "resume", id: params.id }, answers.resumed) })
    )
  )
  const approvals = fakeApprovals(noted, answers)
  const audit = HttpApiBuilder.group(OperatorApi, "audit", (handlers) =>
    Effect.succeed(handlers.handleAll({ list: ({ query }) => noted({ name: "audit", input: query }, answers.audit) }))
  )
  const app = yield* HttpRouter.toHttpEffect(
    HttpApiBuilder.layer(OperatorApi).pipe(
      Layer.provide([
        system,
        fakeBackup(calls, answers.backup),
        agents,
        fakeUpdates(calls, answers.update),
        approvals,
        fakeSessions(noted, answers),
        session,
        resume,
        audit,
        fakeWorkspaces(calls, answers.reset),
        fakeRetention(calls, SESSION, AGENT),
        fakeMemory(calls, SESSION, AGENT),
        fakePairing(calls),
        fakePlans(calls),
        chatGroup(desk, answers, calls)
      ]),
      Layer.provide(
        fakeConfiguration(answers, (name, input) => calls.push(input === undefined ? { name } : { name, input }))
      ),
      Layer.provide(fakeSkills((name, id) => calls.push({ name, id }))),
      Layer.provide(layerSchemaErrors),
      Layer.provide(NodeHttpServer.layerHttpServices)
    )
  )
  mkdirSync(home, { recursive: true, mode: 0o700 })
  yield* listen(app, { path: join(home, "socks", "choird.sock"), connectionsMax: 16 })
  return calls
})
