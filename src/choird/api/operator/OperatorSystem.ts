/** The operator's endpoints about choird itself: status, configuration, workspaces, models, audit, backup, shutdown. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ResourceName } from "#schema/Ids.ts"
import { modelRows } from "./modelRows.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Leases } from "#src/choird/agents/Leases.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { Workspaces } from "#src/choird/agents/Workspaces.ts"
import { badRequest, conflict, fromWorkspaceRefused } from "#src/choird/api/refusals.ts"
import { Shutdown } from "#src/choird/api/Shutdown.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { OfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { labelKey, WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { OutsideTries } from "#src/choird/trials/OutsideTries.ts"
import { isServedHere } from "#src/shared/config/offlineEndpoint.ts"
import { AUDIT_LISTED_MAX } from "#src/shared/limits.ts"
import { makeStatus } from "./systemStatus.ts"

/** Resetting a workspace, and trusting what its path names now. */
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

/** Makes what answers where the offline model is. */
const makeOfflineModel = Effect.gen(function* () {
  const config = yield* ConfigStore
  const offline = yield* OfflineModels
  const address = yield* OfflineAddress
  return Effect.gen(function* () {
    const { models } = (yield* config.current).config
    if (!Object.values(models).some(isServedHere))
      return yield* conflict(
        "NO_OFFLINE_MODEL",
        "the running configuration has no offline model",
        "choirctl config apply"
      )
    const [problem] = yield* offline.problems
    if (problem !== undefined) return yield* conflict("OFFLINE_MODEL_DOWN", problem, "choirctl logs choird")
    return { endpoint: yield* address }
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
      const tries = yield* OutsideTries
      const offlineModel = yield* makeOfflineModel
      return handlers.handleAll({
        status: Effect.fn("OperatorApi.status")(() => status),
        config: () => Effect.map(config.current, ({ config }) => config),
        workspaces: Effect.fn("OperatorApi.workspaces")(() => workspaceRows),
        models: () => Effect.map(config.current, ({ config }) => modelRows(config)),
        offlineModel: Effect.fn("OperatorApi.offlineModel")(() => offlineModel),
        try: Effect.fn("OperatorApi.try")(() => tries.all),
        shutdown: Effect.fn("OperatorApi.shutdown")(function* () {
          yield* audit.record({ who: "operator", action: "shutdown", detail: {} })
          // The scope is the request's: it closes when the reply has been written.
          yield* Effect.addFinalizer(() => shutdown.request)
          return { ok: true as const }
        })
      })
    })
  )
