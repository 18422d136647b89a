/** The two events around the effect of a tool whose whole effect is a commit (docs/protocol.md, Batches). */
import type { EventDraft, PayloadOf } from "#schema/Event.ts"
import type { CallId, LaneId } from "#schema/Ids.ts"

/** The commit and the result of a lane's control call; what it does stands between them. */
export const controlBatch = (
  lane: LaneId,
  call_id: CallId,
  summary: string,
  output: PayloadOf<"ToolResultCommitted">["output"]
) =>
  [
    { event_type: "ToolCallCommitted", lane, payload: { call_id, locks: [] } },
    {
      event_type: "ToolResultCommitted",
      lane,
      payload: { call_id, status: "success", summary, duration_ms: 0, ...(output === undefined ? {} : { output }) }
    }
  ] as const satisfies ReadonlyArray<EventDraft>
