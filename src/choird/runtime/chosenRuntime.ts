/** Which runtime config.json asks for. `auto` never takes the process runtime: what isolates nothing has to be asked for by name. */
import { Effect, Layer, Runtime, Schema } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { DockerEngine } from "#src/choird/docker/DockerEngine.ts"
import { Cgroups } from "./Cgroups.ts"
import { ContainerRuntime } from "./ContainerRuntime.ts"
import { layer as layerProcess } from "./ProcessRuntime.ts"
import { layer as layerSandbox, probe } from "./SandboxRuntime.ts"

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

const sandbox = (home: string) =>
  Layer.unwrap(
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

const docker = Layer.effect(
  ContainerRuntime,
  Effect.fail(
    new RuntimeUnavailable({
      problem: "Docker is not available in this version",
      fix: "set runtime.type to sandbox or auto"
    })
  )
)

const layerOf = (
  { type }: RuntimeConfig,
  home: string
): Layer.Layer<ContainerRuntime, RuntimeUnavailable, Cgroups | DockerEngine> => {
  switch (type) {
    case "auto":
    case "sandbox":
      return sandbox(home)
    case "process":
      return layerProcess
    case "docker":
      return docker
  }
}

export const chosenRuntime = (config: RuntimeConfig, home: string) =>
  Layer.provide(layerOf(config, home), [Cgroups.layer, DockerEngine.layer(config)])
