/** The warnings of `status`: about the database, the disk, the configuration, gateways, messages and agents. All are pure. */
import type { Config } from "#schema/Config.ts"
import { GATEWAY_CONNECTING } from "#schema/DmsApi.ts"
import type { AgentId, ResourceName } from "#schema/Ids.ts"
import type { DiskStatus, SystemStatus } from "#schema/SystemApi.ts"
import { allowedPlace } from "#schema/AllowedHost.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import type { Undeliverable, Unread } from "#src/choird/queues/Outbox.ts"
import type { Crowd } from "#src/choird/queues/outboxRoom.ts"
import { lowText } from "#src/choird/retention/DiskGuard.ts"
import { overQuotaText, type Usage } from "#src/choird/retention/WorkspaceUsage.ts"
import type { Unstored } from "#src/choird/sessions/appendPatches.ts"
import type { RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { DISK_FIX } from "#src/shared/config/diskLimit.ts"
import { loopbackModels } from "#src/shared/config/offlineEndpoint.ts"
import { formatPlace, hostOf, portOf } from "#src/shared/wire/hostPort.ts"
import { isBehind } from "./AgentSummaries.ts"

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

const NO_ANSWER =
  "the database does not answer: agents continue and keep their events until it is back, and take no new requests"

/** Warnings about the configuration itself. */
const configWarnings = (config: Config, runtime: RuntimeStatus["type"]): ReadonlyArray<string> =>
  runtime === "docker" ? [...unlistedModels(config), ...loopbackModels(config)] : []

const gatewayWarnings = (gateways: SystemStatus["gateways"]): ReadonlyArray<string> =>
  gateways.flatMap(({ detail, name, ok }) =>
    ok || detail === GATEWAY_CONNECTING ? [] : [`the gateway ${name} does not work: ${detail}`]
  )

const quotaWarnings = ({ retention }: Config, usage: ReadonlyMap<ResourceName, Usage>): ReadonlyArray<string> =>
  [...usage].flatMap(([name, { bytes, over }]) =>
    over && retention.workspace_mb !== null ? [overQuotaText(name, bytes, retention.workspace_mb)] : []
  )

const keptText = (problem: string) => `pruning failed in part: ${problem}; to try it again at once: choirctl prune`

const undeliverableText = ({ count, dm, reason }: Undeliverable) =>
  `${count} ${count === 1 ? "message" : "messages"} to the DM ${dm} could not be delivered: ${reason}`

const unreadText = ({ count, dm, since }: Unread, unread_days: number | null) =>
  `${count} ${count === 1 ? "message" : "messages"} to the DM ${dm}, the oldest from ${since}, ${count === 1 ? "is" : "are"} unread and will be removed after ${unread_days} days (retention.unread_days; choirctl chat shows them)`

export const crowdedText = ({ agent_id, count, dm }: Crowd) =>
  `${agent_id} may have to hold back its next answer: ${count} of its messages to the DM ${dm} are neither read nor delivered`

const orphansText = ([agent_id, count]: readonly [AgentId, number]): string =>
  `${count} ${count === 1 ? "job" : "jobs"} of ${agent_id} ended without the work summary that ${count === 1 ? "its" : "their"} profile requires (choirctl session orphans ${agent_id})`

const unstoredText = ({ agent_id, problem }: Unstored): string =>
  `the database does not take the events of ${agent_id}, which keeps them and tries again: ${problem}`

/** Warnings about agents: an older configuration, a crash, and any other reason that a view gives. */
const agentWarnings = (views: ReadonlyArray<AgentView>, version: number): ReadonlyArray<string> => [
  ...views.flatMap((view) =>
    isBehind(view, version)
      ? [`${view.agent_id} runs with configuration ${view.config_version}, the newest is ${version}`]
      : []
  ),
  ...views.flatMap(agentNotes)
]

export interface StatusFacts {
  readonly home: string
  /** Problems of this host. */
  readonly host: ReadonlyArray<string>
  readonly config: Config
  /** Of the configuration. */
  readonly version: number
  readonly runtime: RuntimeStatus["type"]
  readonly disk: DiskStatus | undefined
  readonly usage: ReadonlyMap<ResourceName, Usage>
  /** Problems of the last pruning, such as a folder that could not be removed. */
  readonly unpruned: ReadonlyArray<string>
  /** The reasons why the offline models do not answer. */
  readonly offline: ReadonlyArray<string>
  readonly gateways: SystemStatus["gateways"]
  /** Pairing codes that strangers ended. */
  readonly pairings: ReadonlyArray<string>
  readonly agents: ReadonlyArray<AgentView>
  readonly unstored: ReadonlyArray<Unstored>
  /** The part that comes from the database; absent while it does not answer. */
  readonly stored?: {
    readonly undeliverable: ReadonlyArray<Undeliverable>
    readonly unread: ReadonlyArray<Unread>
    readonly crowded: ReadonlyArray<Crowd>
    /** Jobs of agents that ended without a summary which their profile requires. */
    readonly orphans: ReadonlyMap<AgentId, number>
  }
}

/** The warnings in the order in which an operator should read them. */
export const statusWarnings = ({ config, stored, ...facts }: StatusFacts): ReadonlyArray<string> => [
  ...(stored === undefined ? [NO_ANSWER] : []),
  ...facts.unstored.map(unstoredText),
  ...facts.host,
  ...(facts.disk?.low === true ? [diskNote(facts.home, facts.disk)] : []),
  ...quotaWarnings(config, facts.usage),
  ...facts.unpruned.map(keptText),
  ...configWarnings(config, facts.runtime),
  ...facts.offline,
  ...gatewayWarnings(facts.gateways),
  ...facts.pairings,
  ...(stored?.undeliverable ?? []).map(undeliverableText),
  ...(stored?.unread ?? []).map((row) => unreadText(row, config.retention.unread_days)),
  ...(stored?.crowded ?? []).map(crowdedText),
  ...[...(stored?.orphans ?? [])].map(orphansText),
  ...agentWarnings(facts.agents, facts.version)
]
