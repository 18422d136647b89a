import { setFlagsFromString } from "node:v8"
import { runInThisContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { EmbeddingThread } from "#src/choird/memory/EmbeddingThread.ts"

const PROGRAM = new URL("../../support/loadingModel.ts", import.meta.url)

/** A module with one function that answers a number; another number is another module, which is compiled by itself. */
const moduleOf = (number: number) =>
  new Uint8Array([
    0,
    97,
    115,
    109,
    1,
    0,
    0,
    0,
    1,
    5,
    1,
    96,
    0,
    1,
    127,
    3,
    2,
    1,
    0,
    7,
    5,
    1,
    1,
    102,
    0,
    0,
    10,
    6,
    1,
    4,
    0,
    65,
    number,
    11
  ])

const PROBE = `(bytes) => {
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports
  f()
  return %IsLiftoffFunction(f)
}`

/** Whether WebAssembly that begins now is compiled by the baseline compiler. */
const isBaseline = (number: number): boolean => {
  setFlagsFromString("--allow-natives-syntax")
  try {
    return (runInThisContext(PROBE) as (bytes: Uint8Array) => boolean)(moduleOf(number))
  } finally {
    setFlagsFromString("--no-allow-natives-syntax")
  }
}

describe("the thread of the local model", () => {
  it.live("leaves the process its baseline compiler although it ends while it loads the model", () =>
    Effect.gen(function* () {
      const thread = new EmbeddingThread({ program: PROGRAM })
      const answer = yield* Effect.callback<unknown>((resume) => {
        thread.embed(["a text"], (result) => resume(Effect.succeed(result)))
      })
      assert.deepStrictEqual(answer, { scope: "texts", problem: "still loading" })
      assert.isFalse(isBaseline(1))
      yield* Effect.promise(() => thread.close())
      assert.isTrue(isBaseline(2))
    })
  )
})
