import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { RetentionConfig } from "#schema/Retention.ts"
import { spaceCheck } from "#src/choirctl/doctor/hostChecks.ts"
import { pruneText } from "#src/choirctl/commands/prune.ts"
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

describe("choirctl prune of a kind that fails", () => {
  const kinds = [{ kind: "archives", removed: 0, problem: "out of range" }]
  const text = (more: ReadonlyArray<(typeof pruneReport.kinds)[number]>, dry_run = false) =>
    pruneText({ ...pruneReport, dry_run, kinds: [...kinds, ...more] }, false).split("\n")

  it("says so beside the others", () => {
    assert.deepStrictEqual(text([]), ["archives, not all pruned: out of range", "5.0 GiB free on the home's disk"])
    assert.strictEqual(text([], true)[0], "archives, not counted: out of range")
    const [, messages, kept] = text([{ kind: "messages", removed: 1 }])
    assert.match(messages ?? "", /^messages +1/u)
    assert.strictEqual(kept, "archives, not all pruned: out of range")
  })
})

describe("a disk that is almost full", () => {
  it.effect("is named in status with the agents that are paused", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const disk = {
        free_bytes: GIB,
        total_bytes: 100 * GIB,
        limit_bytes: 5 * GIB,
        low: true,
        lacks: ["bytes"] as const,
        paused: [AGENT]
      }
      yield* fakeChoird(home, { status: Effect.succeed({ ...systemStatus, disk }) })
      const { out } = yield* choirctl(home, ["status"])
      assert.match(out, /disk +almost full, 1\.0 GiB of 100\.0 GiB free, paused: agent-1/u)
    })
  )

  it.effect("is one that has few files left, too", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const files = { free: 900, total: 100_000, limit: 5000 }
      const bytes = { free_bytes: 50 * GIB, total_bytes: 100 * GIB, limit_bytes: 5 * GIB }
      const disk = { ...bytes, files, low: true, lacks: ["files"] as const, paused: [] }
      yield* fakeChoird(home, { status: Effect.succeed({ ...systemStatus, disk }) })
      const { out } = yield* choirctl(home, ["status"])
      assert.match(out, /disk +almost full, 50\.0 GiB of 100\.0 GiB free, 900 of 100,000 files free/u)
    })
  )

  const KEYS = { ...Schema.decodeSync(RetentionConfig)({}), disk_free_mb: 2048, disk_free_percent: 5 }
  const disk = (gib: number, ffree: number, files = 100_000) => ({
    bsize: 4096,
    blocks: (10 * GIB) / 4096,
    bavail: (gib * GIB) / 4096,
    files,
    ffree
  })

  it("fails in doctor with the fix, and warns before", () => {
    const { detail, fix, status } = spaceCheck("/home", disk(1, 50_000), KEYS)
    assert.strictEqual(status, "fail")
    assert.strictEqual(detail, "1.0 GiB free on the disk of /home; agents are paused below 2.0 GiB")
    assert.include(fix ?? "", "choirctl prune")
    assert.strictEqual(spaceCheck("/home", disk(2.5, 50_000), KEYS).status, "warn")
    assert.strictEqual(spaceCheck("/home", disk(4, 50_000), KEYS).status, "ok")
  })

  it("does so for files as well, unless the file system has no number of them", () => {
    const { detail, status } = spaceCheck("/home", disk(4, 4999), KEYS)
    assert.deepStrictEqual(
      [status, detail],
      ["fail", "4,999 files free on the disk of /home; agents are paused below 5,000 files"]
    )
    assert.strictEqual(spaceCheck("/home", disk(4, 6000), KEYS).status, "warn")
    assert.strictEqual(spaceCheck("/home", disk(4, 8000), KEYS).status, "ok")
    assert.strictEqual(spaceCheck("/home", disk(4, 0, 0), KEYS).status, "ok")
  })
})
