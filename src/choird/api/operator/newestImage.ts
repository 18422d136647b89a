/** Reading what an agent's newest image holds, or how to build one. */
import { Effect, FileSystem } from "effect"
import type { AgentId } from "#schema/Ids.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { conflict, fromAgentRefused, notFound } from "#src/choird/api/refusals.ts"
import { Images } from "#src/choird/images/Images.ts"

const build = (id: AgentId) => `choirctl agent build ${id}`

/** The reader of agents' newest images: `read` is given the image's path. */
export const newestImage = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* <A, E extends { readonly message: string }>(
    id: AgentId,
    read: (path: string) => Effect.Effect<A, E, FileSystem.FileSystem>
  ) {
    yield* Effect.mapError(lifecycle.view(id), fromAgentRefused)
    const { path } = yield* Effect.mapError(images.current(id), ({ message }) =>
      notFound("NO_IMAGE", message, build(id))
    )
    return yield* read(path).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.mapError(({ message }) => conflict("IMAGE_DRIFT", message, `${build(id)} --force`))
    )
  })
})
