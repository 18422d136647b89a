/**
 * P8: each verb over a session's Unix socket, with authentication, idempotency and schemas, beside a bare HttpApi endpoint on a socket of
 * the same process. The stores behind the verbs are in memory, so that what is measured is the way to them and back. Both are asked by
 * the same client over one connection that stays open, in turns.
 */
import { randomUUID } from "node:crypto"
import { Agent, createServer, request } from "node:http"
import { join } from "node:path"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, References, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { HttpApi, HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { makeHostTool } from "#src/choird/hosttools/HostTool.ts"
import { genesis, hex } from "#src/shared/events/hashChain.ts"
import { BODIES, openSessionWith, VERBS, type Verb } from "../test/support/agentSocket.ts"
import { SESSION } from "../test/support/control.ts"
import { temporaryFolder } from "../test/support/engines.ts"
import { median, ratioAtMost, type Row, spread } from "./Row.ts"
import { AGENT_REQUESTS_BURST, AGENT_REQUESTS_PER_SECOND } from "#src/choird/listeners/OpenSession.ts"

/** A host tool that does nothing, so that the way to it and back is left. */
const IDLE = makeHostTool({
  name: "bench.idle",
  effect: "none",
  timeout_ms: 1000,
  input: Schema.Struct({}),
  run: () => Effect.succeed({ status: "success", output: {} })
})

/** The body of each verb that is answered 200 each time: a host tool for another call, and the goodbye of a flushed session. */
const bodyOf = (verb: Verb, call: number): unknown => {
  switch (verb) {
    case "EXECUTE_HOST_TOOL":
      return { tool_name: IDLE.name, call_id: `c-${call}`, input: {} }
    case "TERMINATE_SELF":
      return { ...BODIES.TERMINATE_SELF, final_hash: hex(genesis(SESSION)) }
    default:
      return BODIES[verb]
  }
}

const ROUNDS = 6
const WARM_ROUNDS = 2
/** A burst below the limit of a session's socket (R47), and the pause in which its allowance comes back. */
const CALLS = Math.floor(AGENT_REQUESTS_BURST * 0.9)
const PAUSE_MS = (1000 * AGENT_REQUESTS_BURST) / AGENT_REQUESTS_PER_SECOND

const Echo = Schema.Struct({ text: Schema.String })
class EchoApi extends HttpApi.make("echo").add(
  HttpApiGroup.make("echo").add(HttpApiEndpoint.post("echo", "/echo", { payload: Echo, success: Echo }))
) {}

const Handlers = HttpApiBuilder.group(EchoApi, "echo", (handlers) =>
  Effect.succeed(handlers.handleAll({ echo: ({ payload }) => Effect.succeed(payload) }))
)

const openEcho = Effect.gen(function* () {
  const path = join(yield* temporaryFolder, "echo.sock")
  yield* Layer.build(
    HttpRouter.serve(HttpApiBuilder.layer(EchoApi), { disableLogger: true }).pipe(
      Layer.provide(Handlers),
      Layer.provide(NodeHttpServer.layer(createServer, { path }))
    )
  )
  return path
})

/** One connection to a socket that stays open. */
const connection = (socketPath: string) =>
  Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
    (agent) => Effect.sync(() => agent.destroy())
  ).pipe(
    Effect.map(
      (agent) => (path: string, headers: Readonly<Record<string, string>>, body: string) =>
        Effect.callback<number>((resume) => {
          const started = performance.now()
          const sent = request({ agent, socketPath, path, method: "POST", headers }, (response) => {
            response.resume()
            response.once("end", () =>
              resume(
                response.statusCode === 200
                  ? Effect.succeed(performance.now() - started)
                  : Effect.die(new Error(`${path} is answered ${response.statusCode}`))
              )
            )
          })
          sent.once("error", (error) => resume(Effect.die(error)))
          sent.end(body)
        })
    )
  )

const JSON_BODY = { "content-type": "application/json" }

const measure = Effect.fnUntraced(function* (verb: Verb) {
  const { path } = yield* openSessionWith([IDLE])
  const verbs = yield* connection(path as string)
  const echo = yield* connection(yield* openEcho)
  // The bootstrap token's reply may be asked for again as long as no other verb came (D12).
  const authorization = `Bearer ${verb === "INIT_HELLO" ? "boot" : "lease"}`
  const asVerb = (body: string) =>
    Effect.suspend(() =>
      verbs(
        `/rpc/${verb}`,
        { ...JSON_BODY, authorization, "x-choir-request-id": randomUUID(), "x-choir-session-id": SESSION },
        body
      )
    )
  // As long as the verb's own body.
  const asEcho = (body: string) =>
    echo("/echo", JSON_BODY, JSON.stringify({ text: "x".repeat(Math.max(0, body.length - 11)) }))
  const [ours, floor]: [Array<number>, Array<number>] = [[], []]
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
    for (let call = 0; call < CALLS; call++) {
      const body = JSON.stringify(bodyOf(verb, (round + WARM_ROUNDS) * CALLS + call))
      const times = [yield* asVerb(body), yield* asEcho(body)] as const
      if (round < 0) continue
      ours.push(times[0])
      floor.push(times[1])
    }
    yield* Effect.sleep(PAUSE_MS)
  }
  yield* Effect.sync(() => process.stderr.write(`P8: ms of ${verb} ${spread(ours)}, of a bare echo ${spread(floor)}\n`))
  return ratioAtMost("P8", `${verb}, of a bare echo`, median(ours), "ms", median(floor), 1.3)
}, Effect.scoped)

// A hello is a line of the log, which would be in the table.
export const verbs: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.forEach(VERBS, measure).pipe(
  Effect.provideService(References.MinimumLogLevel, "Warn")
)
