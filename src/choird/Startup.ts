/** The start of choird, in the order in which it happens. */
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { logDeath, restarted } from "#src/shared/background.ts"
import { agentPrograms } from "#src/choird/runtime/AgentCommand.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { layerOperatorServer } from "#src/choird/api/operator/OperatorServer.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { CommandLine, type TransportFlags } from "#src/choird/config/AgentTransport.ts"
import { takeHostWayOut } from "#src/choird/config/hostWayOut.ts"
import { takeTimeZone } from "#src/choird/config/homeTimeZone.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { keepLastGood, orLastGood } from "#src/choird/reconfiguration/LastGood.ts"
import { layerControlPlane } from "./ControlPlane.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { configuredDatabase } from "#src/choird/database/configuredDatabase.ts"
import { Database } from "#src/choird/database/Database.ts"
import { layerGateways } from "./channels.ts"
import type { HomeRecord } from "#src/shared/files/homeRecord.ts"
import { HOME_FOLDERS } from "#src/shared/files/homeFolder.ts"
import { folderWords, hostWarnings } from "#src/shared/files/hostProblems.ts"
import { CONFIG_FILE, LAST_GOOD_FILE } from "#src/shared/config/configFiles.ts"
import { Executions } from "#src/choird/proposals/Executions.ts"
import { ProposalRehearsals } from "#src/choird/proposals/ProposalRehearsals.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { followMove, homeInPlace, recordHome } from "./homePlace.ts"
import { lockHome } from "./HomeLock.ts"
import { hostFits } from "./hostFits.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { SessionMemory } from "#src/choird/memory/SessionMemory.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { Plans } from "#src/choird/plans/Plans.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { chosenRuntime } from "./chosenRuntime.ts"
import { layerExporters } from "#src/choird/telemetry/Exporters.ts"

const STEPS = 10

/** Logs a finished step and how long it took. */
const step =
  (number: number, done: string) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.gen(function* () {
      const since_ms = yield* monotonicMs
      const result = yield* work
      yield* Effect.logInfo(`${number}/${STEPS} ${done} in ${(yield* monotonicMs) - since_ms} ms`)
      return result
    })

class HomeNotWritable extends Schema.TaggedError<HomeNotWritable>()("HomeNotWritable", {
  path: Schema.String,
  /** A predicate. */
  problem: Schema.String
}) {
  override get message() {
    return `${this.path} ${this.problem}. Give the whole home to the user that runs choird, on a disk with free space that may be written to: chown -R ${process.getuid?.() ?? 0} the home`
  }
}

/** Makes the folders, for their owner alone, and the record of a home that lacks them. */
const makeFolders = (home: string, record: HomeRecord | undefined) =>
  Effect.gen(function* () {
    for (const folder of HOME_FOLDERS) {
      const path = join(home, folder)
      yield* Effect.try({
        try: () => mkdirSync(path, { recursive: true, mode: 0o700 }),
        catch: (cause) => new HomeNotWritable({ path, problem: folderWords(cause) })
      })
    }
    return yield* Effect.try({
      try: () => recordHome(home, record),
      catch: (cause) => new HomeNotWritable({ path: home, problem: folderWords(cause) })
    })
  })

const summary = ({ agents, dms, gateways, models, workspaces }: Config) =>
  Object.entries({ agents, models, workspaces, gateways, dms })
    .map(([what, table]) => `${Object.keys(table).length} ${what}`)
    .join(", ")

const configured = Effect.gen(function* () {
  const store = yield* ConfigStore
  const { config, version } = yield* store.current
  return { home: store.home, config, version }
})

const makeSchemas = Effect.gen(function* () {
  const schemas = yield* AgentSchemas
  const { config } = yield* configured
  for (const id of Object.keys(config.agents)) yield* schemas.ensure(AgentId.make(id))
})

/** Keeps as much of the logs as config.json says, for as long as the scope lives. */
const followLogLimits = Effect.fnUntraced(function* (logs: LogFiles["Service"]) {
  const { changes } = yield* ConfigStore
  const follow = Stream.runForEach(changes, ({ config: { log_archive_threshold_lines, retention } }) =>
    Effect.andThen(
      logs.archiveAfter(log_archive_threshold_lines),
      logs.keep({ bytes_max: retention.logs_mb * 1024 ** 2, days_max: retention.logs_days })
    )
  )
  yield* follow.pipe(restarted("the limits of logs"), Effect.forkScoped({ startImmediately: true }))
})

