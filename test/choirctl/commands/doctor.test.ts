import { chmodSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Check, nodeCheck, runtimeCheck, sandboxCheck, sandboxFix } from "#src/choirctl/doctorTrials.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"

interface Report {
  readonly ok: boolean
  readonly checks: ReadonlyArray<Check>
}

const statusOf = ({ checks }: Report, name: string) => checks.find((check) => check.name === name)?.status

describe("choirctl doctor", () => {
  it.live("tries what a new home needs, and only warns that choird does not run", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* choirctl(home, ["init"])
      const ran = yield* choirctl(home, ["doctor", "--json"])
      const report = document(ran) as Report
      for (const name of ["node", "home", "config", "git", "postgres", "ripgrep", "disk"])
        assert.strictEqual(statusOf(report, name), "ok", name)
      assert.strictEqual(statusOf(report, "choird"), "warn")
      assert.strictEqual(report.ok, !report.checks.some(({ status }) => status === "fail"))
      assert.strictEqual(ran.code, report.ok ? 0 : 1)
      yield* fakeChoird(home)
      const running = document(yield* choirctl(home, ["doctor", "--json"])) as Report
      assert.strictEqual(statusOf(running, "choird"), "ok")
    })
  )

  it.live("fails with the fix for a home that others may use, and for one that is not there", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* choirctl(home, ["init"])
      chmodSync(home, 0o755)
      const open = yield* choirctl(home, ["doctor"])
      assert.strictEqual(open.code, 1)
      assert.include(open.out, `fix: chmod 700 ${home}`)
      const none = yield* choirctl(join(home, "none"), ["doctor"])
      assert.strictEqual(none.code, 1)
      assert.include(none.out, "fix: choirctl init")
    })
  )

  it("asks for a newer Node", () => {
    assert.strictEqual(nodeCheck("22.18.0").status, "fail")
    for (const version of ["22.19.0", "24.0.1", "26.1.0"]) assert.strictEqual(nodeCheck(version).status, "ok")
  })

  it("takes the sandbox, and never a process by itself", () => {
    assert.strictEqual(runtimeCheck("auto", undefined).detail, "sandbox")
    assert.strictEqual(runtimeCheck("sandbox", undefined).detail, "sandbox")
    assert.strictEqual(runtimeCheck("auto", "no bwrap").status, "fail")
    assert.strictEqual(runtimeCheck("docker", undefined).status, "fail")
    assert.strictEqual(runtimeCheck("process", undefined).status, "warn")
  })

  it("says what bubblewrap lacks", () => {
    assert.strictEqual(sandboxCheck(undefined).status, "ok")
    assert.include(sandboxFix("bwrap: No permissions to create new namespace"), "sysctl")
    assert.include(sandboxFix("it cannot be started"), "apt-get install bubblewrap")
  })
})
