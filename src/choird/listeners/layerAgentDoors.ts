/** What listens for agents, before there is anything to answer them. */
import { Layer } from "effect"
import { AgentApp } from "./AgentApp.ts"
import { AgentSockets } from "./AgentSockets.ts"
import { AgentTcp } from "./AgentTcp.ts"

export const layerAgentDoors = AgentSockets.layer.pipe(
  Layer.provideMerge(AgentTcp.layer),
  Layer.provideMerge(AgentApp.layer)
)
