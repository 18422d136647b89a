/** Bodies that are small to send and costly to look at: nested without end, or with a problem in each of their characters. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { BODIES } from "../support/agentSocket.ts"
import { describeTransports } from "../support/everyTransport.ts"
import { BODY_BYTES_MAX } from "#src/shared/wire/http.ts"

/** Of one problem. */
const TOLD_CHARS_MAX = 1000
const DEPTH = 200_000
const DEEP = "[".repeat(DEPTH) + "]".repeat(DEPTH)
const HALF = BODY_BYTES_MAX / 2
const hello = JSON.stringify(BODIES.HEARTBEAT)
const KEYS = JSON.stringify(Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`k${index}`, 0])))

const COSTLY: ReadonlyArray<readonly [string, string]> = [
  ["nested arrays in the place of a number", `{"epoch":${DEEP}}`],
  ["nested arrays as the body", DEEP],
  ["blanks", " ".repeat(BODY_BYTES_MAX - 1)],
  ["unknown keys", KEYS],
  ["patches that are none", hello.replace('"patches":[]', `"patches":[${"0,".repeat(HALF / 4)}0]`)],
  ["nested patches", hello.replace('"patches":[]', `"patches":[${DEEP}]`)]
]

describeTransports("a body of an agent with", ({ openSession }) => {
  for (const [what, body] of COSTLY)
    it.effect(`${what} is refused at its first problem`, () =>
      Effect.gen(function* () {
        const { call } = yield* openSession
        const answer = yield* call("HEARTBEAT", { body })
        assert.strictEqual(answer.status, 400)
        // To find every problem of the largest body takes seconds of choird's one thread.
        assert.isBelow(answer.text.length, TOLD_CHARS_MAX)
      })
    )
})
