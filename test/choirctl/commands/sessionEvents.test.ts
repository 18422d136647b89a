/** What `choirctl session events` says of a session in which nothing has happened yet. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird, SESSION, sessionDetail } from "../../support/fakeChoird.ts"

describe("choirctl session events", () => {
  it.effect("says that a new session has no events yet", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, {
        events: Effect.succeed([]),
        session: Effect.succeed({ ...sessionDetail, last_rev: 0 })
      })
      const ran = yield* choirctl(home, ["session", "events", SESSION])
      assert.deepStrictEqual([ran.code, ran.out, ran.err], [0, "", `${SESSION} has no events yet\n`])
    })
  )
})
