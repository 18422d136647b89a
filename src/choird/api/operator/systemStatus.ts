/** The status of choird, also while the database does not answer. */
import { Effect } from "effect"
import type { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import type { SystemStatus } from "#schema/SystemApi.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { OfflineModels } from "#src/choird/agents/OfflineModels.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "#src/choird/database/Database.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { GatewayHealth, type Health } from "#src/choird/gateway/GatewayHealth.ts"
import { Pairings } from "#src/choird/gateway/Pairings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Outbox } from "#src/choird/queues/Outbox.ts"
import { DiskGuard } from "#src/choird/retention/DiskGuard.ts"
import { Retention } from "#src/choird/retention/Retention.ts"
import { WorkspaceUsage } from "#src/choird/retention/WorkspaceUsage.ts"
import { cutsNetwork } from "#src/choird/runtime/AgentCommand.ts"
import { ContainerRuntime, type RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { traitsOf } from "#src/shared/config/channelTraits.ts"
import { hostWarnings } from "#src/shared/files/hostProblems.ts"
import { APART_WORDS, weakestApart } from "#src/shared/program/callsApart.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { metricsPage } from "#src/shared/wire/metricsPage.ts"
import { AgentSummaries } from "./AgentSummaries.ts"
import { hostWayOut } from "#src/choird/config/hostWayOut.ts"
import { PROXY_LIMITS } from "#src/shared/wire/proxies.ts"
import { watchOwnCode } from "./olderCode.ts"
import { statusWarnings } from "./statusWarnings.ts"

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

/** The words of a host with a proxy on what does not go through it. */
const proxyWarnings = (): ReadonlyArray<string> => (hostWayOut()?.proxies === undefined ? [] : [PROXY_LIMITS])

const NOT_STARTED: Health = { ok: false, detail: "not started" }
const CONSOLE: Health = { ok: true, detail: "choirctl chat" }

const gatewayRows = (config: Config, healths: ReadonlyMap<ResourceName, Health>): SystemStatus["gateways"] =>
  Object.entries(config.gateways).map(([key, { type }]) => {
    const name = ResourceName.make(key)
    return { name, type, ...(healths.get(name) ?? (traitsOf(config, key).is_local ? CONSOLE : NOT_STARTED)) }
  })

/** How far the calls of agents are kept apart, as those that run say; absent while none has said it. */
export const callsRow = (views: ReadonlyArray<AgentView>): Pick<SystemStatus["runtime"], "calls"> => {
  const level = weakestApart(views.flatMap(({ calls_apart }) => calls_apart ?? []))
  if (level === undefined) return {}
  const partly = level === "memory" ? { partly: true as const } : {}
  return { calls: { enforced: level === "full", ...partly, detail: APART_WORDS[level] } }
}

const runtimeRow = (
  config: Config,
  browser: string,
  views: ReadonlyArray<AgentView>,
  { isolation, limits, type, warnings }: RuntimeStatus
): SystemStatus["runtime"] => ({
  type,
  isolation,
  network: networkRow(config.approvals.confirm_external, cutsNetwork()),
  ...callsRow(views),
  browser,
  limits: Object.entries(limits).flatMap(([name, enforced]) => (enforced ? [name] : [])),
  warnings
})

const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0)

/** @param choirdVersion as its package says. */
export const makeStatus = Effect.fnUntraced(function* (choirdVersion: string) {
  const approvals = yield* Approvals
  const browser = yield* BrowserWorker
  const config = yield* ConfigStore
  const database = yield* Database
  const events = yield* EventStore
  const guard = yield* DiskGuard
  const health = yield* GatewayHealth
  const lifecycle = yield* Lifecycle
  const memory = yield* EmbeddingQueue
  const offline = yield* OfflineModels
  const outbox = yield* Outbox
  const pairings = yield* Pairings
  const runtime = yield* ContainerRuntime
  const summaries = yield* AgentSummaries
  const retention = yield* Retention
  const runs = yield* Runs
  const usage = yield* WorkspaceUsage
  const started_ms = yield* monotonicMs
  const host = [...hostWarnings(config.home), ...proxyWarnings()]
  const olderCode = watchOwnCode(process.argv[1] ?? "")
  const stored = databaseDefect(
    Effect.all({
      undeliverable: outbox.undeliverable,
      unread: outbox.unread,
      crowded: outbox.crowded,
      orphans: runs.orphans
    })
  )
  return Effect.gen(function* () {
    const { config: running, version } = yield* config.current
    const views = yield* lifecycle.list
    const alive = new Set(views.flatMap(({ agent_id, session_id }) => (session_id === null ? [] : [agent_id])))
    const gateways = gatewayRows(running, yield* health.all)
    const { kind, pgvector, version: postgres } = database
    const ok = yield* database.answers
    const disk = yield* guard.status
    const metrics = metricsPage(config.home, running)
    const uptime_ms = (yield* monotonicMs) - started_ms
    return {
      choird: { version: choirdVersion, uptime_ms, config_version: version, pid: process.pid },
      postgres: { kind, version: postgres, pgvector, ok },
      runtime: runtimeRow(running, yield* browser.status, views, yield* runtime.status),
      gateways,
      ...(metrics === undefined ? {} : { metrics }),
      ...(disk === undefined ? {} : { disk }),
      ...(ok ? { memory: yield* databaseDefect(memory.status) } : {}),
      agents: yield* Effect.forEach(views, ok ? summaries.of : summaries.known),
      approvals: { pending: ok ? total(yield* approvals.pending) : null },
      warnings: statusWarnings({
        home: config.home,
        host: [...olderCode(), ...host],
        config: running,
        version,
        runtime: runtime.type,
        disk,
        usage: yield* usage.all,
        unpruned: yield* retention.problems,
        offline: yield* offline.problems,
        gateways,
        pairings: yield* pairings.problems,
        agents: views,
        unstored: (yield* events.unstored).filter(({ agent_id }) => alive.has(agent_id)),
        ...(ok ? { stored: yield* stored } : {})
      })
    }
  })
})
