/** The agents' API as each transport offers it, for suites that must pass unchanged on all of them (R30). */
import { describe } from "@effect/vitest"
import type { HostTool } from "#src/choird/hosttools/HostTool.ts"
import { openSessionWith, type Transport } from "./agentSocket.ts"

const TRANSPORTS: ReadonlyArray<Transport> = ["uds", "https"]

const over = (transport: Transport) => ({
  transport,
  openSession: openSessionWith([], transport),
  openSessionWith: (hostTools: ReadonlyArray<HostTool>) => openSessionWith(hostTools, transport)
})

/** One suite, on the session's Unix socket and on TCP with TLS. */
export const describeTransports = (name: string, suite: (ways: ReturnType<typeof over>) => void) => {
  for (const transport of TRANSPORTS) describe(`${name} (${transport})`, () => suite(over(transport)))
}
