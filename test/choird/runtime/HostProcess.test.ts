import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { HOST_PATH, launch } from "#src/choird/runtime/HostProcess.ts"
import { OUTPUT_BYTES_BURST } from "#src/choird/runtime/ContainerOutput.ts"

describe("a program on the host", () => {
  it.live("that prints far more than choird looks at comes to its end, and its last words are kept", () =>
    Effect.gen(function* () {
      const flood = `head -c ${4 * OUTPUT_BYTES_BURST} /dev/zero | tr '\\0' x | fold -w 1000; echo; echo the last word`
      const program = yield* launch({
        program: "/bin/sh",
        args: ["-c", flood],
        cwd: "/",
        env: { PATH: HOST_PATH }
      })
      const lines = yield* Stream.runCollect(program.output)
      assert.deepStrictEqual(yield* program.exited, { code: 0, signal: null })
      assert.isTrue(lines.some((line) => /^\(\d+ bytes of output were dropped/u.test(line)))
      assert.strictEqual(lines.at(-1), "the last word")
    })
  )
})
