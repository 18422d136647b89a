import { assert, describe, it } from "@effect/vitest"
import { CallId } from "#schema/Ids.ts"
import { jobOfToken, jobToken } from "#src/shared/jobToken.ts"

const job = CallId.make("0123456789abcdef-1-7-0")

describe("jobToken (R21, D35)", () => {
  it("names its job until it expires, to whoever holds the lease it was made with", () => {
    const token = jobToken("lease", job, 1000)
    assert.strictEqual(jobOfToken("lease", token, 999), job)
    assert.isUndefined(jobOfToken("lease", token, 1000))
    assert.isUndefined(jobOfToken("another lease", token, 0))
  })

  it("is worth nothing with any one character changed", () => {
    const token = jobToken("lease", job, 1000)
    for (let at = 0; at < token.length; at++)
      for (const letter of ["0", "9", "a", "f", ".", "-"]) {
        const changed = token.slice(0, at) + letter + token.slice(at + 1)
        if (changed !== token) assert.isUndefined(jobOfToken("lease", changed, 0))
      }
  })
})
