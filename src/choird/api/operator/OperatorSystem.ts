/** The operator's endpoints about choird itself: status, workspaces, models, audit, backup, shutdown. */
import { Effect, Stream } from "effect"
import { GATEWAY_CONNECTING } from "#schema/DmsApi.ts"
import { HttpApiBuilder } from "effect/http-api"
import type { Config } from "#schema/Config.ts"
import { ResourceName, type AgentId } from "#schema/Ids.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { ModelSummary } from "#schema/AgentSummary.ts"
import type { SystemStatus, DiskStatus } from "#schema/SystemApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Outbox, type Undeliverable, type Unread } from "#src/choird/queues/Outbox.ts"
import type { Crowd } from "#src/choird/queues/outboxRoom.ts"
import { Database } from "#src/choird/database/Database.ts"
import { GatewayHealth, type Health } from "#src/choird/gateway/GatewayHealth.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { cutsNetwork } from "#src/choird/runtime/AgentCommand.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { ContainerRuntime, type RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { DiskGuard, lowText } from "#src/choird/retention/DiskGuard.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { labelKey, WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { overQuotaText, WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { metricsPage } from "#src/shared/wire/metricsPage.ts"
import { DISK_FIX } from "#src/shared/config/diskLimit.ts"
import { loopbackModels } from "#src/shared/config/offlineEndpoint.ts"
import { AgentSummaries, isBehind } from "./AgentSummaries.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { AUDIT_LISTED_MAX } from "#src/shared/limits.ts"
import { badRequest, fromWorkspaceRefused } from "#src/choird/api/refusals.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { allowedPlace } from "#schema/AllowedHost.ts"
import { formatPlace, hostOf, portOf } from "#src/shared/wire/hostPort.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"

/**
 * The way out of a lane that has read text from outside, in words for an operator. Pure.
 *
 * @param isCut whether commands can be kept from every network here. */
export const networkRow = (
  confirm_external: Config["approvals"]["confirm_external"],
  isCut: boolean
): NonNullable<SystemStatus["runtime"]["network"]> => {
  if (confirm_external === "never")
    return { enforced: false, detail: "open to commands of every lane: approvals.confirm_external is never" }
  const asks =
    confirm_external === "always" ? "a person is asked" : "a person is asked once their lane has read text from outside"
  return isCut
    ? { enforced: true, detail: `commands have none unless they ask for it; then ${asks}` }
    : {
        enforced: false,
        detail: "cannot be cut off here: each command counts as acting outside, and a person is asked"
      }
}

/** A warning for each model that agents cannot reach, with the entry that is missing. */
export const unlistedModels = ({ models, runtime }: Config): ReadonlyArray<string> => {
  if (runtime.network !== "allowlist") return []
  const listed = new Set(
    runtime.allow.flatMap((entry) => {
      const place = allowedPlace(entry)
      return typeof place === "string" ? [] : [`${place.host}:${place.port}`]
    })
  )
  return Object.entries(models).flatMap(([name, { endpoint }]) => {
    const url = new URL(endpoint)
    const place = formatPlace(hostOf(url), portOf(url))
    return listed.has(place) ? [] : [`agents cannot reach the model ${name}: runtime.allow lacks "${place}"`]
  })
}

/** The reset of a workspace. */
export const layerOperatorWorkspaces = HttpApiBuilder.group(
  OperatorApi,
  "workspaces",
  Effect.fnUntraced(function* (handlers) {
    const workspaces = yield* Workspaces
    return handlers.handleAll({
      reset: ({ params }) => Effect.mapError(workspaces.reset(params.name), fromWorkspaceRefused),
      trust: ({ params }) => Effect.mapError(workspaces.trust(params.name), fromWorkspaceRefused)
    })
  })
)

/** Rows of a listing whose caller names no number. */
const LISTED = 100

export const layerOperatorAudit = HttpApiBuilder.group(
  OperatorApi,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    return handlers.handleAll({
      list: Effect.fn("OperatorApi.audit")(function* ({ query: { agent_id, last = LISTED } }) {
        if (!Number.isInteger(last) || last < 0 || last > AUDIT_LISTED_MAX)
          return yield* badRequest(`last must be a whole number from 0 to ${AUDIT_LISTED_MAX}`)
        return yield* audit.last({ count: last, ...(agent_id === undefined ? {} : { agent_id }) })
      })
    })
  })
)

/** @param version of choird, as its package says. */
export const layerOperatorDatabase = (version: string) =>
  HttpApiBuilder.group(
    OperatorApi,
    "database",
    Effect.fnUntraced(function* (handlers) {
      const audit = yield* Audit
      const backup = yield* Backup
      return handlers.handleAll({
        backup: Effect.fn("OperatorApi.backup")(function* () {
          yield* audit.record({ who: "operator", action: "backup", detail: {} })
          // A defect cuts the connection, so the reader knows that the file is incomplete.
          return Stream.orDie(Stream.tapError(backup.file(version), (error) => Effect.logError(error.message)))
        })
      })
    })
  )

