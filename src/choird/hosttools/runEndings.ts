/** Ends the runs of calls that have their result: a lane was cancelled, or stopped waiting, and the log says so. */
import { Effect, Layer, Stream } from "effect"
import { type Appended, EventStore } from "#src/choird/sessions/EventStore.ts"
import { HostTools } from "./HostTools.ts"

export const layerRunEndings = Layer.effectDiscard(
  Effect.gen(function* () {
    const { appended } = yield* EventStore
    const tools = yield* HostTools
    const end = ({ events, session_id }: Appended) =>
      Effect.forEach(
        events,
        (event) =>
          event.event_type === "ToolResultCommitted" ? tools.ended(session_id, event.payload.call_id) : Effect.void,
        { discard: true }
      )
    yield* Stream.runForEach(appended, end).pipe(
      Effect.tapCause(Effect.logError),
      Effect.forkScoped({ startImmediately: true })
    )
  })
)
