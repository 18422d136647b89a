import { assert, describe, it } from "@effect/vitest"
import { admit, prepare, type WritableSession } from "#src/choird/sessions/decideAppend.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { Talk } from "../../support/stores.ts"

const heartbeat = new Talk(SessionId.make("0123456789abcdef"), AgentId.make("agent-1")).turn(1).heartbeat(0)
const session: WritableSession = { status: "active", epoch: 3, frozen_reason: null, last_rev: 0 }

const admitted = (more: Partial<WritableSession>, caller_epoch: number, epoch: number, base_rev = 0) =>
  admit({ ...session, ...more }, caller_epoch, { ...heartbeat, epoch, base_rev }, prepare(heartbeat))

describe("who may append (D4, D8)", () => {
  it("is the newest epoch, by its token and by its own words", () => {
    assert.isUndefined(admitted({}, 3, 3))
    assert.deepStrictEqual(admitted({}, 2, 3), { type: "fenced" })
    assert.deepStrictEqual(admitted({}, 3, 2), { type: "fenced" })
    assert.deepInclude(admitted({}, 3, 4), { type: "conflict", reason: "epoch 4 was never given" })
  })

  it("is nobody once the session has ended, is frozen or lacks events", () => {
    assert.deepStrictEqual(admitted({ status: "stopped" }, 3, 3), { type: "fenced" })
    assert.deepStrictEqual(admitted({ frozen_reason: "x" }, 3, 3), { type: "frozen" })
    assert.deepStrictEqual(admitted({ frozen_reason: "x" }, 3, 2), { type: "fenced" })
    assert.deepStrictEqual(admitted({}, 3, 3, 1), { type: "gap" })
  })
})
