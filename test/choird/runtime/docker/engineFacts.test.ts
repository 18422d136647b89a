import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { engineFacts } from "#src/shared/docker/dockerInfo.ts"
import { ContainerWatch } from "#src/choird/runtime/docker/ContainerWatch.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { makeEngineFacts } from "#src/choird/runtime/docker/DockerRuntime.ts"

const facts = (ServerVersion: string) =>
  engineFacts({ ServerVersion, Driver: "overlay2", DockerRootDir: "/var/lib/docker" })

const factsOf = (info: DockerEngine["Service"]["info"], connection: Effect.Effect<number | undefined>) =>
  makeEngineFacts.pipe(Effect.provide([Layer.mock(DockerEngine, { info }), Layer.mock(ContainerWatch, { connection })]))

describe("the facts of an engine", () => {
  it.effect("are asked for once per connection, and each time without one (R38)", () =>
    Effect.gen(function* () {
      let connection: number | undefined
      let asked = 0
      const known = yield* factsOf(
        Effect.sync(() => facts(String((asked += 1)))),
        Effect.sync(() => connection)
      )
      const versions: Array<string> = []
      const ask = Effect.map(known, ({ version }) => versions.push(version))
      for (const now of [undefined, undefined, 1, 1, undefined, 2, 2]) {
        connection = now
        yield* ask
      }
      assert.deepStrictEqual(versions, ["1", "2", "3", "3", "4", "5", "5"])
    })
  )

  it.effect("are not kept when the connection changed during the request", () =>
    Effect.gen(function* () {
      let connection: number | undefined = 1
      let asked = 0
      const known = yield* factsOf(
        Effect.sync(() => {
          if (asked === 0) connection = 2
          return facts(String((asked += 1)))
        }),
        Effect.sync(() => connection)
      )
      yield* known
      assert.strictEqual((yield* known).version, "2")
      assert.strictEqual((yield* known).version, "2")
    })
  )
})
