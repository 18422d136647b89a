/**
 * Empties a folder as the user that it is started as. Arguments: the folder, and for a choird with Docker its home and the socket of the
 * engine.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Schema } from "effect"
import { RuntimeConfig } from "#schema/Config.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { DockerImages } from "#src/choird/runtime/docker/DockerImages.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { layer } from "#src/choird/runtime/docker/DockerRuntime.ts"
import { emptyWorkspace } from "#src/choird/runtime/emptyWorkspace.ts"

const [folder = "", home, docker_socket] = process.argv.slice(2)

const byDocker = (home: string, socket: string) => {
  const config = Schema.decodeSync(RuntimeConfig)({ type: "docker", docker_socket: socket })
  const parts = Layer.mergeAll(Cgroups.layer, DockerEngine.layer(config), Layer.mock(DockerImages, {}))
  return Effect.flatMap(ContainerRuntime, (runtime) => runtime.emptyWorkspace(folder, [])).pipe(
    Effect.provide(Layer.provide(layer({ home, config }), parts))
  )
}

NodeRuntime.runMain(
  home === undefined || docker_socket === undefined ? emptyWorkspace(folder, []) : byDocker(home, docker_socket)
)
