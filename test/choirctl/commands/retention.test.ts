import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spaceCheck } from "#src/choirctl/doctor/doctorTrials.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { AGENT, fakeChoird, systemStatus } from "../../support/fakeChoird.ts"
import { pruneReport } from "../../support/fakeRetention.ts"

const GIB = 1024 ** 3

describe("choirctl prune", () => {
  it.effect("says by kind what went, and with --dry-run what would go", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const { out } = yield* choirctl(home, ["prune"])
      assert.strictEqual(
        out,
        "KIND      REMOVED  SIZE\nmessages  12       -\nlogs      2        3.0 MiB\n5.0 GiB free on the home's disk\n"
      )
      const dry = yield* choirctl(home, ["prune", "--dry-run"])
      assert.include(dry.out, "WOULD REMOVE")
      assert.deepStrictEqual(document(yield* choirctl(home, ["prune", "--json"])), pruneReport)
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ dry_run: false }, { dry_run: true }, { dry_run: false }]
      )
    })
  )
})

describe("a disk that is almost full", () => {
  it.effect("is named in status with the agents that are paused", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const disk = { free_bytes: GIB, total_bytes: 100 * GIB, limit_bytes: 5 * GIB, low: true, paused: [AGENT] }
      yield* fakeChoird(home, { status: Effect.succeed({ ...systemStatus, disk }) })
      const { out } = yield* choirctl(home, ["status"])
      assert.match(out, /disk +almost full, 1\.0 GiB of 100\.0 GiB free, paused: agent-1/u)
    })
  )

  it("fails in doctor with the fix, and warns before", () => {
    const { detail, fix, status } = spaceCheck("/home", GIB, 2 * GIB)
    assert.strictEqual(status, "fail")
    assert.include(detail, "1.0 GiB free on the disk of /home; agents are paused below 2.0 GiB")
    assert.include(fix ?? "", "choirctl prune")
    assert.strictEqual(spaceCheck("/home", 2.5 * GIB, 2 * GIB).status, "warn")
    assert.strictEqual(spaceCheck("/home", 4 * GIB, 2 * GIB).status, "ok")
  })
})
