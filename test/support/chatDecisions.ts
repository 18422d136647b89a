/** People who decide in the chat of an agent, over one database: its talk, its requests, and what they say. */
import { Effect, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, ApprovalId, ResourceName } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Models } from "#src/choird/agents/Models.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import type { Decide } from "#src/choird/chatcommands/readCommand.ts"
import { agentView } from "./agentView.ts"
import { append, proposed, request, requested } from "./confirmations.ts"
import { BINDINGS, CONFIG, message, newTalk, PHONE, storesWith, type Talk, userMsg } from "./stores.ts"
import { quiet } from "./telegramBot.ts"

export const BOT = ResourceName.make("bot")
export const TABLET = ResourceName.make("tablet")
export const FAMILY = ResourceName.make("family")
export const GROUP_ID = "-100200300"

const DMS = {
  ...CONFIG.dms,
  phone: { gateway: "bot", user_id: "1", admin: true },
  tablet: { gateway: "bot", user_id: "3" },
  guest: { gateway: "bot", user_id: "5" },
  family: { gateway: "bot", user_id: GROUP_ID }
}

/** Every agent has run for five minutes and a half, in the session that its talk made, at the phone and the tablet unless it has other places. */
const sessions = new Map<AgentId, Talk>()
const places = new Map<AgentId, ReadonlyArray<ResourceName>>()
/** Binds an agent to these DMs. */
export const bind = (agent_id: AgentId, ...dms: ReadonlyArray<ResourceName>): void => {
  places.set(agent_id, dms)
}
const viewOf = (agent_id: AgentId) =>
  agentView(agent_id, {
    session_id: sessions.get(agent_id)?.caller.session_id ?? null,
    since_ms: Date.now() - 330_000,
    bindings: { ...BINDINGS, dm: PHONE, dms: places.get(agent_id) ?? [PHONE, TABLET] }
  })
let listening: ReadonlyArray<AgentId> = []
/** Makes agents those that the gateways find. */
export const listen = (...agents: ReadonlyArray<AgentId>): void => {
  listening = agents
}
const lifecycle = Layer.mock(Lifecycle, {
  list: Effect.sync(() => listening.map(viewOf)),
  view: (agent_id) => Effect.sync(() => viewOf(agent_id)),
  changes: Stream.empty
})

/** One life of choird over the database. */
const life = Layer.merge(Gateways.layer, CardTaps.layer).pipe(
  Layer.provideMerge(GatewayCommands.layer),
  Layer.provideMerge(quiet),
  Layer.provideMerge(Layer.mergeAll(storesWith({ ...CONFIG, dms: DMS }), lifecycle, Layer.mock(Models, {})))
)
export const alive = <A, E>(work: Effect.Effect<A, E, Layer.Success<typeof life> | SqlClient.SqlClient>) =>
  Effect.provide(work, Layer.fresh(life))

/** Delivers what waits for a DM, as the reader of its gateway does. */
export const deliver = Effect.fnUntraced(function* (dm: ResourceName) {
  const outbox = yield* Outbox
  const rows = yield* outbox.undelivered(dm, undefined)
  yield* Effect.forEach(rows, ({ outbox_id }) =>
    outbox.delivered([outbox_id], { chat_id: `chat of ${dm}`, message_id: outbox_id })
  )
})

/**
 * A session whose turn began at a DM, and in which calls wait for a person. Each but those called `later-` was asked for, in a message that
 * was delivered.
 */
export const asked = Effect.fnUntraced(function* (dm: ResourceName, ...ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const talk = yield* newTalk
  const { agent_id } = talk.caller
  sessions.set(agent_id, talk)
  const { client_id, text } = message(agent_id, `${dm}-${ids.join()}`)
  const rows = yield* sql<{ readonly inbox_id: string }>`INSERT INTO choir_control.inbox
      (gateway, client_id, agent_id, dm, text, attachments)
    VALUES (${BOT}, ${client_id}, ${agent_id}, ${dm}, ${text}, '[]'::jsonb) RETURNING inbox_id::text`
  talk.commit(userMsg(rows[0]?.inbox_id ?? "0"), proposed(...ids), ...ids.map((id) => requested(id)))
  yield* append(talk, 0)
  const approvals = yield* Effect.forEach(
    ids.filter((id) => !id.startsWith("later-")),
    (id) => request(talk, id)
  )
  yield* deliver(dm)
  return { talk, agent_id, numbers: approvals.map(({ approval_id }) => approval_id) }
})

let requests = 0
/** What somebody says at a DM of the agent, and the answer. */
export const say = (
  agent_id: AgentId,
  resolution: Decide["resolution"],
  approval_id?: string,
  more: {
    readonly dm?: ResourceName
    /** Of a group, the one who wrote. */
    readonly writer?: ResourceName
    readonly reason?: string
    readonly request_id?: string
  } = {}
) =>
  Effect.flatMap(GatewayCommands, (commands) =>
    commands.run(
      {
        type: "decide",
        resolution,
        approval_id: approval_id === undefined ? undefined : ApprovalId.make(approval_id),
        reason: more.reason ?? null
      },
      {
        agent_id,
        gateway: BOT,
        dm: more.dm ?? PHONE,
        writer: more.writer ?? more.dm ?? PHONE,
        request_id: more.request_id ?? `said-${(requests += 1)}`,
        admin: (more.writer ?? more.dm ?? PHONE) === PHONE
      }
    )
  )

export const SUMMARY = 'mail.send {"to":"ada@example.org"}'

/** The audit's rows of an agent's decisions. */
export const audited = (agent_id: AgentId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly who: string; readonly action: string; readonly refused: string | null }>`SELECT who, action,
        detail ->> 'refused' AS refused
      FROM choir_control.audit WHERE agent_id = ${agent_id} AND action IN ('approval.approve', 'approval.reject') ORDER BY id`
  )
