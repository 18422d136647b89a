/** The runs of a skill that an agent's sessions have, each with its input and the calls that answer a rehearsal. */
import { Effect, type Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { type ChoirEvent, isKnownEvent } from "#schema/Event.ts"
import type { AgentId, LaneId, Rev, SessionId } from "#schema/Ids.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { ToolName } from "#schema/Tool.ts"
import type { RecordedCall } from "#schema/Trial.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import type { RecordedOutcome } from "./compareTrials.ts"

/** Calls of a run that answer its rehearsal, and their bytes as JSON; later ones are left out. */
const RECORD_CALLS_MAX = 400
export const RECORD_BYTES_MAX = 4 * 1024 * 1024
/** Events of a session that are read for one run. */
const RUN_EVENTS_MAX = 20_000

export interface RunPlace {
  readonly session_id: SessionId
  readonly lane: LaneId
  readonly started_rev: Rev
  readonly ended_rev: Rev
  readonly outcome: RecordedOutcome
}

export interface RecordedRun extends RunPlace {
  readonly input?: Schema.Json
  readonly record: ReadonlyArray<RecordedCall>
}

/**
 * The newest runs of a skill that ended, each in a session of its own. Those of `held_out` do not count, since the proposal was written with
 * them in view.
 */
export const findRuns = Effect.fnUntraced(function* (
  agent_id: AgentId,
  skill: string,
  options: { readonly held_out?: SessionId | undefined; readonly last: number }
) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<RunPlace>`SELECT session_id, lane, started_rev, ended_rev, outcome FROM (
      SELECT DISTINCT ON (session_id) session_id, lane, started_rev, ended_rev, outcome, started_at
      FROM choir_control.skill_runs
      WHERE agent_id = ${agent_id} AND skill = ${skill} AND outcome IN ('completed', 'failed')
        AND session_id <> ${options.held_out ?? ""}
      ORDER BY session_id, started_at DESC) AS newest
    ORDER BY started_at DESC LIMIT ${options.last}`
})

/** The calls of a lane with their results, as they were recorded. A tool that is not there any more has a name all the same. */
const callsOf = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<RecordedCall> => {
  const asked = new Map<string, { readonly tool: ToolName; readonly input: Schema.Json }>()
  const calls: Array<RecordedCall> = []
  let bytes = 0
  for (const event of events) {
    if (event.event_type === "ToolCallRequested") {
      const { call_id, input, tool } = event.payload
      asked.set(call_id, { tool: ToolName.make(tool), input })
    }
    if (event.event_type !== "ToolResultCommitted") continue
    const { call_id, output, status, summary, untrusted } = event.payload
    const call = asked.get(call_id)
    if (call === undefined || status === "rejected" || status === "cancelled") continue
    const recorded: RecordedCall = {
      ...call,
      status,
      summary,
      ...(output === undefined ? {} : { output }),
      ...(untrusted === undefined ? {} : { untrusted })
    }
    bytes += Buffer.byteLength(JSON.stringify(recorded))
    if (calls.length === RECORD_CALLS_MAX || bytes > RECORD_BYTES_MAX) break
    calls.push(recorded)
  }
  return calls
}

/** The input of a run by the event that began it. A skill with a contract has it as the first values of its STATE. */
const inputOf = (start: ChoirEvent | undefined): Schema.Json | undefined =>
  start?.event_type === "SkillTransitionCommitted" ? (start.payload.input ?? start.payload.writes) : undefined

/** A run as the events of its lane tell it. Words that were forgotten are missing from it. */
export const recordedRun = (place: RunPlace, events: ReadonlyArray<ChoirEvent>): RecordedRun => {
  const input = inputOf(events[0])
  return { ...place, ...(input === undefined ? {} : { input }), record: callsOf(events) }
}

export const readRun = Effect.fnUntraced(function* (place: RunPlace) {
  const { ended_rev, lane, session_id, started_rev } = place
  const store = yield* EventStore
  const lines = yield* store
    .events(session_id, { from: started_rev, follow: false })
    .pipe(
      Stream.take(Math.min(ended_rev - started_rev + 1, RUN_EVENTS_MAX)),
      Stream.filter(isPrintedEvent),
      Stream.runCollect
    )
  return recordedRun(
    place,
    lines.flatMap(({ event }) => (isKnownEvent(event) && event.lane === lane ? [event] : []))
  )
})
