import { assert, describe, it } from "@effect/vitest"
import { nodeTooOld } from "#src/shared/program/version.ts"

describe("nodeTooOld", () => {
  it("lets Node 22.19 and later pass, and tells the others what helps", () => {
    for (const version of ["22.19.0", "22.20.1", "24.0.0", "26.1.0"]) assert.isUndefined(nodeTooOld(version))
    for (const version of ["20.20.2", "22.18.9", "18.0.0"]) assert.include(nodeTooOld(version), version)
  })
})
