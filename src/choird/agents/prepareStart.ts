/** The prerequisites of an agent's start: resources, secrets, an image, leases, and a session to run in. */
import { statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Clock, Effect, Option, Result, Schema } from "effect"
import { randomBytes } from "node:crypto"
import type { Config } from "#schema/Config.ts"
import type { ResourceBindings, RunBindings } from "#schema/ResourceBindings.ts"
import type { AgentId } from "#schema/Ids.ts"
import { type DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { ContainerId, ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { isInside } from "#src/choird/runtime/Ownership.ts"
import { AgentNumbers } from "#src/choird/sessions/AgentNumbers.ts"
import { logFull } from "#src/choird/sessions/logLimit.ts"
import { sessionId, type SessionRow, SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { realOf } from "#src/choird/config/realFolder.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { AgentRefused, notReady } from "./AgentRefused.ts"
import { AgentViews } from "./AgentViews.ts"
import { unknownBinding } from "./bindings.ts"
import type { Images } from "#src/choird/images/Images.ts"
import { missingToolSecret, secretProblem } from "#src/choird/images/imageSecrets.ts"
import { exclusive, Leases } from "./Leases.ts"
import { newestImage, type StartImage } from "./startImage.ts"

/** The request to start an agent. */
export interface StartRequest {
  readonly agent_id: AgentId
  readonly bindings: RunBindings
  readonly fresh: boolean
  /** Begins without a session: the next message starts one, since the last one has reached its budget (D19). */
  readonly awaiting: boolean
}

export interface Prepared {
  readonly config: Config
  /** The agent's own, from which the runtime makes its uid. */
  readonly agent_number: number
  /** Absent while the run awaits a message. */
  readonly row: SessionRow | undefined
  readonly image: StartImage
}

const isFolder = (path: string) =>
  Result.isSuccess(
    Result.try(() => {
      if (!statSync(path).isDirectory()) throw new Error("not a folder")
    })
  )

/** The agent that works in a folder already, under a name that config.json may have given to another one since, or behind a link. */
const folderUser = Effect.fnUntraced(function* (config: Config, agent_id: AgentId, path: string) {
  const views = yield* AgentViews
  const folder = realOf(path)
  return views.known().find((other) => {
    const { bindings, started_with, status } = views.of(other)
    if (other === agent_id || bindings === null || status === "stopped" || status === "crashed") return false
    const used = (started_with ?? config).workspaces[bindings.workspace]?.path
    return used !== undefined && realOf(used) === folder
  })
})

const foldersAround = (path: string): ReadonlyArray<string> => {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...foldersAround(parent)]
}

/** The workspace in which a folder lies, by its path or through links: an agent there could replace the folder with a link to anything. */
const workspaceAround = ({ workspaces }: Config, path: string) => {
  const around = foldersAround(resolve(path)).map(realOf)
  return Object.entries(workspaces).find(([, other]) => {
    const outer = realOf(other.path)
    return around.some((folder) => isInside(outer, folder))
  })?.[0]
}

/** Checks that the resources are configured, their secrets have values, and the workspace exists. */
export const checkResources = Effect.fnUntraced(function* (
  config: Config,
  agent_id: AgentId,
  bindings: ResourceBindings
) {
  const store = yield* ConfigStore
  const unknown = unknownBinding(config, bindings)
  if (unknown !== undefined) return yield* notReady(agent_id, unknown.reason, unknown.hint)
  const missing: Array<string> = []
  for (const name of yield* store.secretsOf(bindings)) {
    if (Result.isFailure(yield* Effect.result(store.secret(name)))) missing.push(name)
  }
  if (missing.length > 0) {
    const names = missing.map((name) => `"${name}"`).join(", ")
    const set = missing.map((name) => `choirctl secret set ${name}`).join(" && ")
    return yield* notReady(
      agent_id,
      `${agent_id} needs ${names} of secrets.json, which has no value`,
      `${set} && choirctl secret apply`
    )
  }
  const path = config.workspaces[bindings.workspace]?.path ?? ""
  const user = yield* folderUser(config, agent_id, path)
  if (user !== undefined)
    return yield* notReady(agent_id, `${user} works in the folder ${path}`, `choirctl agent stop ${user}`)
  const outer = workspaceAround(config, path)
  if (outer !== undefined)
    return yield* notReady(
      agent_id,
      `the workspace "${bindings.workspace}" is inside the workspace "${outer}", whose agent could put anything in its place`,
      "give the workspace its own folder in config.json, then: choirctl config apply"
    )
  if (!isFolder(path))
    return yield* notReady(
      agent_id,
      `the workspace "${bindings.workspace}" is not a folder: ${path}`,
      `mkdir -p ${path}`
    )
})

const decodeContainer = Schema.decodeUnknownOption(ContainerId)

/**
 * Removes what is left of the container in a session's row. No new epoch begins before it is gone, no matter whose it is (R8).
 * Nothing is left if its scope closed properly.
 */
export const makeReapContainer = Effect.map(
  ContainerRuntime,
  ({ reap }) =>
    ({ container }: SessionRow) =>
      Option.match(decodeContainer(container), { onNone: () => Effect.void, onSome: reap })
)

/** True if a start continues the newest session; a closed one and one whose log is at its limit stay as they are. */
const isResumed = ({ log_bytes, status }: SessionRow, { fresh }: StartRequest, { retention }: Config) =>
  !fresh && status !== "closed" && logFull(log_bytes, retention) === undefined

/** Makes the session active in its next epoch: the newest one, when it was stopped or broken off, else a new one (D19). */
const beginSession = Effect.fnUntraced(function* (
  request: StartRequest,
  config: Config,
  latest: SessionRow | undefined,
  image_version: string
) {
  const leases = yield* Leases
  const sessions = yield* SessionStore
  const { agent_id, bindings } = request
  const goesOn = latest !== undefined && isResumed(latest, request, config)
  if (latest?.status === "active" && !goesOn) yield* sessions.end(latest.session_id, "stopped")
  const row = goesOn
    ? yield* sessions.resume(latest.session_id, bindings, image_version)
    : yield* sessions.create(agent_id, bindings, image_version, !request.fresh)
  yield* leases.transfer(agent_id, row.session_id)
  return row
})

/** Checks all of it, takes the leases, and begins a session. A refusal leaves the session as it was. */
export const prepareStart = Effect.fn("Lifecycle.prepare")(function* (
  request: StartRequest
): Effect.fn.Return<
  Prepared,
  AgentRefused | DatabaseAway,
  AgentNumbers | AgentViews | ConfigStore | ContainerRuntime | Images | Leases | SessionStore
> {
  const leases = yield* Leases
  const numbers = yield* AgentNumbers
  const reapContainer = yield* makeReapContainer
  const sessions = yield* SessionStore
  const store = yield* ConfigStore
  const { agent_id, awaiting, bindings, fresh } = request
  const { config } = yield* store.current
  const latest = Option.getOrUndefined(yield* sessions.latest(agent_id))
  if (latest !== undefined && latest.frozen_reason !== null && !fresh) {
    return yield* new AgentRefused({
      kind: "FROZEN",
      agent_id,
      reason: `the session ${latest.session_id} of ${agent_id} is frozen: ${latest.frozen_reason}`,
      hint: `choirctl agent start ${agent_id} --fresh starts a new session`
    })
  }
  const goesOn = latest !== undefined && isResumed(latest, request, config)
  const newer = !goesOn ? undefined : Option.getOrUndefined(yield* sessions.newer(latest.session_id))
  if (newer !== undefined)
    return yield* new AgentRefused({ kind: "NEWER_EVENTS", agent_id, reason: newer.message, hint: newer.hint })
  yield* checkResources(config, agent_id, bindings)
  const image = yield* newestImage(agent_id)
  const problemOf = secretProblem(config, yield* store.secrets, agent_id, bindings)
  const missing = missingToolSecret(image.path, problemOf)
  if (missing !== undefined) return yield* notReady(agent_id, missing, `choirctl agent build ${agent_id}`)
  const agent_number = yield* Effect.catchTag(numbers.of(agent_id), "AgentNumbersTaken", ({ message }) =>
    notReady(agent_id, message, "move the agents to a new home")
  )
  if (latest !== undefined) {
    yield* Effect.mapError(
      reapContainer(latest),
      ({ fix, problem }) => new AgentRefused({ kind: "START_FAILED", agent_id, reason: problem, hint: fix })
    )
  }
  // The agent does not run, so anything that it holds is left over from a run that was cut short.
  yield* leases.release(agent_id)
  // The leases go to an unused id while the session does not exist yet, and move to it when it does.
  const leased_to = latest?.session_id ?? sessionId(yield* Clock.currentTimeMillis, randomBytes(4))
  yield* Effect.catchTag(
    leases.acquire(agent_id, leased_to, exclusive(config, agent_id, bindings)),
    "ResourceHeld",
    ({ hint, message }) => notReady(agent_id, message, hint)
  )
  const row = awaiting ? undefined : yield* beginSession(request, config, latest, image.image_version)
  return { config, agent_number, row, image }
})
