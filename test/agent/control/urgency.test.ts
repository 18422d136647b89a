import { assert, describe, it } from "@effect/vitest"
import type { ChoirEvent, EventType } from "#schema/Event.ts"
import { CallId, EDGE } from "#schema/Ids.ts"
import { urgencyOf } from "#src/agent/control/Replication.ts"
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
const URGENCIES: Readonly<Record<EventType, "now" | "soon" | "whenever">> = {
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

describe("the urgency of an event (D7, R13)", () => {
  for (const [type, urgency] of Object.entries(URGENCIES) as ReadonlyArray<[EventType, string]>)
    it(`of ${type} is ${urgency}`, () => assert.strictEqual(urgencyOf(event(type), initialState), urgency))

  it("of an intent is the highest where an effect outside waits for it, and the lowest elsewhere (D3)", () => {
    const intent = event("ToolCallCommitted")
    assert.strictEqual(urgencyOf(intent, running("external")), "now")
    assert.strictEqual(urgencyOf(intent, running("workspace")), "whenever")
    assert.strictEqual(urgencyOf(intent, running("none")), "whenever")
  })

  it("of a request is the highest where a person is to be asked about it (D31)", () => {
    assert.strictEqual(urgencyOf(event("ToolCallRequested", { confirm: "tainted" }), initialState), "now")
  })

  it("is higher for what ends an order of a person, who waits for it", () => {
    for (const type of ["InjectedInstruction", "CompactionCommitted"] as const)
      assert.strictEqual(urgencyOf(event(type, { signal_id: "7" }), initialState), "soon")
  })
})
