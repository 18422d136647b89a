import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"

const LAUNCH = fileURLToPath(new URL("../../src/agent/launch.ts", import.meta.url))

/** Starts the entry on a Node that says to be of a version. */
const startedOn = (version: string) => {
  const claim = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
  const args = ["--no-warnings", "--import", `data:text/javascript,${encodeURIComponent(claim)}`, LAUNCH]
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env: {}, timeout: 20_000 })
  return { status, stderr }
}

describe("the entry of an agent", () => {
  it("refuses a Node with known holes, before it loads the agent", () => {
    for (const version of ["20.20.2", "22.23.3", "24.22.0", "25.9.0", "26.12.0"]) {
      const { status, stderr } = startedOn(version)
      assert.strictEqual(status, 78, stderr)
      assert.match(
        stderr,
        new RegExp(`^choir-agent: Node ${version} lacks a security release\\. Choir needs Node `, "u")
      )
    }
  })

  it("goes on to load the agent on any other one", () => {
    const { stderr } = startedOn("24.22.1")
    assert.notInclude(stderr, "lacks a security release")
    // The compiled form is beside the built entry alone.
    assert.include(stderr, "loadProgram")
  })
})
