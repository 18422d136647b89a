/** The console channel of `choirctl chat`. */
import { Context, Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Config } from "#schema/Config.ts"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { boundDms, dmList } from "#schema/ResourceBindings.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Choices } from "#src/choird/chatcommands/Choices.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { readCommand } from "#src/choird/chatcommands/readCommand.ts"
import { CHAT_TEXT_LIMIT, isTooLong } from "#src/choird/queues/chatTextLimit.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { CHAT_UNACKED_MAX, ChatStream } from "./ChatStream.ts"
import { badRequest, conflict, fromAgentRefused, queueFull, tooLarge } from "#src/choird/api/refusals.ts"
import { sseResponse } from "#src/choird/listeners/sse.ts"

/** The wait of a sender while an agent's inbox is full (R45). */
const QUEUE_FULL_RETRY_MS = 10_000

const OUTBOX_ID = /^[1-9][0-9]{0,17}$/u

const isConsole = (config: Config, dm: ResourceName) => {
  const gateway = config.dms[dm]?.gateway
  return gateway !== undefined && traitsOf(config, gateway).is_local
}

/** The command that adds a console to the agent's DMs, or what config.json lacks for one. */
const rebind = (config: Config, agent_id: AgentId, dms: ReadonlyArray<ResourceName>) => {
  const console = Object.keys(config.dms).find((name) => isConsole(config, ResourceName.make(name)))
  return console === undefined
    ? "add a gateway of the type console and a DM on it to config.json, then choirctl config apply"
    : `choirctl agent restart ${agent_id} ${[...dms, console].map((dm) => `--dm ${dm}`).join(" ")}`
}

const notConsole = (agent_id: AgentId, [dm, ...more]: ReadonlyArray<ResourceName>) => {
  if (dm === undefined) return `${agent_id} has no DM`
  return more.length === 0
    ? `${agent_id} talks in the DM ${dm}, which is not a console`
    : `${agent_id} talks in the DMs ${[dm, ...more].join(", ")}, none of which is a console`
}

/** The agent and the first of its DMs that is a console: nobody speaks here for a person on another gateway. */
const consoleOf = Effect.fnUntraced(function* (agent_id: AgentId) {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  const view = yield* Effect.mapError(lifecycle.view(agent_id), fromAgentRefused)
  const { config: running } = yield* config.current
  const dms = view.bindings === null ? dmList(running.agents[agent_id]?.defaults.dm) : boundDms(view.bindings)
  const dm = dms.find((name) => isConsole(running, name))
  const place = dm === undefined ? undefined : running.dms[dm]
  if (dm === undefined || place === undefined)
    return yield* conflict("NOT_CONSOLE", notConsole(agent_id, dms), rebind(running, agent_id, dms))
  return { view, dm, gateway: place.gateway, admin: place.admin }
})

export const layerOperatorChat = HttpApiBuilder.group(
  OperatorApi,
  "chat",
  Effect.fnUntraced(function* (handlers) {
    const chat = yield* ChatStream
    const choices = yield* Choices
    const commands = yield* GatewayCommands
    const inbox = yield* Inbox
    const outbox = yield* Outbox
    const context = Context.pick(ConfigStore, Lifecycle)(yield* Effect.context<ConfigStore | Lifecycle>())
    const console = (agent_id: AgentId) => Effect.provideContext(consoleOf(agent_id), context)

    /** A console whose agent can receive this text. */
    const listening = Effect.fnUntraced(function* (agent_id: AgentId, text: string) {
      const { admin, dm, gateway, view } = yield* console(agent_id)
      if (view.status !== "running" && view.status !== "starting" && view.status !== "paused")
        return yield* conflict("NOT_RUNNING", `${agent_id} is ${view.status}`, `choirctl agent start ${agent_id}`)
      if (isTooLong(text)) return yield* tooLarge(`a message may have ${CHAT_TEXT_LIMIT}`)
      return { admin, dm, gateway }
    })

    return handlers.handleAll({
      command: Effect.fn("OperatorApi.command")(function* ({ params, payload }) {
        const { admin, dm, gateway } = yield* listening(params.id, payload.text)
        const text = (yield* choices.take({ gateway, dm }, payload.text)) ?? payload.text
        const read = readCommand(text, admin)
        if (read === undefined) return { answer: null }
        if (read.type === "say") return { answer: { kind: "notice" as const, text: read.text } }
        if (read.type === "forbidden")
          return { answer: { kind: "refusal" as const, text: `Only an admin may use /${read.words}.` } }
        const speaker = { agent_id: params.id, gateway, dm, writer: dm, request_id: payload.client_id, admin }
        return { answer: yield* commands.run(read.command, speaker) }
      }),
      send: Effect.fn("OperatorApi.send")(function* ({ params, payload }) {
        const agent_id = params.id
        const { dm, gateway } = yield* listening(agent_id, payload.text)
        // Neither the database nor the hash chain can hold these (docs/protocol.md, Events).
        const text = payload.text.toWellFormed().replaceAll("\0", "\u{FFFD}")
        const message = { gateway, client_id: payload.client_id, agent_id, dm, text, attachments: [] }
        const received = yield* databaseDefect(inbox.receive(message))
        if (received.type === "full") return yield* queueFull(agent_id, received.pending, QUEUE_FULL_RETRY_MS)
        return { inbox_id: received.inbox_id, position: received.position }
      }),
      stream: Effect.fn("OperatorApi.stream")(function* ({ params }) {
        const { dm } = yield* console(params.id)
        return yield* sseResponse(
          Stream.map(chat.follow(params.id, dm), (event) => ({
            id: event.type === "message" ? event.outbox_id : undefined,
            data: event
          }))
        )
      }),
      ack: Effect.fn("OperatorApi.ack")(function* ({ params, payload }) {
        const { dm } = yield* console(params.id)
        const ids = payload.outbox_ids
        if (ids.length > CHAT_UNACKED_MAX || !ids.every((id) => OUTBOX_ID.test(id)))
          return yield* badRequest(`outbox_ids may hold at most ${CHAT_UNACKED_MAX} ids of messages`)
        const acked = yield* databaseDefect(outbox.delivered(ids))
        yield* outbox.wake(dm)
        return { acked }
      })
    })
  })
)
