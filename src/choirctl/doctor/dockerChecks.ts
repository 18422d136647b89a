/** The checks of a Docker engine on this host, each with the command that fixes it. */
import { readFileSync, realpathSync } from "node:fs"
import { Effect, Result } from "effect"
import { HttpClientResponse } from "effect/http"
import type { Config } from "#schema/Config.ts"
import { socketHttp } from "#src/choirctl/client/socketHttp.ts"
import {
  type EngineFacts,
  engineFacts,
  EngineInfo,
  engineProblem,
  unmappedRoot
} from "#src/shared/docker/dockerInfo.ts"
import { sharedUid } from "#src/shared/docker/agentUids.ts"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { dockerSockets, existingSocket } from "#src/shared/docker/dockerSocket.ts"
import { egressCommands, nameserversIn } from "#src/shared/wire/egress.ts"
import { check, type Check, DOCTOR_CHECK_MS_MAX } from "./hostChecks.ts"

type Runtime = Config["runtime"]

/** An engine's words, or why there are none. */
export type Engine = Result.Result<EngineFacts, { readonly problem: string; readonly fix: string }>

const decode = HttpClientResponse.schemaBodyJson(EngineInfo)

const whyNot = (socket: string, cause: unknown) => {
  const denied = /EACCES|EPERM/u.test(String(cause) + String(Reflect.get(Object(cause), "cause")))
  return denied
    ? {
        problem: `this user may not open ${socket}`,
        fix: "add this user to the group: usermod -aG docker $USER, and log in again"
      }
    : { problem: `no engine answers at ${socket}`, fix: "start it: systemctl start docker" }
}

/** Asks the engine that choird would ask. */
export const askEngine = Effect.fn("askEngine")(function* (configured: string | undefined) {
  const paths = dockerSockets(configured, process.env)
  const socket = existingSocket(paths)
  if (socket === undefined)
    return Result.fail({
      problem: `there is no Docker engine at ${paths.join(" or ")}`,
      fix: "install one, in Debian: apt-get install docker.io"
    }) satisfies Engine
  const client = yield* socketHttp(socket)
  const asked = client.get("http://docker/info").pipe(Effect.flatMap(decode), Effect.timeout(DOCTOR_CHECK_MS_MAX))
  return Result.mapBoth(yield* Effect.result(asked), {
    onFailure: (cause) => whyNot(socket, cause),
    onSuccess: engineFacts
  })
}, Effect.scoped)

/** Whether agents are apart from each other by their uids. */
const uidCheck = (facts: EngineFacts, choird_uid: number): Check => {
  const shared = sharedUid(facts, choird_uid)
  return shared === undefined
    ? check("docker uids", "ok", "each agent has a uid of its own on this host")
    : check("docker uids", "warn", shared.problem, shared.fix)
}

/** The checks of an engine. A missing engine is a failure only if config.json asks for Docker. */
export const engineChecks = (
  engine: Engine,
  { allow_unmapped_root, type }: Runtime,
  choird_uid = process.getuid?.() ?? 0
): ReadonlyArray<Check> => {
  const missing = type === "docker" ? "fail" : "skip"
  if (Result.isFailure(engine)) {
    const { fix, problem } = engine.failure
    return [check("docker", missing, problem, missing === "skip" ? undefined : fix)]
  }
  const facts = engine.success
  const unmapped = unmappedRoot(facts)
  const lacking = Object.entries(facts.limits).flatMap(([name, works]) => (works ? [] : [name]))
  return [
    check("docker", "ok", `version ${facts.version}, storage ${facts.storage_driver}`),
    unmapped === undefined
      ? check(
          "docker userns",
          "ok",
          facts.root.type === "rootless" ? "rootless" : "root of a container is an unprivileged user here"
        )
      : check(
          "docker userns",
          allow_unmapped_root || type !== "docker" ? "warn" : "fail",
          unmapped.problem,
          unmapped.fix
        ),
    lacking.length === 0
      ? check("docker limits", "ok", "processors, memory and processes")
      : check(
          "docker limits",
          "warn",
          `not enforced: ${lacking.join(", ")}`,
          "boot with cgroup v2, or with cgroup_enable=memory and the pids controller"
        ),
    ...(engineProblem(facts, allow_unmapped_root) === undefined ? [uidCheck(facts, choird_uid)] : [])
  ]
}

/** Why choird would not take this engine, or `undefined`. */
export const whyNoDocker = (engine: Engine, { allow_unmapped_root }: Runtime): string | undefined =>
  Result.isFailure(engine) ? engine.failure.problem : engineProblem(engine.success, allow_unmapped_root)?.problem

/** The egress rules that choird sets as root; for another user, the commands that set them. */
export const egressCheck = (home: string, { allow, network }: Runtime, isRoot: boolean): Check => {
  if (network === "allowlist")
    return isRoot
      ? check("docker network", "ok", `choird limits agents to the ${allow.length} entries of runtime.allow`)
      : check(
          "docker network",
          "fail",
          "choird is not root, and cannot limit agents to runtime.allow",
          "run choird as root, or set runtime.network to public"
        )
  if (network !== "public") return check("docker network", "ok", network)
  if (isRoot) return check("docker network", "ok", "choird blocks agents from this host and its networks")
  const bridge = installationOf(realpathSync(home)).network
  const nameservers = nameserversIn(readFileSync("/etc/resolv.conf", "utf8"))
  const commands = egressCommands({ bridge, nameservers, choird_port: undefined })
  return check(
    "docker network",
    "warn",
    "agents can reach this host and its networks, since choird is not root",
    `after the first start of an agent, run as root:\n${commands}`
  )
}
