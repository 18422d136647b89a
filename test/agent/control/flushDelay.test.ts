import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent, EventType } from "#schema/Event.ts"
import { CallId, EDGE } from "#schema/Ids.ts"
import { flushDelayOf } from "#src/agent/control/Replication.ts"
import { initialState } from "#src/shared/session/fold.ts"
import { withLane } from "#src/shared/session/lanes.ts"
import type { OpenCall } from "#src/shared/session/State.ts"

const call_id = CallId.make("s-1-2-0")
const event = (event_type: EventType, payload: object = {}) =>
  ({ event_type, lane: EDGE, payload: { call_id, ...payload } }) as unknown as ChoirEvent
const running = (effect: OpenCall["effect"]) => {
  const call: OpenCall = {
    call_id,
    name: "t",
    digest: "",
    stage: "committed",
    effect,
    output_rev: 2,
    committed_rev: 3,
    report: undefined
  }
  return withLane(initialState, EDGE, { calls: [call] })
}

/** Every type of event; a new one has to say how soon it is sent. */
const DELAYS: Readonly<Record<EventType, "now" | "soon" | "whenever">> = {
  AgentMessage: "now",
  UserMsg: "soon",
  ModelOutput: "soon",
  CoreStarted: "soon",
  CoreStopped: "soon",
  Cancelled: "soon",
  ToolCallRequested: "whenever",
  ToolCallCommitted: "whenever",
  ToolResultCommitted: "whenever",
  MemoryWriteCommitted: "whenever",
  SkillTransitionCommitted: "whenever",
  InjectedInstruction: "whenever",
  CompactionCommitted: "whenever"
}

describe("the flush delay of an event (D7, R13)", () => {
  for (const [type, delay] of Object.entries(DELAYS) as ReadonlyArray<[EventType, string]>)
    it(`of ${type} is ${delay}`, () => assert.strictEqual(flushDelayOf(event(type), initialState), delay))

  it("of an intent is the shortest where an external effect waits for it, and the longest elsewhere (D3)", () => {
    const intent = event("ToolCallCommitted")
    assert.strictEqual(flushDelayOf(intent, running("external")), "now")
    assert.strictEqual(flushDelayOf(intent, running("workspace")), "whenever")
    assert.strictEqual(flushDelayOf(intent, running("none")), "whenever")
  })

  it("of a request is the shortest where a person has to be asked about it (D31)", () => {
    assert.strictEqual(flushDelayOf(event("ToolCallRequested", { confirm: "tainted" }), initialState), "now")
  })

  it("is shorter for the end of an order of a person, who waits for it", () => {
    for (const type of ["InjectedInstruction", "CompactionCommitted"] as const)
      assert.strictEqual(flushDelayOf(event(type, { signal_id: "7" }), initialState), "soon")
  })
})
