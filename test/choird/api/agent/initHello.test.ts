import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { EDGE, InboxId } from "#schema/Ids.ts"
import { BODIES } from "../../../support/agentSocket.ts"
import { append, DM } from "../../../support/control.ts"
import { describeTransports } from "../../../support/everyTransport.ts"

const text = "hi"
const said = (id: string): EventDraft => ({
  event_type: "UserMsg",
  lane: EDGE,
  payload: { inbox_id: InboxId.make(id), dm: DM, text, attachments: [] }
})
const replied = (id: string): EventDraft => ({
  event_type: "AgentMessage",
  lane: EDGE,
  payload: { kind: "reply", text, in_reply_to: InboxId.make(id) }
})

describeTransports("INIT_HELLO of a long session", ({ openSession }) => {
  it.effect(
    "tells the snapshot with the first page of the tail that belongs to it, and not again with a further one",
    () =>
      Effect.gen(function* () {
        const { call, world } = yield* openSession
        yield* append(world, [said("1"), replied("1"), said("2")])
        const digest = "ab".repeat(32)
        const tail_after = { rev: 0, hash: digest }
        world.snapshot = { rev: 2, hash: digest, fold_version: 1, state: { any: ["thing"] }, tail_after }
        const first = JSON.parse((yield* call("INIT_HELLO")).text)
        assert.deepStrictEqual(first.snapshot, world.snapshot)
        assert.strictEqual(first.tail_events.length, 2)
        const body = { ...BODIES.INIT_HELLO, tail_from: 1 }
        const again = JSON.parse((yield* call("INIT_HELLO", { token: "lease", body })).text)
        assert.deepStrictEqual([again.snapshot, again.tail_events.length], [undefined, 2])
      })
  )
})
