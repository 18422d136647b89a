import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import { SessionId } from "#schema/Ids.ts"
import { sessionId } from "#src/choird/sessions/SessionStore.ts"

describe("sessionId", () => {
  it("spells milliseconds and random bits as 16 digits", () => {
    assert.strictEqual(sessionId(0, Buffer.alloc(4)), "0000000000000000")
    assert.strictEqual(sessionId(2 ** 48 - 1, Buffer.alloc(4, 255)), "zzzzzzzzzzzzzzzz")
    assert.strictEqual(sessionId(1, Buffer.of(0, 0, 0, 1)), "0000000004000001")
  })

  it.prop(
    "is legal, and sorts by time",
    [Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2 ** 48 - 2 })), Schema.Natural, Schema.Natural],
    ([now, a, b]) => {
      const random = (value: number) => Buffer.from(new Uint32Array([value]).buffer)
      const [earlier, later] = [sessionId(now, random(a)), sessionId(now + 1, random(b))]
      assert.isTrue(Option.isSome(Schema.decodeOption(SessionId)(earlier)))
      assert.isBelow(earlier < later ? 0 : 1, 1)
    }
  )
})
