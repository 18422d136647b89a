/** The agent API on the real socket of one session, over the doubles of a world. */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { layerAgentRoutes } from "#src/choird/api/AgentRoutes.ts"
import { AgentSockets } from "#src/choird/api/AgentSockets.ts"
import { LaneReports } from "#src/choird/api/LaneReports.ts"
import type { HostTool } from "#src/choird/hosttools/HostTool.ts"
import { layerWorld, makeWorld, SESSION } from "./control.ts"
import { temporaryFolder } from "./engines.ts"
import { ask } from "./unixHttp.ts"

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
  REPORT_STATUS: { lane: "edge", state: "EDGE_IDLE", skill: "plan", budget_remaining: { tokens: 1, tool_calls: 1 } },
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

/** The same with host tools. */
export const openSessionWith = Effect.fnUntraced(function* (hostTools: ReadonlyArray<HostTool>) {
  const world = yield* makeWorld
  const home = yield* temporaryFolder
  const services = yield* Layer.build(
    layerAgentRoutes.pipe(
      Layer.provideMerge(AgentSockets.layer),
      Layer.provideMerge(LaneReports.layer),
      Layer.provideMerge(layerWorld(world, home, hostTools))
    )
  )
  const { dir, path } = yield* Effect.provideContext(
    Effect.flatMap(AgentSockets, (sockets) => sockets.open(SESSION)),
    services
  )
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
  return { world, services, dir, path, call }
})
