/** choird's stores over a database, and sessions to fill them with. */
import { Effect, Layer, Option } from "effect"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Caller, Heartbeat } from "#schema/AgentApi.ts"
import type { ResourceBindings } from "#schema/ResourceBindings.ts"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import { AgentId, CallId, EDGE, InboxId, ResourceName, type SessionId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Contexts } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { Proposals } from "#src/choird/approvals/Proposals.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { chainEvent, genesis, hex, type Link } from "#src/shared/events/hashChain.ts"
import { temporaryFolder } from "./engines.ts"
import { layerAppendRules } from "#src/choird/approvals/callApprovals.ts"

export const CONFIG = {
  global_repo: { url: "/srv/global" },
  workspaces: { main: { path: "/srv/main" } },
  models: {
    small: { provider: "test", model: "s", endpoint: "http://localhost:1", secret: "small-key", fallback: ["large"] },
    large: { provider: "test", model: "l", endpoint: "http://localhost:1", secret: "large-key", fallback: ["small"] },
    other: { provider: "test", model: "o", endpoint: "http://localhost:1", secret: "other-key" }
  },
  gateways: { terminal: { type: "console" }, bot: { type: "telegram", secret: "bot-token" } },
  dms: {
    desk: { gateway: "terminal", user_id: "local", admin: true },
    phone: { gateway: "bot", user_id: "1" }
  },
  agents: { helper: { repo: { url: "/srv/helper" }, defaults: { workspace: "main", llm: "small" } } }
}

export const SECRETS = { "small-key": "s1", "large-key": "s2", "other-key": "s3", "bot-token": "s4" }

/** A home with these two files, gone when the scope closes. */
export const makeHome = (config: unknown = CONFIG, secrets: unknown = SECRETS) =>
  Effect.map(temporaryFolder, (home) => {
    chmodSync(home, 0o700)
    const write = (name: string, content: unknown) =>
      writeFileSync(join(home, name), typeof content === "string" ? content : JSON.stringify(content), { mode: 0o600 })
    write("config.json", config)
    write("secrets.json", secrets)
    return home
  })

/** Every store with this configuration, new over the database that the suite has: building it again is a restart of choird. */
export const storesWith = (config: unknown) =>
  Layer.mergeAll(
    Steering.layer,
    Approvals.layer,
    Plans.layer,
    // The skills of these suites begin by no clock.
    Layer.mock(Schedules, { next: () => Effect.succeed([]) })
  ).pipe(
    // Nothing is proposed in these suites.
    Layer.provide([Layer.mock(Proposals, {}), Layer.mock(BrowserWorker, {})]),
    Layer.provideMerge(
      Layer.mergeAll(
        SessionStore.layer,
        EventStore.layer.pipe(Layer.provide(layerAppendRules)),
        Inbox.layer,
        Leases.layer,
        Audit.layer
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        Runs.layer,
        WorkspaceLabels.layer,
        AgentNumbers.layer,
        Tokens.layer,
        Signals.layer,
        Contexts.layer,
        Drafts.layer,
        Outbox.layer,
        Reactions.layer
      )
    ),
    Layer.provideMerge(Layer.unwrap(Effect.map(makeHome(config), (home) => ConfigStore.layer({ home })))),
    Layer.orDie
  )

export const stores = storesWith(CONFIG)

export const DESK = ResourceName.make("desk")
export const PHONE = ResourceName.make("phone")
export const BINDINGS: ResourceBindings = {
  workspace: ResourceName.make("main"),
  llm: ResourceName.make("small"),
  core_llm: ResourceName.make("small"),
  dm: DESK
}

/** The row of a session that runs in its first epoch, as a store without a database answers it. */
export const activeSession = (agent_id: AgentId, session_id: SessionId): SessionRow => ({
  session_id,
  agent_id,
  status: "active",
  started_at: "",
  ended_at: null,
  resource_bindings: BINDINGS,
  epoch: 1,
  last_rev: 0,
  log_bytes: 0,
  frozen_reason: null,
  image_version: "abc1234",
  container: null
})

