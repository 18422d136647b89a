/** The agent API on the real socket of one session or on TCP with TLS, over the doubles of a world. */
import { randomUUID } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { AgentSockets, layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { AgentTcp } from "#src/choird/listeners/AgentTcp.ts"
import { CommandLine } from "#src/choird/config/AgentTransport.ts"
import type { HostTool } from "#src/choird/hosttools/HostTool.ts"
import { makeCertificate } from "./certificate.ts"
import { layerWorld, makeWorld, SESSION } from "./control.ts"
import { temporaryFolder } from "./engines.ts"
import { ask, type Place } from "./unixHttp.ts"

const ZEROS = "0".repeat(64)

/** A valid body of each verb. */
export const BODIES = {
  INIT_HELLO: {
    agent_id: "ada",
    session_id: SESSION,
    image_version: "abc1234",
    agent_version: "0.1.0",
    tool_manifest_hash: ZEROS,
    skill_manifest_hash: ZEROS
  },
  GET_SECRETS: { resources: ["model-key"] },
  HEARTBEAT: {
    epoch: 1,
    base_rev: 0,
    new_rev: 0,
    hash_prev: ZEROS,
    hash_new: ZEROS,
    patches: [],
    config_version: 1,
    timestamp: "2025-01-01T00:00:00.000Z"
  },
  REQUEST_APPROVAL: { request_type: "confirm_tool", payload: {}, call_id: "c-1" },
  REPORT_STATUS: {},
  TERMINATE_SELF: { reason: "stop", final_rev: 0, final_hash: ZEROS },
  FETCH_DYNAMIC_CONFIG: { current_config_version: 1 },
  EXECUTE_HOST_TOOL: { tool_name: "choir.web.browse", call_id: "c-1", input: {} }
} as const
export type Verb = keyof typeof BODIES
export const VERBS = Object.keys(BODIES) as ReadonlyArray<Verb>

interface Call {
  readonly body?: unknown
  readonly token?: string
  readonly id?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A world whose session listens, and a function that asks it. */
export const openSession = Effect.suspend(() => openSessionWith([]))

/** The ways to choird that agents have. */
export type Transport = "uds" | "https"

const openTcp = Effect.gen(function* () {
  const certificate = yield* makeCertificate
  const { cert, key } = certificate
  return { certificate, flags: { transport: "both" as const, listen: "127.0.0.1:0", tls_cert: cert, tls_key: key } }
})

/** The same with host tools, and by a transport. */
export const openSessionWith = Effect.fnUntraced(function* (
  hostTools: ReadonlyArray<HostTool>,
  transport: Transport = "uds"
) {
  const world = yield* makeWorld
  const home = yield* temporaryFolder
  const tcp = transport === "uds" ? undefined : yield* openTcp
  const services = yield* Layer.build(
    layerAgentRoutes.pipe(
      Layer.provideMerge(layerAgentListeners),
      Layer.provideMerge(layerWorld(world, home, hostTools)),
      Layer.provide(Layer.succeed(CommandLine, tcp?.flags ?? {}))
    )
  )
  const socket = yield* Effect.provideContext(
    Effect.flatMap(AgentSockets, (sockets) => sockets.open(SESSION)),
    services
  )
  const { port = 0 } = Context.get(services, AgentTcp)
  const path: Place = tcp === undefined ? socket.path : { port, ca: tcp.certificate.ca }
  const call = (verb: Verb, { body, headers, id, token }: Call = {}) =>
    ask(path, {
      path: `/rpc/${verb}`,
      headers: {
        authorization: `Bearer ${token ?? (verb === "INIT_HELLO" ? "boot" : "lease")}`,
        "content-type": "application/json",
        "x-choir-request-id": id ?? randomUUID(),
        "x-choir-session-id": SESSION,
        ...headers
      },
      body: typeof body === "string" ? body : JSON.stringify(body ?? BODIES[verb])
    })
  return { world, services, socket, path, call, certificate: tcp?.certificate }
})
