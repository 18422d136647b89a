import { assert, describe, it } from "@effect/vitest"
import { withMovedPaths } from "#src/shared/files/movedPaths.ts"

describe("paths of a home that has moved", () => {
  it("lead to the new home where a whole string is the old one or a path below it, and nowhere else", () => {
    const before = {
      home: "/srv/old",
      below: ["/srv/old/sources/global", "/private/srv/old/x"],
      beside: "/srv/older/x",
      within: "see /srv/old/x",
      "/srv/old": { number: 1, nothing: null, flag: true }
    }
    assert.deepStrictEqual(withMovedPaths(before, { from: ["/srv/old", "/private/srv/old"], to: "/srv/new" }), {
      home: "/srv/new",
      below: ["/srv/new/sources/global", "/srv/new/x"],
      beside: "/srv/older/x",
      within: "see /srv/old/x",
      "/srv/old": { number: 1, nothing: null, flag: true }
    })
  })
})
