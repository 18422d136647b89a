import { assert, describe, it } from "@effect/vitest"
import { browserResult } from "#src/choirctl/doctor/browserTrial.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"

describe("the trial of the browser", () => {
  it("says how to install Chromium where there is none, and that agents have no browser then", () => {
    assert.deepStrictEqual(browserResult(chromiumProgram(["/nowhere/chromium"]), undefined, true), {
      name: "browser",
      status: "warn",
      detail: "Chromium is not installed, so agents read pages without a browser",
      fix: "install Chromium, in Debian: apt-get install chromium"
    })
  })

  it("says where Chromium's own sandbox does not work, and what choird does then", () => {
    assert.deepInclude(browserResult("/usr/bin/chromium", 0, false), { status: "ok" })
    assert.match(browserResult("/usr/bin/chromium", 1, true).detail, /choird runs it without, as a user of its own/u)
    assert.match(browserResult("/usr/bin/chromium", undefined, false).detail, /browsing will fail/u)
  })
})
