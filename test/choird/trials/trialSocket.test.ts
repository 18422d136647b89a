import { connect } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { listenOnce, messagesOf } from "#src/choird/trials/trialSocket.ts"
import { temporaryFolder } from "../../support/engines.ts"

const ran = { type: "ran", effect: "none", status: "success", summary: "", output: "@", duration_ms: 1 }
const outcome = (depth: number) =>
  JSON.stringify({ type: "tried_program", tried: [ran] }).replace('"@"', "[".repeat(depth) + "]".repeat(depth))

/** The messages that choird takes from a container that sends a line. */
const taken = (line: string) =>
  Effect.gen(function* () {
    const path = join(yield* temporaryFolder, "trial", "s")
    const first = yield* listenOnce(path)
    connect(path).end(`${line}\n`)
    return yield* Stream.runCollect(messagesOf(yield* first))
  }).pipe(Effect.scoped)

describe("the socket of a trial", () => {
  it.live("takes an output that nests as deep as an event may, and ends the trial at one without end", () =>
    Effect.gen(function* () {
      assert.lengthOf(yield* taken(outcome(150)), 1)
      const { message } = yield* Effect.flip(taken(outcome(20_000)))
      assert.strictEqual(message, "the trial gave no outcome: its container sent something that is not a valid message")
    })
  )
})
