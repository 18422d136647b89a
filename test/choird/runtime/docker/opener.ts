/**
 * Opens a workspace to an agent as the user that it is started as, as a choird of that user does before the agent's container starts. Arguments: the
 * folder, the agent's number, choird's home and the socket of the engine.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Layer, Schema } from "effect"
import { RuntimeConfig } from "#schema/Config.ts"
import { agentUser } from "#src/choird/runtime/agentUser.ts"
import { ContainerWatch } from "#src/choird/runtime/docker/ContainerWatch.ts"
import { asContainerError, DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { giveInContainer } from "#src/choird/runtime/docker/GivingContainer.ts"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"

const [folder = "", number, home = "", docker_socket = ""] = process.argv.slice(2)
const config = Schema.decodeSync(RuntimeConfig)({ type: "docker", docker_socket })
const installation = installationOf(home)

const open = Effect.gen(function* () {
  const context = yield* Effect.context<DockerEngine | ContainerWatch>()
  const { info } = yield* DockerEngine
  const { giveWorkspace } = yield* agentUser(config, yield* info, Number(number), (workspace, user) =>
    giveInContainer(installation, workspace, user).pipe(
      Effect.mapError(asContainerError),
      Effect.provideContext(context)
    )
  )
  yield* giveWorkspace(folder)
})

const parts = Layer.provideMerge(ContainerWatch.layer(installation), DockerEngine.layer(config))
NodeRuntime.runMain(open.pipe(Effect.scoped, Effect.provide(parts)))