/** Begins the work that choird does beside its agents, until the scope closes. */
const beginWork = Effect.gen(function* () {
  // Only once the agents that were running come up: an execution may restart one.
  yield* (yield* Executions).run.pipe(step(7, "approved changes are being executed"))
  yield* (yield* ProposalRehearsals).run
  yield* (yield* Schedules).run
  yield* (yield* Plans).run
  // Only once the agents come up, which wait for the database as well.
  yield* (yield* Retention).run
  yield* (yield* EmbeddingQueue).run
  yield* (yield* SessionMemory).run
  const { finish } = yield* Forgetting
  yield* Effect.forkScoped(logDeath("the rest of an order to forget")(finish))
})

/** Reads the configuration, then takes the home and the settings of the host for this choird. */
const takeHome = Effect.fnUntraced(function* ({
  home: given,
  last_good,
  version
}: {
  readonly home: string
  readonly version: string
  readonly last_good: boolean
}) {
  const file = last_good ? LAST_GOOD_FILE : CONFIG_FILE
  const files = yield* Layer.build(ConfigStore.layer({ home: given, file })).pipe(
    Effect.mapError(orLastGood(given)),
    step(1, `choird ${version} has read ${file} and secrets.json in ${given}`)
  )
  const { config, home } = yield* Effect.provideContext(configured, files)
  yield* hostFits(home)
  const known = yield* homeInPlace(home)
  const { lock, record } = yield* Effect.gen(function* () {
    const lock = yield* lockHome(home)
    return { lock, record: yield* makeFolders(home, known) }
  }).pipe(step(2, "the home is locked"))
  yield* takeHostWayOut(home, config)
  yield* takeTimeZone(config)
  for (const text of hostWarnings(home)) yield* Effect.logWarning(text)
  return { config, files, home, lock, record }
})

/**
 * Starts all of choird in the caller's scope and returns what to wait for: an operator's request that it ends, or the loss of the
 * embedded database. The operator's socket opens last, so that a client that reaches it finds choird ready.
 */
export const startup = Effect.fn("Startup.run")(function* (options: {
  readonly home: string
  readonly version: string
  /** The command line's options of the agents' API. */
  readonly transport: TransportFlags
  /** Starts with the last configuration that worked instead of config.json (R59). */
  readonly last_good: boolean
}) {
  const began_ms = yield* monotonicMs
  const logs = yield* LogFiles

  const { config, files, home, lock, record } = yield* takeHome(options)
  // Only once the home is locked: until then another choird may write to the same files.
  yield* Effect.provideContext(followLogLimits(logs), files)
  yield* logs.archiving
  const host = Context.merge(files, yield* Layer.build(NodeServices.layer))
  const exporters = yield* Layer.build(layerExporters(options.version)).pipe(Effect.provideContext(host))
  const base = Context.mergeAll(
    exporters,
    host,
    Context.make(LogFiles, logs),
    Context.make(CommandLine, options.transport)
  )

  const [database, runtime] = yield* Effect.all(
    [Layer.build(configuredDatabase(config.postgres, home)), Layer.build(chosenRuntime(config.runtime, home))],
    { concurrency: 2 }
  ).pipe(Effect.provideContext(base), step(3, "Postgres is connected and the runtime checked"))
  const grounds = Context.mergeAll(base, database, runtime)

  yield* makeSchemas.pipe(
    Effect.andThen(followMove(home, record)),
    Effect.provide(AgentSchemas.layer),
    Effect.provideContext(grounds),
    step(4, "the agents' schemas exist")
  )
  const plane = yield* Layer.build(layerControlPlane(agentPrograms)).pipe(
    Effect.provideContext(grounds),
    step(5, "the stores and the agents' API are open")
  )
  const services = Context.merge(grounds, plane)

  yield* Context.get(services, Lifecycle).recover.pipe(
    step(6, "what an earlier choird left running has ended, and its sessions resume")
  )
  yield* Effect.provideContext(beginWork, services)
  yield* Layer.build(layerGateways).pipe(Effect.provideContext(services), step(8, "the gateways are started"))
  yield* Effect.provideContext(keepLastGood(home, config), host)
  yield* Layer.build(Layer.provide(layerOperatorServer(options.version), Backup.layer)).pipe(
    Effect.provideContext(services),
    step(9, "the operator's socket is open")
  )
  const { version } = yield* Effect.provideContext(configured, files)
  const took_ms = (yield* monotonicMs) - began_ms
  yield* Effect.logInfo(
    `${STEPS}/${STEPS} choird ready in ${took_ms} ms: config version ${version}, ${summary(config)}`
  )
  return {
    ended: Effect.raceAllFirst([
      Context.get(services, Shutdown).requested,
      Context.get(services, Database).lost,
      lock.lost
    ])
  }
})
