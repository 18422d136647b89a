import { assert, describe, it } from "@effect/vitest"
import { apartLevelCheck } from "#src/choirctl/doctor/apartCheck.ts"

describe("doctor about calls", () => {
  it("warns where the kernel keeps none apart, with the way out", () => {
    const { fix, status } = apartLevelCheck("none")
    assert.strictEqual(status, "warn")
    assert.match(fix ?? "", /^update the kernel, and let lsm= on its command line name landlock$/u)
    assert.strictEqual(apartLevelCheck("full").status, "ok")
    assert.match(
      apartLevelCheck("memory").detail,
      /does not keep signals and abstract sockets apart; Linux 6\.12 does$/u
    )
    assert.strictEqual(apartLevelCheck(undefined).status, "skip")
  })
})
