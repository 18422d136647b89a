/** What images and tools may count on, by the runtime that their agents run in. One answer for builds, loads, proposals and cards. */
import type { RuntimeStatus } from "./ContainerRuntime.ts"

type RuntimeType = RuntimeStatus["type"]

export interface Capabilities {
  /** Whether Dockerfiles are built, so that a tool may have sources in the place of its executable. */
  readonly compiles: boolean
  /** Whether a tool is kept off the network whose manifest says `network: false`. */
  readonly cutsNetwork: boolean
}

const CAPABILITIES: Readonly<Record<RuntimeType, Capabilities>> = {
  docker: { compiles: true, cutsNetwork: true },
  sandbox: { compiles: false, cutsNetwork: true },
  process: { compiles: false, cutsNetwork: true }
}

export const capabilities = (runtime: RuntimeType): Capabilities => CAPABILITIES[runtime]

/** What a tool reaches here, as a fact that no manifest can change. */
export const toolNetworkFact = (runtime: RuntimeType, asks: boolean, containerNetwork: string): string => {
  if (capabilities(runtime).cutsNetwork && !asks) return "network: no, it is cut off here"
  return runtime === "docker"
    ? `network: yes, all that the agent's container reaches (runtime.network ${containerNetwork})`
    : "network: yes, nothing limits it here"
}
