import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { engineFacts } from "#src/shared/docker/dockerInfo.ts"
import { makeKnownFacts } from "#src/choird/runtime/docker/DockerRuntime.ts"

const facts = (ServerVersion: string) =>
  engineFacts({ ServerVersion, Driver: "overlay2", DockerRootDir: "/var/lib/docker" })

describe("what is known of an engine", () => {
  it.effect("is asked once for each connection to it, and each time while there is none (R38)", () =>
    Effect.gen(function* () {
      let connection: number | undefined
      let asked = 0
      const known = makeKnownFacts(
        { info: Effect.sync(() => facts(String((asked += 1)))) },
        { connection: Effect.sync(() => connection) }
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

  it.effect("is not kept when the connection changed while it was asked", () =>
    Effect.gen(function* () {
      let connection: number | undefined = 1
      let asked = 0
      const known = makeKnownFacts(
        {
          info: Effect.sync(() => {
            if (asked === 0) connection = 2
            return facts(String((asked += 1)))
          })
        },
        { connection: Effect.sync(() => connection) }
      )
      yield* known
      assert.strictEqual((yield* known).version, "2")
      assert.strictEqual((yield* known).version, "2")
    })
  )
})
