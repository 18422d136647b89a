import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"
import { ResourceName } from "#schema/Ids.ts"
import { mayDecide } from "#src/choird/approvals/decider.ts"
import { CONFIG, DESK, PHONE } from "../../support/stores.ts"

const config = Schema.decodeUnknownSync(Config)(CONFIG)

describe("who may decide in a chat", () => {
  it("is every DM about calls and the agent's repository, and an admin's about the configuration", () => {
    for (const request_type of ["confirm_tool", "tool", "skill", "repo_change", "config_change"]) {
      assert.isTrue(mayDecide(config, DESK, { request_type }), request_type)
      assert.strictEqual(mayDecide(config, PHONE, { request_type }), request_type !== "config_change", request_type)
      for (const nobody of ["gone", "constructor"])
        assert.isFalse(mayDecide(config, ResourceName.make(nobody), { request_type }))
    }
  })
})
