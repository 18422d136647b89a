import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { heldByProjects } from "./heldByProjects.ts"

describe("what the projects of a run share", () => {
  it.effect("begins once, ends with the last of them, and begins again for the next one", () =>
    Effect.promise(async () => {
      const said: Array<string> = []
      const begin = () => said.push("begin")
      const hold = () => heldByProjects("a test", begin, (count) => void said.push(`end ${count}`))
      const [[first, releaseFirst], [second, releaseSecond]] = [await hold(), await hold()]
      assert.deepStrictEqual([first, second, said], [1, 1, ["begin"]])
      await releaseFirst()
      assert.deepStrictEqual(said, ["begin"])
      await releaseSecond()
      assert.deepStrictEqual(said, ["begin", "end 1"])
      const [, release] = await hold()
      await release()
      assert.deepStrictEqual(said, ["begin", "end 1", "begin", "end 3"])
    })
  )
})
