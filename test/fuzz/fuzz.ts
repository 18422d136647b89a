/** Mutated requests against a whole agents' API: real listeners on both transports, real stores, a real database (R27). */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Clock, Context, Effect, Layer, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { layerAgentRoutes } from "#src/choird/api/AgentRoutes.ts"
import { AgentSockets } from "#src/choird/api/AgentSockets.ts"
import { AgentTcp } from "#src/choird/api/AgentTcp.ts"
import { LaneReports } from "#src/choird/api/LaneReports.ts"
import { layerAgentDoors } from "#src/choird/api/layerAgentDoors.ts"
import { CommandLine } from "#src/choird/config/AgentTransport.ts"
import { layerHostTools } from "#src/choird/hosttools/layerHostTools.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { makeCertificate } from "../support/certificate.ts"
import { BINDINGS, newAgent, stores } from "../support/stores.ts"
import { hostileRequest, randomOf } from "./requests.ts"

/** Below R47's 8, since a connection that is being closed counts as well. */
const CONNECTIONS = 5
const BATCH = 100
const BROKEN_ONE_IN = 10
/** A handshake costs several times what a request does, so that one batch of so many goes over TLS. */
const BATCHES_A_HANDSHAKE = 4

/** Times a thousand, so that the rates of R47 let requests through to what is behind them. */
const fastClock = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  const began_ms = clock.currentTimeMillisUnsafe()
  const now_ms = () => began_ms + (clock.currentTimeMillisUnsafe() - began_ms) * 1000
  return Object.assign(Object.create(clock) as typeof clock, {
    currentTimeMillisUnsafe: now_ms,
    currentTimeMillis: Effect.sync(now_ms)
  })
})

/** A session that runs, and what was asked of its lifecycle. */
const open = Effect.gen(function* () {
  const asked: Array<string> = []
  const { ca, cert, key } = yield* makeCertificate
  const base = yield* Layer.build(stores)
  const agent_id = newAgent()
  const { epoch, session_id } = yield* Context.get(base, SessionStore).create(agent_id, BINDINGS, "abc1234")
  const tokens = Context.get(base, Tokens)
  yield* tokens.bootstrap(session_id, agent_id, epoch)
  const lease = yield* tokens.lease({ session_id, agent_id, epoch, standing: "bootstrap" })
  const view: AgentView = {
    agent_id,
    status: "running",
    session_id,
    epoch,
    bindings: BINDINGS,
    image_version: "abc1234",
    since_ms: 0,
    config_version: 0,
    reason: null,
    started_with: null
  }
  const tell = (what: string) => Effect.sync(() => void asked.push(what))
  const lifecycle = Layer.mock(Lifecycle, {
    list: Effect.succeed([view]),
    view: () => Effect.succeed(view),
    hello: () => tell("hello"),
    heard: () => tell("heard"),
    terminating: () => tell("terminating"),
    changes: Stream.never
  })
  const flags = { transport: "both" as const, listen: "127.0.0.1:0", tls_cert: cert, tls_key: key }
  const services = yield* Layer.build(
    Layer.provide(layerAgentRoutes, layerHostTools).pipe(
      Layer.provideMerge(layerAgentDoors),
      Layer.provideMerge([LaneReports.layer, lifecycle, Layer.succeedContext(base)]),
      Layer.provide(Layer.succeed(CommandLine, flags))
    )
  )
  const { path } = yield* Context.get(services, AgentSockets).open(session_id)
  const { port = 0 } = Context.get(services, AgentTcp)
  const dialling = {
    uds: (): Socket => connect(path),
    https: (): Socket => connectTls({ host: "127.0.0.1", port, ca, servername: "localhost" })
  }
  return { asked, dialling, known: { session_id, token: Redacted.value(lease) } }
})

/** Every row of choird's own tables but the audit's, which is there to grow. */
const stateOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`SELECT table_name AS name FROM information_schema.tables
    WHERE table_schema = 'choir_control' AND table_type = 'BASE TABLE' AND table_name <> 'audit' ORDER BY 1`
  const rows: Array<string> = []
  for (const { name } of tables) {
    const [found] = yield* sql<{ readonly count: number; readonly hash: string | null }>`
      SELECT count(*)::int AS count, md5(string_agg(t::text, ',' ORDER BY t::text)) AS hash
      FROM ${sql("choir_control")}.${sql(name)} t`
    rows.push(`${name} ${found?.count} ${found?.hash}`)
  }
  return rows
}).pipe(Effect.orDie)

/** Sends on a connection of its own, since the server closes one whose body it did not want, and gives the answers. */
const send = (dial: () => Socket, request: string, broken: boolean) =>
  Effect.callback<string>((resume) => {
    let seen = ""
    const socket = dial()
    socket.on("data", (part) => (seen += part.toString()))
    socket.on("error", () => {})
    socket.once("close", () => resume(Effect.succeed(seen)))
    // The server gives up on a peer that says it is done, which is the way to get rid of one that may still wait for more.
    if (broken) socket.end(request)
    else socket.write(request)
    return Effect.sync(() => socket.destroy())
  })

export interface FuzzOptions {
  readonly requests: number
  readonly seed: number
  /** Called after each thousand requests. */
  readonly onThousand?: (sent: number) => void
}

/** Sends them over both transports. `changed` is what differs in the database afterwards, which must be nothing. */
export const fuzz = Effect.fn("fuzz")(function* ({ onThousand, requests, seed }: FuzzOptions) {
  const { asked, dialling, known } = yield* Effect.provideService(open, Clock.Clock, yield* fastClock)
  const random = randomOf(seed)
  const before = yield* stateOf
  const statuses: Record<string, number> = {}
  for (let sent = 0; sent < requests; sent += BATCH) {
    const dial = (sent / BATCH) % BATCHES_A_HANDSHAKE === 0 ? dialling.https : dialling.uds
    const batch = Array.from({ length: BATCH }, () => random(BROKEN_ONE_IN) === 0)
    const requests = batch.map((broken) => ({ broken, text: hostileRequest(random, known, broken) }))
    const answers = yield* Effect.forEach(requests, ({ broken, text }) => send(dial, text, broken), {
      concurrency: CONNECTIONS
    })
    for (const [, status = ""] of answers.join("").matchAll(/HTTP\/1\.1 (\d{3}) /gu))
      statuses[status] = (statuses[status] ?? 0) + 1
    if ((sent + BATCH) % 1000 === 0) onThousand?.(sent + BATCH)
  }
  const after = yield* stateOf
  return { asked, statuses, tables: before.length, changed: after.filter((row) => !before.includes(row)) }
})
