/** The features of a runtime that images and tools may rely on in this installation. */
import { cutsNetwork } from "./AgentCommand.ts"
import type { RuntimeStatus } from "./ContainerRuntime.ts"

type RuntimeType = RuntimeStatus["type"]

/** Features of a runtime. */
interface Capabilities {
  /** Whether Dockerfiles are built, so that a tool may have sources instead of an executable. */
  readonly compiles: boolean
  /** Whether a tool is cut off from the network when its manifest says `network: false`. */
  readonly cutsNetwork: boolean
}

/** @param isCut whether this installation has the program that cuts commands off from the network. */
export const capabilities = (runtime: RuntimeType, isCut = cutsNetwork()): Capabilities => ({
  compiles: runtime === "docker",
  cutsNetwork: isCut
})

/**
 * A sentence about the network that a tool reaches here, which no manifest can change.
 *
 * @param isCut whether this installation has the program that cuts commands off from the network.
 */
export const toolNetworkFact = (
  runtime: RuntimeType,
  asks: boolean,
  containerNetwork: string,
  isCut = cutsNetwork()
): string => {
  if (isCut && !asks) return "network: no, it is cut off here"
  return runtime === "docker"
    ? `network: yes, all that the agent's container reaches (runtime.network ${containerNetwork})`
    : "network: yes, nothing limits it here"
}
