import { chmodSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  type Check,
  gitVersionCheck,
  nodeCheck,
  runtimeCheck,
  sandboxCheck,
  sandboxFix
} from "#src/choirctl/doctor/hostChecks.ts"
import { choirctl, document } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird } from "../../support/fakeChoird.ts"
import { NODE_VERSIONS } from "../../support/nodeVersions.ts"

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
      assert.include(none.out, `fix: choirctl --home ${join(home, "none")} init makes it`)
      // The one missing home is named once.
      assert.lengthOf(none.out.match(/does not exist/gu) ?? [], 1)
    })
  )

  it("asks for a Node with the known security releases, and says which one is missing", () => {
    for (const [version, runs] of Object.entries(NODE_VERSIONS))
      assert.strictEqual(nodeCheck(version).status, runs ? "ok" : "fail", version)
    assert.include(nodeCheck("24.21.0").detail, "24.21.0 lacks the security release of 2026-10-22 (CVE-2026-111497")
    assert.include(nodeCheck("24.21.0").fix, "npm ci")
  })

  it("takes Docker where agents may run in it, else the sandbox, and never a process by itself", () => {
    const away = "no engine answers"
    assert.strictEqual(runtimeCheck("auto", undefined, undefined).detail, "docker")
    assert.strictEqual(runtimeCheck("auto", undefined, away).detail, "sandbox, since no engine answers")
    assert.strictEqual(runtimeCheck("sandbox", undefined, undefined).detail, "sandbox")
    assert.strictEqual(runtimeCheck("auto", "no bwrap", away).status, "fail")
    assert.strictEqual(runtimeCheck("docker", undefined, away).status, "fail")
    assert.strictEqual(runtimeCheck("docker", "no bwrap", undefined).status, "ok")
    assert.strictEqual(runtimeCheck("process", undefined, undefined).status, "warn")
  })

  it("asks for a newer git", () => {
    assert.strictEqual(gitVersionCheck(undefined).status, "fail")
    assert.strictEqual(gitVersionCheck("git version 2.30.2").status, "warn")
    for (const version of ["2.38.0", "2.39.5 (Apple Git-154)", "3.0.0"])
      assert.strictEqual(gitVersionCheck(`git version ${version}`).status, "ok")
  })

  it("says what bubblewrap lacks", () => {
    assert.strictEqual(sandboxCheck(undefined).status, "ok")
    assert.include(sandboxFix("bwrap: No permissions to create new namespace"), "sysctl")
    assert.include(sandboxFix("it cannot be started"), "apt-get install bubblewrap")
  })
})
