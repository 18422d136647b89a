/** Lives of choird over one database: a home with images, real sockets, agents that are real processes without a model. */
import { createHash, randomUUID } from "node:crypto"
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { rgPath } from "@vscode/ripgrep"
import { Effect, Layer, Logger, Option, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type AgentId, ResourceName } from "#schema/Ids.ts"
import { CommitId } from "#schema/Image.ts"
import { imageVersion, writeImage } from "#src/choird/images/ImageFolder.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { layerControlPlane } from "#src/choird/ControlPlane.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import * as ProcessRuntime from "#src/choird/runtime/process/ProcessRuntime.ts"
import { oneEngine, temporaryFolder } from "./engines.ts"
import { makeJournal } from "./testing/Journal.ts"
import { newAgent } from "./stores.ts"

const DM = ResourceName.make("desk")

/** A new, migrated database for all tests of a suite, which say nothing on the terminal. */
export const database = Layer.suspend(() => oneEngine().layer).pipe(Layer.merge(Logger.layer([])))

/** Starting real processes may take a while on a busy machine. */
export const LIVE = { timeout: 300_000 }

const NoCgroups = Layer.succeed(Cgroups, {
  enforced: { cpus: false, memory_mb: false, pids: false },
  create: () => Effect.succeed({ joins: [], oomKills: Effect.succeed(0) }),
  members: () => Effect.succeed([]),
  remove: () => Effect.void
})

const fakePrograms = {
  node: realpathSync(process.execPath),
  program: join(import.meta.dirname, "fakeAgent.ts"),
  rg: rgPath
}

const COMMIT = CommitId.make("0".repeat(40))

/** Puts an image where a build would, as the agent's newest one; `of` tells its images apart. */
export const makeImage = Effect.fnUntraced(function* (home: string, agent_id: AgentId, of = "") {
  const agent = CommitId.make(createHash("sha1").update(`${agent_id}${of}`).digest("hex"))
  const commits = { global: COMMIT, agent }
  const version = imageVersion(commits, false)
  const folder = join(home, "images", agent_id)
  mkdirSync(join(folder, version), { recursive: true })
  yield* writeImage(join(folder, version), agent_id, version, commits, [])
  const builds = join(folder, "builds.json")
  const earlier = existsSync(builds) ? JSON.parse(readFileSync(builds, "utf8")) : []
  writeFileSync(builds, JSON.stringify([version, ...earlier]))
  return version
}, Effect.provide(NodeServices.layer))

type Json = Readonly<Record<string, unknown>>

/** Homes share the suite's database, and a choird would take up what an earlier test left there. */
const forgetOthers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.leases`
  yield* sql`UPDATE choir_control.sessions SET status = 'stopped' WHERE status = 'active'`
})

type Also = (agent_id: AgentId, config: Json) => Json

/** A home for a choird over the suite's database. */
export const makeAgentHome = (also?: Also) => Effect.andThen(forgetOthers, makeHomeFolder(also))

/** A home with one agent that has an image, a workspace and a console DM; `also` goes over the top level of config.json. */
export const makeHomeFolder = Effect.fnUntraced(function* (also: Also = () => ({})) {
  const root = realpathSync(yield* temporaryFolder)
  const agent_id = newAgent()
  const home = join(root, "home")
  const workspace = join(root, "workspace")
  mkdirSync(home, { mode: 0o700 })
  const spare = join(root, "spare")
  for (const folder of [workspace, spare]) mkdirSync(folder)
  const config: Json = {
    global_repo: { url: "/srv/global" },
    workspaces: { main: { path: workspace }, spare: { path: spare } },
    models: { small: { provider: "test", model: "s", endpoint: "http://127.0.0.1:1" } },
    gateways: { terminal: { type: "console" } },
    dms: { desk: { gateway: "terminal", user_id: "local" }, hall: { gateway: "terminal", user_id: "other" } },
    runtime: { type: "process" },
    agents: { [agent_id]: { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small", dm: "desk" } } },
    heartbeat_interval_ms: 100,
    // So long that a busy machine makes no agent look dead; a test of silence names its own.
    crash_detection_threshold_ms: 60_000
  }
  const write = (name: string, content: unknown) => {
    writeFileSync(join(home, name), JSON.stringify(content), { mode: 0o600 })
    chmodSync(join(home, name), 0o600)
  }
  write("config.json", { ...config, ...also(agent_id, config) })
  write("secrets.json", {})
  yield* makeImage(home, agent_id)
  return {
    home,
    agent_id,
    workspace,
    write,
    /** How the agent starts from now on; see fakeAgent.ts. */
    script: (text: string) => writeFileSync(join(workspace, "script"), text),
    noImage: (id: AgentId = agent_id) => rmSync(join(home, "images", id), { recursive: true })
  }
})

type Runtime = ContainerRuntime["Service"]

/** choird's services over the suite's database, with agents that are real processes; `logs` may be made elsewhere. */
export const layerLife = (
  home: string,
  changed: (runtime: Runtime) => Runtime = (runtime) => runtime,
  logs: Layer.Layer<LogFiles> = LogFiles.layer(home, undefined)
) =>
  layerControlPlane(Effect.succeed(fakePrograms)).pipe(
    Layer.provideMerge(
      Layer.effect(ContainerRuntime, Effect.map(ContainerRuntime, changed)).pipe(
        Layer.provide(ProcessRuntime.layer),
        Layer.provide([NoCgroups, DockerEngine.layer({})])
      )
    ),
    Layer.provideMerge(Layer.mergeAll(ConfigStore.layer({ home }), logs, NodeServices.layer))
  )

/** Begins a life of choird in this home; closing `scope` is its stop. It ends with the caller's at the latest. `changed` goes over its runtime. */
export const beginLife = Effect.fnUntraced(function* (home: string, changed?: (runtime: Runtime) => Runtime) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const services = yield* Layer.build(layerLife(home, changed)).pipe(Scope.provide(scope))
  const views = makeJournal<AgentView>()
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideContext(effect, services)
  const { logger } = yield* within(LogFiles)
  const lifecycle = yield* within(Lifecycle)
  yield* Stream.runForEach(lifecycle.changes, (view) => Effect.sync(() => views.record(view))).pipe(
    Effect.forkIn(scope, { startImmediately: true })
  )
  const outbox = yield* within(Outbox)
  const inbox = yield* within(Inbox)
  return {
    scope,
    services,
    lifecycle,
    logged: Logger.layer([logger]),
    within,
    views: views.journal,
    /** Puts a message into the agent's inbox. */
    say: (agent_id: AgentId, text: string) => {
      const place = { gateway: ResourceName.make("terminal"), dm: DM, client_id: randomUUID() }
      return inbox.receive({ ...place, agent_id, text, attachments: [] })
    },
    /** Waits until the DM is told this, by the agent or by choird. */
    told: (agent_id: AgentId, fits: RegExp) =>
      outbox.wakes(DM).pipe(
        Stream.mapEffect(() => outbox.undelivered(DM, undefined)),
        Stream.flattenIterable,
        Stream.filter((row) => row.agent_id === agent_id && fits.test(row.text)),
        Stream.runHead,
        Effect.map(Option.getOrThrow)
      )
  }
})
