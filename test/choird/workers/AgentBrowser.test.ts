import { spawn } from "node:child_process"
import { PassThrough } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { CallId } from "#schema/Ids.ts"
import { AgentBrowser } from "#src/choird/workers/AgentBrowser.ts"
import { readLines } from "#src/choird/workers/boundedLines.ts"

const LEASE = { username: "choir", password: Redacted.make("token"), renew: () => undefined, refusals: () => [] }

/** A browser whose process runs this program. */
const browserOf = (program: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "ignore"] })),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) => new AgentBrowser({ child, script: "", may_be_bare: false }, LEASE)
  )

describe("AgentBrowser", () => {
  for (const [what, program] of [
    ["writes without an end", `const all = "x".repeat(65536); for (;;) require("fs").writeSync(1, all)`],
    ["writes what is no report", `console.log('{"_tag":"Acted","id":"one"}'); process.stdin.resume()`],
    ["ends", ""]
  ] as const)
    it.live(`takes a process that ${what} for one that has ended: a click may have been made, a look was not`, () =>
      Effect.gen(function* () {
        const browser = yield* browserOf(program)
        const [click, look, hold] = yield* Effect.all(
          [
            Effect.flip(browser.act({ action: "click", ref: "e1" }, undefined)),
            Effect.flip(browser.act({ action: "snapshot" }, undefined)),
            Effect.flip(browser.hold(CallId.make("c-1-0"), { action: "click", ref: "e1" }))
          ],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual([click.is_unknown, look.is_unknown, hold.is_unknown], [true, false, false])
        yield* browser.ended
        assert.isTrue(browser.isClosed)
        assert.isFalse((yield* Effect.flip(browser.act({ action: "click", ref: "e1" }, undefined))).is_unknown)
      }).pipe(Effect.scoped)
    )
})

describe("readLines", () => {
  it("gives whole lines, however they arrive, and none that is too long or follows one", () => {
    const stream = new PassThrough()
    const lines: Array<string> = []
    let tooLong = 0
    readLines(
      stream,
      8,
      (line) => void lines.push(line),
      () => void (tooLong += 1)
    )
    for (const chunk of ["a\nbc", "d", "\n\nčž", "\n", "12345678\n", "123456789", "0\nx\n", "y\n"])
      stream.emit("data", Buffer.from(chunk))
    assert.deepStrictEqual(lines, ["a", "bcd", "", "čž", "12345678"])
    assert.strictEqual(tooLong, 1)
  })
})
