import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent } from "#schema/Event.ts"
import { CallId, EDGE, Rev } from "#schema/Ids.ts"
import { factsOf, newWatch } from "#src/choird/telemetry/facts.ts"

describe("the facts of an event", () => {
  it("tell an interrupted model call from one that was answered", () => {
    const outcomes = (["turn", "interrupted"] as const).map((purpose) => {
      const output: ChoirEvent = {
        v: 1,
        rev: Rev.make(2),
        event_type: "ModelOutput",
        lane: EDGE,
        payload: {
          call_id: CallId.make("c-1-2"),
          purpose,
          model: "small",
          tool_calls: [],
          finish_reason: "stop",
          usage: { input_tokens: 120, output_tokens: 0 },
          latency_ms: 250
        },
        created_at: "2026-01-01T00:00:00.000Z"
      }
      const [fact] = factsOf(newWatch(1), output)
      return [fact?.fields["status"], fact?.interval?.ok]
    })
    assert.deepStrictEqual(outcomes, [
      ["ok", true],
      ["interrupted", false]
    ])
  })
})
