import { assert, describe, it } from "@effect/vitest"
import { makeVisibleText } from "#src/agent/model/visibleText.ts"
import { makeBegun, makeScrub } from "#src/agent/settings/scrub.ts"

describe("the words of an answer that is being written", () => {
  it("show no secret that ends as it begins, wherever the pieces are cut", () => {
    const secret = "sk-0123456789abcdefghijklmnops"
    const text = `It is ${secret}, and no more.`
    for (let cut = 0; cut <= text.length; cut++) {
      const visible = makeVisibleText({ begun: makeBegun([secret]), scrub: makeScrub([secret]) })
      const shown = visible(text.slice(0, cut)) + visible(text.slice(cut))
      assert.notInclude(shown, secret, `cut at ${cut}`)
    }
  })
})
