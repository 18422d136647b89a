import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { DEFAULT_HOME, homeFolder } from "#src/shared/files/homeFolder.ts"

describe("homeFolder", () => {
  it("is the flag's, else CHOIR_HOME's, else the default, and a path from the root", () => {
    assert.strictEqual(homeFolder("/a", "/b"), "/a")
    assert.strictEqual(homeFolder(undefined, "/b"), "/b")
    assert.strictEqual(homeFolder("c", "/b"), join(process.cwd(), "c"))
  })

  it("is never the folder that a program happens to be started in, for an empty name", () => {
    assert.strictEqual(homeFolder("", "/b"), "/b")
    assert.strictEqual(homeFolder(undefined, ""), DEFAULT_HOME)
  })
})
