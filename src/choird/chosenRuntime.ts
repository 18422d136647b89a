/**
 * The runtime that config.json asks for. `auto` chooses Docker if an engine answers that may run agents, else the sandbox, and says why.
 * It never chooses the process runtime, which isolates nothing and has to be requested by name.
 */
import { Effect, type FileSystem, Layer, Result, Runtime, Schedule, Schema } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { agentPrograms } from "#src/choird/runtime/AgentCommand.ts"
import { DockerEngine, engineIsAway } from "#src/choird/runtime/docker/DockerEngine.ts"
import { DockerImages } from "#src/choird/runtime/docker/DockerImages.ts"
import { engineProblem } from "#src/shared/docker/dockerInfo.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { layer as layerDocker } from "#src/choird/runtime/docker/DockerRuntime.ts"
import { layer as layerProcess } from "#src/choird/runtime/process/ProcessRuntime.ts"
import { layer as layerSandbox, probe } from "#src/choird/runtime/sandbox/SandboxRuntime.ts"
import { DOCKER_RECONNECT_MS } from "#src/choird/runtime/docker/ContainerWatch.ts"

/** The longest wait of a starting choird for the Docker engine that config.json asks for. */
const DOCKER_START_MS_MAX = 20_000

/** No runtime of this host can do what config.json asks for. */
export class RuntimeUnavailable extends Schema.TaggedError<RuntimeUnavailable>()("RuntimeUnavailable", {
  problem: Schema.String,
  fix: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `${this.problem}: ${this.fix}`
  }
}

/** The engine that config.json asks for does not answer yet; a supervisor tries again. */
export class EngineAway extends Schema.TaggedError<EngineAway>()("EngineAway", { problem: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 75
  override get message() {
    return this.problem
  }
}

/** The longest wait of a starting choird for the engine's word on itself; a busy host is slow to load what asks it. */
const ENGINE_MS_MAX = 10_000

type Unusable = RuntimeUnavailable | EngineAway
type Parts = Cgroups | DockerEngine | FileSystem.FileSystem
type RuntimeLayer = Layer.Layer<ContainerRuntime, Unusable, Parts>

/** True if agents may run in the engine. */
const usable = Effect.fnUntraced(function* ({ allow_unmapped_root, network }: RuntimeConfig) {
  const engine = yield* DockerEngine
  const facts = yield* Effect.timeoutOrElse(engine.info, {
    duration: ENGINE_MS_MAX,
    orElse: () => new EngineAway({ problem: "the Docker engine takes too long to answer" })
  }).pipe(
    Effect.catchTag("DockerError", (error): Effect.Effect<never, Unusable> =>
      engineIsAway(error)
        ? new EngineAway({ problem: error.message })
        : new RuntimeUnavailable({ problem: error.detail, fix: error.fix })
    )
  )
  const problem = engineProblem(facts, allow_unmapped_root)
  if (problem !== undefined) return yield* new RuntimeUnavailable(problem)
  if (network === "allowlist" && process.getuid?.() !== 0)
    return yield* new RuntimeUnavailable({
      problem: "runtime.network allowlist needs choird to be root, to set the rules of the agents' network",
      fix: "run choird as root, or set runtime.network to public"
    })
  return undefined
})

/** The same runtime with further warnings in `status`. */
const explained = (runtime: RuntimeLayer, why: ReadonlyArray<string>): RuntimeLayer => {
  if (why.length === 0) return runtime
  const service = Effect.map(ContainerRuntime, (service) => ({
    ...service,
    status: Effect.map(service.status, (status) => ({ ...status, warnings: [...status.warnings, ...why] }))
  }))
  return Layer.provide(Layer.effect(ContainerRuntime, service), runtime)
}

/** The warning about a list of allowed places that nothing enforces. */
const unlisted = ({ network }: RuntimeConfig): ReadonlyArray<string> =>
  network === "allowlist" ? ["runtime.network allowlist has no effect: only Docker enforces it."] : []

const sandbox = (config: RuntimeConfig, home: string, why: ReadonlyArray<string> = []): RuntimeLayer => {
  const chosen = Layer.unwrap(
    Effect.as(
      Effect.mapError(
        probe,
        ({ fix, problem }) =>
          new RuntimeUnavailable({
            problem,
            fix: `${fix}. Or set runtime.type to process, which isolates nothing, in config.json`
          })
      ),
      layerSandbox({ home })
    )
  )
  return explained(chosen, [...why, ...unlisted(config)])
}

const docker = (config: RuntimeConfig, home: string): RuntimeLayer =>
  Layer.provide(layerDocker({ home, config }), DockerImages.layer({ home, programs: agentPrograms, runtime: config }))

/** Waits for an engine that comes up at the same time as choird, when the machine boots. */
const demanded = (config: RuntimeConfig, home: string): RuntimeLayer =>
  usable(config).pipe(
    Effect.retry({
      while: ({ _tag }) => _tag === "EngineAway",
      schedule: Schedule.spaced(DOCKER_RECONNECT_MS).pipe(
        Schedule.upTo({ times: Math.ceil(DOCKER_START_MS_MAX / DOCKER_RECONNECT_MS) })
      )
    }),
    Effect.as(docker(config, home)),
    Layer.unwrap
  )

/** An engine that answers and may not be used is a warning in `status`; a missing engine is not. */
const automatic = (config: RuntimeConfig, home: string): RuntimeLayer =>
  Effect.result(usable(config)).pipe(
    Effect.tap((found) =>
      Result.isFailure(found) ? Effect.logInfo(`using the sandbox: ${found.failure.message}`) : Effect.void
    ),
    Effect.map((found) => {
      if (Result.isSuccess(found)) return docker(config, home)
      const { failure } = found
      return sandbox(config, home, failure._tag === "EngineAway" ? [] : [`Docker is not used: ${failure.message}`])
    }),
    Layer.unwrap
  )

const layerOf = (config: RuntimeConfig, home: string): RuntimeLayer => {
  switch (config.type) {
    case "auto":
      return automatic(config, home)
    case "sandbox":
      return sandbox(config, home)
    case "process":
      return explained(layerProcess, unlisted(config))
    case "docker":
      return demanded(config, home)
  }
}

export const chosenRuntime = (config: RuntimeConfig, home: string) =>
  Layer.provide(layerOf(config, home), [Cgroups.layer, DockerEngine.layer(config)])
