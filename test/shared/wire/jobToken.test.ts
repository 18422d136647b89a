import { createHmac } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { CallId } from "#schema/Ids.ts"
import { jobOfToken, jobToken } from "#src/shared/wire/jobToken.ts"

const job = CallId.make("0123456789abcdef-1-7-0")

describe("jobToken (R21, D35)", () => {
  it("names its job to a holder of the lease that it was made with", () => {
    const token = jobToken("lease", job)
    assert.strictEqual(jobOfToken("lease", token), job)
    assert.isUndefined(jobOfToken("another lease", token))
  })

  it("is taken in the form of an agent that wrote an expiry, and by a choird that compares it with its clock", () => {
    const mac = createHmac("sha256", "lease").update(`${job}.1000`).digest("hex")
    assert.strictEqual(jobOfToken("lease", `${job}.1000.${mac}`), job)
    const exp = Number(/\.(?<exp>[0-9]{1,15})\.[0-9a-f]{64}$/u.exec(jobToken("lease", job))?.groups?.["exp"])
    assert.isAbove(exp, Date.parse("9999-12-31"))
  })

  it("is worth nothing with any one character changed", () => {
    const token = jobToken("lease", job)
    for (let at = 0; at < token.length; at++)
      for (const letter of ["0", "9", "a", "f", ".", "-"]) {
        const changed = token.slice(0, at) + letter + token.slice(at + 1)
        if (changed !== token) assert.isUndefined(jobOfToken("lease", changed))
      }
  })
})