const NOT_STARTED: Health = { ok: false, detail: "not started" }
const CONSOLE: Health = { ok: true, detail: "choirctl chat" }

const gatewayRows = (config: Config, healths: ReadonlyMap<ResourceName, Health>): SystemStatus["gateways"] =>
  Object.entries(config.gateways).map(([key, { type }]) => {
    const name = ResourceName.make(key)
    return { name, type, ...(healths.get(name) ?? (type === "console" ? CONSOLE : NOT_STARTED)) }
  })

const modelRows = ({ models, tts, voice_profiles }: Config): ReadonlyArray<ModelSummary> => [
  ...Object.entries(models).map(([name, { model, provider }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "llm",
    provider,
    model
  })),
  ...Object.entries(tts).map(([name, { model_id, provider }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "tts",
    provider,
    model: model_id
  })),
  ...Object.entries(voice_profiles).map(([name, { tts: provider, voice_id }]): ModelSummary => ({
    name: ResourceName.make(name),
    type: "voice",
    provider,
    model: voice_id
  }))
]

const runtimeRow = (
  config: Config,
  browser: string,
  { isolation, limits, type, warnings }: RuntimeStatus
): SystemStatus["runtime"] => ({
  type,
  isolation,
  network: networkRow(config.approvals.confirm_external, cutsNetwork()),
  browser,
  limits: Object.entries(limits).flatMap(([name, enforced]) => (enforced ? [name] : [])),
  warnings
})

/** The warning about one agent; one that awaits a message needs none. */
const agentNotes = ({ agent_id, reason, session_id, status }: AgentView): ReadonlyArray<string> => {
  if (status === "crashed") return [`the agent ${agent_id} crashed: ${reason ?? "no reason is known"}`]
  return reason === null || session_id === null ? [] : [`the agent ${agent_id} is ${status}: ${reason}`]
}

const diskNote = (home: string, disk: DiskStatus) =>
  [
    lowText(home, disk),
    ...(disk.paused.length === 0 ? [] : [`paused: ${disk.paused.join(", ")}`]),
    `to fix it: ${DISK_FIX}`
  ].join("; ")

const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0)

const NO_ANSWER =
  "the database does not answer: agents continue and keep their events until it is back, and take no new requests"

/** Warnings about the configuration itself. */
const configWarnings = (config: Config, runtime: RuntimeStatus["type"]): ReadonlyArray<string> =>
  runtime === "docker" ? [...unlistedModels(config), ...loopbackModels(config)] : []

const gatewayWarnings = (gateways: SystemStatus["gateways"]): ReadonlyArray<string> =>
  gateways.flatMap(({ detail, name, ok }) =>
    ok || detail === GATEWAY_CONNECTING ? [] : [`the gateway ${name} does not work: ${detail}`]
  )

const keptText = (problem: string) => `pruning failed in part: ${problem}; to try it again at once: choirctl prune`

const undeliverableText = ({ count, dm, reason }: Undeliverable) =>
  `${count} ${count === 1 ? "message" : "messages"} to the DM ${dm} could not be delivered: ${reason}`

const unreadText = ({ count, dm, since }: Unread, unread_days: number | null) =>
  `${count} ${count === 1 ? "message" : "messages"} to the DM ${dm}, the oldest of ${since}, ${count === 1 ? "waits" : "wait"} unread and will be removed after ${unread_days} days (retention.unread_days; choirctl chat shows them)`

/** Pure. */
export const crowdedText = ({ agent_id, count, dm }: Crowd) =>
  `${agent_id} may have to wait with its next answer: ${count} of its messages to the DM ${dm} are neither read nor delivered`

const orphansText = ([agent_id, count]: readonly [AgentId, number]): string =>
  `${count} ${count === 1 ? "job" : "jobs"} of ${agent_id} ended without the work summary that ${count === 1 ? "its" : "their"} profile requires (choirctl session orphans ${agent_id})`

/** Warnings about agents: an older configuration, a crash, and any other reason that a view gives. */
const agentWarnings = (views: ReadonlyArray<AgentView>, version: number): ReadonlyArray<string> => [
  ...views.flatMap((view) =>
    isBehind(view, version)
      ? [`${view.agent_id} runs with configuration ${view.config_version}, the newest is ${version}`]
      : []
  ),
  ...views.flatMap(agentNotes)
]

