import { assert, describe, it } from "@effect/vitest"
import { AgentId } from "#schema/Ids.ts"
import { standingText } from "#src/choird/chatcommands/standingText.ts"
import { agentView } from "../../support/agentView.ts"

const now_ms = Date.parse("2026-11-03T07:40Z")
const since = (instant: string) =>
  agentView(AgentId.make("helper"), { status: "running", since_ms: Date.parse(instant) })

describe("the first line of a chat's /status", () => {
  it("says since when the agent has been running, by the clock of the one who asks, and names its zone", () => {
    const text = (instant: string, zone?: string) => standingText(since(instant), now_ms, zone)
    assert.strictEqual(
      text("2026-11-03T07:10Z", "Europe/Berlin"),
      "helper has been running since 08:10 (Europe/Berlin)."
    )
    assert.strictEqual(text("2026-11-03T07:10Z"), "helper has been running since 07:10 UTC.")
    // Of another day there.
    assert.strictEqual(
      text("2026-11-02T22:30Z", "America/New_York"),
      "helper has been running since 2026-11-02 17:30 (America/New_York)."
    )
  })

  it("says what the agent is when it does not run", () => {
    assert.strictEqual(
      standingText({ ...since("2026-11-03T07:10Z"), status: "paused" }, now_ms, undefined),
      "helper is paused."
    )
  })
})