let agents = 0
/** How many agents the tests of this process have made: those of all its files count on. */
export const agentsMade = (): number => agents
/** An agent that no other test uses. */
export const newAgent = (): AgentId => {
  agents += 1
  return AgentId.make(`agent-${agents}`)
}

export const message = (agent_id: AgentId, client_id: string, text = "hello") => ({
  gateway: ResourceName.make("terminal"),
  client_id: `${agent_id}:${client_id}`,
  agent_id,
  dm: DESK,
  text,
  attachments: []
})

/** Tests need none that nobody can guess. */
export const SALT = "0123456789abcdef".repeat(2)
const AT = "2026-01-01T00:00:00.000Z"

/** The agent's side of a session: commits events and makes heartbeats of them. */
export class Talk {
  readonly caller: Caller
  readonly links: Array<Link> = []
  constructor(session_id: SessionId, agent_id: AgentId, epoch = 1) {
    this.caller = { session_id, agent_id, epoch, standing: "current" }
  }
  get rev() {
    return this.links.length
  }
  get events(): ReadonlyArray<ChoirEvent> {
    return this.links.map(({ event }) => event)
  }
  hash(rev: number): string {
    return hex(this.links[rev - 1]?.hash ?? genesis(this.caller.session_id))
  }
  commit(...drafts: ReadonlyArray<EventDraft>): this {
    for (const draft of drafts) {
      const event = { v: 2, rev: this.rev + 1, created_at: AT, salt: SALT, ...draft } as ChoirEvent
      this.links.push(chainEvent(this.links.at(-1)?.hash ?? genesis(this.caller.session_id), event))
    }
    return this
  }
  /** A turn of three events, which is legal in every idle state. */
  turn(inbox_id: number | string, answer = "done"): this {
    return this.commit(userMsg(inbox_id), modelOutput(`c-${this.rev + 2}`), reply(inbox_id, answer))
  }
  /** The events after a revision, up to another one. */
  heartbeat(base_rev: number, new_rev: number = this.rev, epoch: number = this.caller.epoch): Heartbeat {
    return {
      epoch,
      base_rev,
      new_rev,
      hash_prev: this.hash(base_rev),
      hash_new: this.hash(new_rev),
      patches: this.events.slice(base_rev, new_rev),
      config_version: 0,
      timestamp: AT
    }
  }
  /** The same agent in another epoch. */
  inEpoch(epoch: number): Talk {
    const talk = new Talk(this.caller.session_id, this.caller.agent_id, epoch)
    talk.links.push(...this.links)
    return talk
  }
}

export const userMsg = (inbox_id: number | string): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make(String(inbox_id)), dm: DESK, text: "hello", attachments: [] }
})

export const modelOutput = (call_id: string, text = "done"): EventDraft => ({
  event_type: "ModelOutput",
  lane: EDGE,
  payload: {
    call_id: CallId.make(call_id),
    purpose: "turn",
    model: "small",
    text,
    tool_calls: [],
    finish_reason: "stop",
    usage: { input_tokens: 10, output_tokens: 2 },
    latency_ms: 1
  }
})

export const reply = (inbox_id: number | string, text = "done"): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "reply", text, in_reply_to: InboxId.make(String(inbox_id)) }
})

export const notice = (text: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "notice", text }
})

/** A new session of a new agent, and its agent's side. */
export const newTalkAt = Effect.fnUntraced(function* (dm: ResourceName) {
  const sessions = yield* SessionStore
  const { agent_id, session_id } = yield* sessions.create(newAgent(), { ...BINDINGS, dm }, "0000000")
  return new Talk(session_id, agent_id)
})

export const newTalk = newTalkAt(DESK)

/** The session's row, which there is. */
export const rowOf = (talk: Talk) =>
  Effect.map(
    Effect.flatMap(SessionStore, (sessions) => sessions.get(talk.caller.session_id)),
    Option.getOrThrow
  )
