/** All checks of `choirctl doctor`. */
import { existsSync } from "node:fs"
import { Cause, Effect, Exit, Option, Schema } from "effect"
import type { Config } from "#schema/Config.ts"
import { RetentionConfig } from "#schema/Retention.ts"
import type { SystemStatus } from "#schema/SystemApi.ts"
import { searchText } from "#src/choirctl/render/memory.ts"
import { ask, askStatus } from "#src/choirctl/client/ask.ts"
import { startCommand } from "#src/choirctl/terminal/root.ts"
import { unappliedServers } from "#src/choirctl/home/unappliedServers.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { loopbackModels } from "#src/shared/config/offlineEndpoint.ts"
import { accountChecks } from "./accountChecks.ts"
import { askEngine, egressCheck, engineChecks, whyNoDocker } from "./dockerChecks.ts"
import {
  check,
  type Check,
  diskCheck,
  gitCheck,
  homeCheck,
  hostChecks,
  nodeCheck,
  placeCheck,
  wayOutChecks,
  postgresCheck,
  ripgrepCheck,
  runtimeCheck,
  sandboxCheck,
  trySandbox
} from "./hostChecks.ts"
import { apartCheck } from "./apartCheck.ts"
import { browserCheck, metricsChecks, serviceChecks } from "./serviceChecks.ts"

/** The line of the status, where searches lack what they should have. */
const memoryChecks = (memory: SystemStatus["memory"]): ReadonlyArray<Check> =>
  memory?.problem === undefined
    ? []
    : [
        check(
          "memory",
          "warn",
          searchText(memory),
          "correct embedding in config.json, or its secret: choirctl config show"
        )
      ]

/** Whether choird runs, in its own words. */
const choirdCheck = Effect.fnUntraced(function* (home: string) {
  const asked = yield* Effect.result(askStatus)
  if (asked._tag === "Success") {
    const { choird, memory, warnings } = asked.success
    const detail = `version ${choird.version}, pid ${choird.pid}`
    const found =
      warnings.length === 0
        ? check("choird", "ok", detail)
        : check("choird", "warn", `${detail}; ${warnings.join("; ")}`, "choirctl status")
    return { found: [found, ...memoryChecks(memory)], running: true }
  }
  const { hint, problem, type } = asked.failure
  const found =
    type === "CHOIRD_UNREACHABLE"
      ? check("choird", "warn", "not running", hint ?? startCommand(home))
      : check("choird", "fail", problem, hint)
  return { found: [found], running: false }
})

/** The lines that choird tries itself, since it has the way and the credentials. */
const outsideChecks = Effect.fnUntraced(function* (running: boolean) {
  if (!running) return [check("page", "skip", "choird reads pages and uses git identities, while it runs")]
  const tried = yield* Effect.result(ask("system", (choird) => choird.try()))
  return tried._tag === "Success"
    ? tried.success
    : [check("page", "fail", tried.failure.problem, tried.failure.hint ?? "choirctl logs choird")]
})

/** The files of the home: unusable, usable with warnings, or fine. */
const filesChecks = Effect.fnUntraced(function* (home: string) {
  const loaded = yield* Effect.exit(loadFiles(home))
  if (Exit.isSuccess(loaded)) {
    const { warnings } = loaded.value
    const checks = warnings.map(({ message, path }) => check("config", "warn", `${path}: ${message}`))
    return { checks: checks.length === 0 ? [check("config", "ok", "valid")] : checks, files: loaded.value }
  }
  const error = Option.getOrUndefined(Cause.findErrorOption(loaded.cause))
  const detail = error === undefined ? "it cannot be read" : `${error.file}: ${error.problems.join("; ")}`
  return { checks: [check("config", "fail", detail, error?.hint ?? "choirctl config validate")], files: undefined }
})

/** The engine, when there is one or should be, and which runtime is taken. */
const runtimeChecks = Effect.fnUntraced(function* (home: string, config: Config, sandbox: string | undefined) {
  const { runtime } = config
  const engine = yield* askEngine(runtime.docker_socket)
  const docker = whyNoDocker(engine, runtime)
  const taken = docker === undefined && (runtime.type === "auto" || runtime.type === "docker")
  return [
    ...engineChecks(engine, runtime),
    ...(taken ? [egressCheck(home, runtime, process.getuid?.() === 0)] : []),
    ...(taken ? loopbackModels(config).map((text) => check("docker models", "fail", text)) : []),
    runtimeCheck(runtime.type, sandbox, docker)
  ]
})

/** config.json without what would send a secret to a server that does not get it before the operator applies it. */
const unsentChecks = Effect.fnUntraced(function* (home: string, config: Config) {
  const sent = yield* unappliedServers(home, config)
  const held = sent.map(({ path }) => path.split("."))
  const isHeld = (section: string, name: string) => held.some(([one, other]) => one === section && other === name)
  const left = Object.entries(config).map(([section, entries]: [string, unknown]) => [
    section,
    held.some(([one]) => one === section)
      ? Object.fromEntries(Object.entries(entries as object).filter(([name]) => !isHeld(section, name)))
      : entries
  ])
  return {
    config: Object.fromEntries(left) as Config,
    checks: sent.map(({ message }) => check("config", "warn", `${message}, and was not tried`, "choirctl config apply"))
  }
})

/** The files of the home, and choird on it; what depends on a broken config.json is left out. */
const homeChecks = Effect.fnUntraced(function* (home: string, sandbox: string | undefined) {
  const { checks, files } = yield* filesChecks(home)
  const unsent = files === undefined ? undefined : yield* unsentChecks(home, files.config)
  const choird = yield* choirdCheck(home)
  const { retention } = files?.config ?? { retention: Schema.decodeSync(RetentionConfig)({}) }
  return [
    ...checks,
    ...(unsent?.checks ?? []),
    ...(files === undefined ? [] : wayOutChecks(files.config.tls)),
    ...(files === undefined ? [] : yield* runtimeChecks(home, files.config, sandbox)),
    ...(files === undefined ? [] : [yield* postgresCheck(files.config, files.secrets)]),
    ...(files === undefined || unsent === undefined
      ? []
      : [
          ...(yield* serviceChecks(unsent.config, files.secrets, choird.running)),
          ...(yield* accountChecks(unsent.config, files.secrets))
        ]),
    ...(files === undefined ? [] : yield* outsideChecks(choird.running)),
    ...(files === undefined ? [] : yield* metricsChecks(home, files.config, files.secrets, choird.running)),
    ...choird.found,
    yield* diskCheck(home, retention)
  ] satisfies ReadonlyArray<Check>
})

/** Tries everything; without a home only the machine. */
export const examine = Effect.fn("examine")(function* (home: string) {
  const sandbox = yield* trySandbox
  return [
    nodeCheck(process.versions.node),
    ...(yield* hostChecks(home)),
    yield* gitCheck,
    yield* ripgrepCheck,
    yield* apartCheck,
    yield* browserCheck,
    sandboxCheck(sandbox),
    yield* homeCheck(home),
    ...(existsSync(home) ? [...placeCheck(home), ...(yield* homeChecks(home, sandbox))] : [])
  ] satisfies ReadonlyArray<Check>
})
