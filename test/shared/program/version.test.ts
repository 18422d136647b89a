import { assert, describe, it } from "@effect/vitest"
import { nodeProblem } from "#src/shared/program/version.ts"
import { NODE_VERSIONS } from "../../support/nodeVersions.ts"

describe("nodeProblem", () => {
  it("lets releases of Node with the known security fixes pass, and tells the others why not and what helps", () => {
    for (const [version, runs] of Object.entries(NODE_VERSIONS)) {
      const problem = nodeProblem(version)
      if (runs) assert.isUndefined(problem, version)
      else
        assert.strictEqual(
          problem,
          `Node ${version} lacks a security release. Choir needs Node 22.23.4, 24.22.1 or 26.12.1, or a later release of these lines. A checkout of Choir brings its own: npm ci && npm run link`
        )
    }
  })
})