/** The workspaces with their sizes and the agents that lease them. */
const makeWorkspaceRows = Effect.gen(function* () {
  const config = yield* ConfigStore
  const labels = yield* WorkspaceLabels
  const leases = yield* Leases
  const usage = yield* WorkspaceUsage
  return Effect.gen(function* () {
    const { config: running } = yield* config.current
    const held = (yield* databaseDefect(leases.all)).filter(({ kind }) => kind === "workspace")
    const used = yield* usage.now
    const { workspace_mb } = running.retention
    const quota_bytes = workspace_mb === null ? null : workspace_mb * 1024 ** 2
    const known = yield* databaseDefect(labels.all)
    return Object.entries(running.workspaces).map(([key, { path }]) => {
      const name = ResourceName.make(key)
      const leased_by = held.find((lease) => lease.name === name)?.agent_id ?? null
      const counted = used.get(name)
      const label = known.get(labelKey(path))
      return {
        name,
        path,
        leased_by,
        quota_bytes,
        ...(counted === undefined ? {} : { used_bytes: counted.bytes }),
        ...(label === undefined ? {} : { label })
      }
    })
  })
})

/** The status of choird, also while the database does not answer. */
const makeStatus = Effect.fnUntraced(function* (choirdVersion: string) {
  const approvals = yield* Approvals
  const browser = yield* BrowserWorker
  const config = yield* ConfigStore
  const database = yield* Database
  const guard = yield* DiskGuard
  const health = yield* GatewayHealth
  const lifecycle = yield* Lifecycle
  const memory = yield* EmbeddingQueue
  const offline = yield* OfflineModels
  const outbox = yield* Outbox
  const runtime = yield* ContainerRuntime
  const summaries = yield* AgentSummaries
  const retention = yield* Retention
  const runs = yield* Runs
  const usage = yield* WorkspaceUsage
  const started_ms = yield* monotonicMs
  return Effect.gen(function* () {
    const { config: running, version } = yield* config.current
    const views = yield* lifecycle.list
    const gateways = gatewayRows(running, yield* health.all)
    const { kind, pgvector, version: postgres } = database
    const ok = yield* database.answers
    const disk = yield* guard.status
    const { unread_days, workspace_mb } = running.retention
    const overQuota = [...(yield* usage.all)].flatMap(([name, { bytes, over }]) =>
      over && workspace_mb !== null ? [overQuotaText(name, bytes, workspace_mb)] : []
    )
    const metrics = metricsPage(config.home, running)
    const uptime_ms = (yield* monotonicMs) - started_ms
    return {
      choird: { version: choirdVersion, uptime_ms, config_version: version, pid: process.pid },
      postgres: { kind, version: postgres, pgvector, ok },
      runtime: runtimeRow(running, yield* browser.status, yield* runtime.status),
      gateways,
      ...(metrics === undefined ? {} : { metrics }),
      ...(disk === undefined ? {} : { disk }),
      ...(ok ? { memory: yield* databaseDefect(memory.status) } : {}),
      agents: yield* Effect.forEach(views, ok ? summaries.of : summaries.known),
      approvals: { pending: ok ? total(yield* approvals.pending) : null },
      warnings: [
        ...(ok ? [] : [NO_ANSWER]),
        ...(disk?.low === true ? [diskNote(config.home, disk)] : []),
        ...overQuota,
        ...(yield* retention.problems).map(keptText),
        ...configWarnings(running, runtime.type),
        ...(yield* offline.problems),
        ...gatewayWarnings(gateways),
        ...(ok ? yield* databaseDefect(outbox.undeliverable) : []).map(undeliverableText),
        ...(ok ? yield* databaseDefect(outbox.unread) : []).map((row) => unreadText(row, unread_days)),
        ...(ok ? yield* databaseDefect(outbox.crowded) : []).map(crowdedText),
        ...(ok ? [...(yield* databaseDefect(runs.orphans))] : []).map(orphansText),
        ...agentWarnings(views, version)
      ]
    }
  })
})

/** @param version of choird, as its package says. */
export const layerOperatorSystem = (version: string) =>
  HttpApiBuilder.group(
    OperatorApi,
    "system",
    Effect.fnUntraced(function* (handlers) {
      const audit = yield* Audit
      const config = yield* ConfigStore
      const shutdown = yield* Shutdown
      const status = yield* makeStatus(version)
      const workspaceRows = yield* makeWorkspaceRows
      return handlers.handleAll({
        status: Effect.fn("OperatorApi.status")(() => status),
        config: () => Effect.map(config.current, ({ config }) => config),
        workspaces: Effect.fn("OperatorApi.workspaces")(() => workspaceRows),
        models: () => Effect.map(config.current, ({ config }) => modelRows(config)),
        shutdown: Effect.fn("OperatorApi.shutdown")(function* () {
          yield* audit.record({ who: "operator", action: "shutdown", detail: {} })
          // The scope is the request's: it closes when the reply has been written.
          yield* Effect.addFinalizer(() => shutdown.request)
          return { ok: true as const }
        })
      })
    })
  )
