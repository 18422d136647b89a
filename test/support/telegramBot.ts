/** A bot of the Telegram double with one person and one running agent, and what tests ask of the bot. */
import { Effect, Layer, Stream } from "effect"
import { AgentId, ResourceName, SessionId } from "#schema/Ids.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Images } from "#src/choird/images/Images.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { Reconfiguration } from "#src/choird/reconfiguration/Reconfiguration.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigWriter } from "#src/choird/reconfiguration/ConfigWriter.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { CardTaps } from "#src/choird/chatcommands/CardTaps.ts"
import { AgentCommands } from "#src/choird/chatcommands/AgentCommands.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"
import { Choices } from "#src/choird/chatcommands/Choices.ts"
import { GatewayCommands } from "#src/choird/chatcommands/GatewayCommands.ts"
import { OutgoingFiles } from "#src/choird/gateway/OutgoingFiles.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import { Transcriber } from "#src/choird/gateway/Transcriber.ts"
import { Presence } from "#src/choird/gateway/Presence.ts"
import { Contexts, NoContext } from "#src/choird/queues/Contexts.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { Reactions } from "#src/choird/queues/Reactions.ts"
import { GatewayAlerts } from "#src/choird/gateway/GatewayAlerts.ts"
import { Gateways } from "#src/choird/gateway/Gateways.ts"
import { agentView } from "./agentView.ts"
import { quietMemory } from "./quietMemory.ts"
import { BINDINGS, PHONE } from "./stores.ts"
import type { TelegramBot } from "./testing/Telegram.ts"

export const BOT = ResourceName.make("bot")
export const AGENT = AgentId.make("helper")
export const SESSION = SessionId.make("0123456789abcdef")
/** The person at the DM of the bot. */
export const USER = 1
export const DMS = [{ name: PHONE, user_id: String(USER), admin: false }]

const running = agentView(AGENT, { session_id: SESSION, bindings: { ...BINDINGS, dm: PHONE } })
/** The person's agent, which runs. */
export const lifecycle = Layer.mock(Lifecycle, {
  list: Effect.succeed([running]),
  view: () => Effect.succeed(running),
  recover: Effect.void,
  changes: Stream.empty
})

/** Nobody waits, and nothing is being written. */
export const quietServices = Layer.mergeAll(
  quietMemory,
  Choices.layer,
  Layer.mock(Pairings, {
    redeem: () => Effect.succeed(false),
    redeemGroup: () => Effect.succeed(false),
    recognise: () => Effect.undefined
  }),
  Layer.mock(AgentCommands, {}),
  Layer.mock(Contexts, { ask: (_, lane) => new NoContext({ kind: "NOT_ANSWERED", lane }) }),
  Layer.mock(Drafts, { changes: Stream.never }),
  Layer.mock(WorkspaceLabels, { receive: () => Effect.void }),
  Layer.mock(Transcriber, { transcribe: () => Effect.undefined }),
  Layer.mock(OutgoingFiles, { stage: () => Effect.void, ready: () => Effect.succeed([]), end: () => Effect.void }),
  Layer.mock(Presence, {
    asked: () => Effect.void,
    isAtWork: () => Effect.succeed(false),
    runs: () => Effect.undefined,
    isAnswered: () => false,
    isDue: () => Effect.succeed(true),
    wakes: () => Stream.never,
    seen: () => Stream.never
  }),
  Layer.mock(Reactions, { leftover: () => Effect.succeed([]) })
)

/** The same, of people who chose nothing for their chats. */
export const quiet = Layer.merge(
  quietServices,
  Layer.mock(ChatSettings, { rich: () => Effect.succeed(false), moved: () => Effect.undefined })
)

export const gateways = Layer.merge(Gateways.layer.pipe(Layer.provide(GatewayCommands.layer)), CardTaps.layer).pipe(
  Layer.provideMerge(GatewayAlerts.layer),
  Layer.provideMerge(quietServices)
)

/** What commands about agents need, for suites that give none. */
export const noAgentCommands = Layer.mergeAll(
  Layer.mock(ConfigWriter, {}),
  Layer.mock(ContainerRuntime, { type: "process" }),
  Layer.mock(Images, {}),
  Layer.mock(Leases, {}),
  Layer.mock(Reconfiguration, {}),
  Layer.mock(SessionStore, {}),
  Layer.mock(WorkspaceLabels, {})
)

/** No approval waits. */
export const noApprovals = Layer.mock(Approvals, { list: () => Effect.succeed([]) })

export const polls = (bot: TelegramBot) =>
  Effect.map(bot.calls.all, (calls) => calls.filter(({ method }) => method === "getUpdates"))
/** Waits for the n-th call of a method, from 1. The journal may show an entry twice. */
const nthCall = (bot: TelegramBot, name: string, count: number) => {
  const seen = new Set<unknown>()
  return bot.calls.first((call) => call.method === name && seen.add(call).size === count)
}
export const nthPoll = (bot: TelegramBot, count: number) => nthCall(bot, "getUpdates", count)
export const texts = (bot: TelegramBot) => Effect.map(bot.sent.all, (sent) => sent.map(({ text }) => text))
