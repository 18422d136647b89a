/** What agents may have choird do for them, over its stores. */
import { Effect, Layer, Schema, Stream } from "effect"
import { CallResults } from "./CallResults.ts"
import { HostTools } from "./HostTools.ts"
import { SqlClient } from "effect/sql"
import type { Caller } from "#schema/AgentApi.ts"
import { EDGE } from "#schema/Ids.ts"
import { type Appended, EventStore } from "#src/choird/sessions/EventStore.ts"
import { LogAnswer, LogQuery, viewOf } from "#src/shared/session/search.ts"
import { failed, makeHostTool } from "./HostTool.ts"
import { searchLog } from "./searchLog.ts"

/** Ends the runs of calls that have their result: a lane was cancelled, or stopped waiting, and the log says so. */
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

/** One search of a session's log in choird; its pages take milliseconds each. */
const LOG_SEARCH_TIMEOUT_MS = 10_000

const encode = Schema.encodeEffect(LogAnswer)

/** Answers for the lane that asks: edge, or the job whose token came with the request, and no other session. */
export const memoryQuery = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventStore

  const run = Effect.fn("memoryQuery.run")(function* (query: LogQuery, { job_id, session_id }: Caller) {
    const state = yield* events.state(session_id)
    const core = [...state.cores.values()].find((each) => each.job_id === job_id)
    const view = job_id !== undefined && core === undefined ? undefined : viewOf(state, core?.lane ?? EDGE)
    if (view === undefined) return failed("error", "the job does not run any more")
    const found = yield* Effect.provideService(searchLog(session_id, view, query, state.rev), SqlClient.SqlClient, sql)
    return { status: "success", output: yield* encode(found) } as const
  }, Effect.orDie)

  return makeHostTool({
    name: "choir.memory.query",
    effect: "none",
    timeout_ms: LOG_SEARCH_TIMEOUT_MS,
    input: LogQuery,
    run
  })
})

export const layerHostTools = layerRunEndings.pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(memoryQuery, (query) => HostTools.layer([query])))),
  Layer.provide(CallResults.layer)
)
