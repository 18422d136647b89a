/** Mutated requests against a whole agents' API: real listeners on both transports, real stores, a real database (R27). */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Clock, Context, Effect, Layer, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { layerAgentRoutes } from "#src/choird/api/agent/AgentRoutes.ts"
import { AgentSockets, layerAgentListeners } from "#src/choird/listeners/AgentSockets.ts"
import { AgentTcp } from "#src/choird/listeners/AgentTcp.ts"
import { CommandLine } from "#src/choird/config/AgentTransport.ts"
import { layerHostTools } from "#src/choird/hosttools/HostTools.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Tokens } from "#src/choird/sessions/Tokens.ts"
import { agentView } from "../support/agentView.ts"
import { makeCertificate } from "../support/certificate.ts"
import { BINDINGS, newAgent, stores } from "../support/stores.ts"
import type { Told, Work } from "./client.ts"

const CLIENT = join(import.meta.dirname, "client.ts")

/** Times a thousand, so that the rates of R47 let requests through to what is behind them. */
const fastClock = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  const began_ms = clock.currentTimeMillisUnsafe()
  const now_ms = () => began_ms + (clock.currentTimeMillisUnsafe() - began_ms) * 1000
  const nanos = () => clock.monotonicTimeNanosUnsafe() * 1000n
  return Object.assign(Object.create(clock) as typeof clock, {
    currentTimeMillisUnsafe: now_ms,
    currentTimeMillis: Effect.sync(now_ms),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos)
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
  const manifests = { tool_manifest_hash: "0".repeat(64), skill_manifest_hash: "0".repeat(64) }
  const image_version = "abc1234"
  const view = agentView(agent_id, {
    session_id,
    epoch,
    bindings: BINDINGS,
    image_version,
    manifests,
    config_version: 0
  })
  const tell = (what: string) => Effect.sync(() => void asked.push(what))
  const lifecycle = Layer.mock(Lifecycle, {
    list: Effect.succeed([view]),
    view: () => Effect.succeed(view),
    hello: () => tell("hello"),
    heartbeat: () => tell("heard"),
    whileAnswering: (_, answer) => answer,
    terminating: () => tell("terminating"),
    changes: Stream.never
  })
  const flags = { transport: "both" as const, listen: "127.0.0.1:0", tls_cert: cert, tls_key: key }
  const services = yield* Layer.build(
    Layer.provide(layerAgentRoutes, layerHostTools(Effect.succeed([]))).pipe(
      Layer.provideMerge(layerAgentListeners),
      Layer.provideMerge([lifecycle, NodeFileSystem.layer, Layer.succeedContext(base)]),
      Layer.provide(Layer.succeed(CommandLine, flags))
    )
  )
  const { path } = yield* Context.get(services, AgentSockets).open(session_id)
  const { port = 0 } = Context.get(services, AgentTcp)
  return { asked, path, port, ca, known: { session_id, token: Redacted.value(lease) } }
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

/** Runs the peer in its own process, and gives what it was answered. */
const attack = (work: Work, onThousand: (sent: number) => void) =>
  Effect.callback<Readonly<Record<string, number>>>((resume) => {
    const child = spawn(process.execPath, [CLIENT, JSON.stringify(work)], { stdio: ["ignore", "pipe", "inherit"] })
    let statuses: Readonly<Record<string, number>> | undefined
    createInterface({ input: child.stdout }).on("line", (line) => {
      const told = JSON.parse(line) as Told
      if ("sent" in told) onThousand(told.sent)
      else statuses = told.statuses
    })
    child.once("close", (code) =>
      resume(statuses === undefined ? Effect.die(new Error(`the peer ended with ${code}`)) : Effect.succeed(statuses))
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

export interface FuzzOptions {
  readonly requests: number
  readonly seed: number
  /** Called after each thousand requests. */
  readonly onThousand?: (sent: number) => void
}

/** Sends them over both transports. `changed` is what differs in the database afterwards, which must be nothing. */
export const fuzz = Effect.fn("fuzz")(function* ({ onThousand = () => {}, requests, seed }: FuzzOptions) {
  const { asked, known, ...address } = yield* Effect.provideService(open, Clock.Clock, yield* fastClock)
  const before = yield* stateOf
  const statuses = yield* attack({ ...address, known, requests, seed }, onThousand)
  const after = yield* stateOf
  return { asked, statuses, tables: before.length, changed: after.filter((row) => !before.includes(row)) }
})
