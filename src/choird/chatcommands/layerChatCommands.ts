/** The commands of chats, with the lists that chats were shown: one for all gateways and the operator's console. */
import { Layer } from "effect"
import { AgentCommands } from "./AgentCommands.ts"
import { Choices } from "./Choices.ts"
import { GatewayCommands } from "./GatewayCommands.ts"

export const layerChatCommands = GatewayCommands.layer.pipe(
  Layer.provide(AgentCommands.layer),
  Layer.provideMerge(Choices.layer)
)
