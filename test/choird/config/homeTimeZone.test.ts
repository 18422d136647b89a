import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { takeTimeZone } from "#src/choird/config/homeTimeZone.ts"
import { hostTimeZone } from "#src/choird/runtime/AgentCommand.ts"
import { localMinute } from "#src/shared/text/localTime.ts"

const AT = "2027-03-04T23:40:00.000Z"

/** Puts the zone of this process back. */
const zoned = Effect.acquireRelease(
  Effect.sync(() => process.env["TZ"]),
  (before) => Effect.sync(() => (before === undefined ? delete process.env["TZ"] : (process.env["TZ"] = before)))
)

describe("the time zone of a home", () => {
  it.effect("is that of config.json for what people read and what agents are started with, else the host's", () =>
    Effect.gen(function* () {
      yield* zoned
      const host = hostTimeZone()
      yield* takeTimeZone({})
      assert.strictEqual(hostTimeZone(), host)
      yield* takeTimeZone({ timezone: "Asia/Tokyo" })
      assert.strictEqual(localMinute(AT), "2027-03-05 08:40 (Asia/Tokyo)")
      assert.strictEqual(hostTimeZone(), "Asia/Tokyo")
    })
  )
})
