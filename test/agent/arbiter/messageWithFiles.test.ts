/** Files that a person sends may be somebody else's: what reads them is labelled, and the person's own voice is not. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { Attachment } from "#schema/Event.ts"
import { InboxId, ResourceName, Sha256 } from "#schema/Ids.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { placed, situation } from "../../support/history.ts"

const FILE = { path: ".choirtmp/recv/document-1.txt", name: "terms.txt", mime: "text/plain", bytes: 5 }
const PICTURE = { type: "image/png", sha256: Sha256.make("0".repeat(64)), bytes: 5, width: 1, height: 1 } as const

const taken = (attachments: ReadonlyArray<typeof Attachment.Type>, workspace_label: WorkspaceLabel = {}) => {
  const dm = ResourceName.make("me")
  const message = {
    type: "UserMessage",
    inbox_id: InboxId.make("1"),
    dm,
    text: "",
    attachments,
    created_at: ""
  } as const
  const drafts = decide(initialState, { type: "UserMessage", message }, situation({ workspace_label }))
  const events = placed(initialState, Result.getOrThrow(drafts))
  return { events, state: Result.getOrThrow(foldAll(initialState, events)) }
}

describe("a message with files", () => {
  it("says so in its event, and taints nothing before something reads them", () => {
    const { events, state } = taken([FILE])
    assert.deepInclude(events[0]?.payload, { received: true })
    assert.isTrue(state.workspace_received)
    assert.isFalse(state.workspace_tainted)
    assert.isFalse(state.edge.tainted)
  })

  it("taints edge at once when a prompt shows one", () => {
    const { state } = taken([{ ...FILE, picture: PICTURE }])
    assert.isTrue(state.edge.tainted)
    assert.deepStrictEqual(state.edge.sources, [`file:${state.edge.turn?.kind === "turn" ? state.edge.turn.dm : ""}`])
  })

  it("is the person speaking when its words were understood", () => {
    const { events, state } = taken([{ ...FILE, transcribed: { model: "whisper" } }])
    assert.notProperty(events[0]?.payload, "received")
    assert.isFalse(state.workspace_received)
  })

  it("means nothing of the kind in a history of an earlier Choir", () => {
    const { events } = taken([{ ...FILE, picture: PICTURE }])
    const old = events.map((event) => {
      if (event.event_type !== "UserMsg") return event
      const { received: _, ...payload } = event.payload
      return { ...event, payload }
    })
    const state = Result.getOrThrow(foldAll(initialState, old))
    assert.isFalse(state.edge.tainted)
    assert.isFalse(state.workspace_received)
  })
})
