/** The sessions of an agent in which a tool was called: the inputs that it got then, and the run of a skill that called it. */
import { Effect, Result, type Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent, PayloadOf, ToolStatus } from "#schema/Event.ts"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import { capabilitiesOf, effectOf, type ToolManifest } from "#schema/Tool.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { EVENT_COLUMNS, EVENT_SIZE } from "#src/choird/sessions/storedEvents.ts"
import { eventOf, type EventRow, readRow } from "#src/shared/events/eventRow.ts"
import { RECORD_BYTES_MAX, type RunPlace } from "./recordedRuns.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The newest sessions that are searched for calls of a tool. */
const SESSIONS_SEARCHED_MAX = 20
/** Calls of all tools in one session that are read, the newest. */
const CALLS_READ_MAX = 1000
/** Bytes of these calls, as much as a run's record has; older ones are left out. */
const CALLS_READ_BYTES_MAX = RECORD_BYTES_MAX
/** Characters of a problem that a person is shown. */
const PROBLEM_CHARS_MAX = 200

/** Bytes of the input or the output of a call on which a program may be run, as JSON. */
const VALUE_BYTES_MAX = 64 * 1024

/** How a call ended. */
export interface RecordedResult {
  readonly status: ToolStatus
  readonly output?: Schema.Json
}

/** A call as it was asked for; `result` is missing where it did not end, or is too long to be compared. */
interface AskedCall {
  readonly rev: number
  readonly lane: string
  readonly input: Schema.Json
  readonly result?: RecordedResult
}

/** A session that called a tool: the newest calls come first, and the run is the newest one of a skill that made some of them. */
export interface ToolSession {
  readonly session_id: SessionId
  readonly calls: ReadonlyArray<AskedCall>
  readonly run: (RunPlace & { readonly skill: SkillName }) | undefined
}

/** The newest events of a type in a session, as far as their words were not forgotten. */
const newestEvents = Effect.fnUntraced(function* (
  session_id: SessionId,
  event_type: "ToolCallRequested" | "ToolResultCommitted",
  bytes_max: number
) {
  const sql = yield* SqlClient.SqlClient
  const columns = sql.literal(EVENT_COLUMNS)
  const rows = yield* sql<EventRow>`SELECT ${columns} FROM (
      SELECT ${columns}, sum(${sql.literal(EVENT_SIZE)}) OVER (ORDER BY rev DESC) AS total
      FROM choir_control.session_events
      WHERE session_id = ${session_id} AND event_type = ${event_type} AND payload_digest IS NULL
      ORDER BY rev DESC LIMIT ${CALLS_READ_MAX}
    ) AS newest WHERE total <= ${bytes_max} ORDER BY rev DESC`
  return rows.flatMap((row): ReadonlyArray<ChoirEvent> => {
    const text = readRow(row)
    const event = Result.isFailure(text) ? undefined : Result.getOrUndefined(eventOf(text.success))
    return event === undefined ? [] : [event]
  })
})

const isShort = (value: Schema.Json | undefined): boolean =>
  value === undefined || Buffer.byteLength(JSON.stringify(value)) <= VALUE_BYTES_MAX

const resultOf = ({ output, status }: PayloadOf<"ToolResultCommitted">): RecordedResult | undefined => {
  if ((status !== "success" && status !== "error") || !isShort(output)) return undefined
  return { status, ...(output === undefined ? {} : { output }) }
}

/** The calls of a tool in a session. One whose words were forgotten is missing. */
const callsIn = Effect.fnUntraced(function* (session_id: SessionId, tool: string, bytes_max: number) {
  const asked = (yield* newestEvents(session_id, "ToolCallRequested", bytes_max)).flatMap((event) =>
    event.event_type === "ToolCallRequested" && event.payload.tool === tool ? [event] : []
  )
  if (asked.length === 0) return []
  const results = new Map(
    (yield* newestEvents(session_id, "ToolResultCommitted", bytes_max)).flatMap((event) => {
      const result = event.event_type === "ToolResultCommitted" ? resultOf(event.payload) : undefined
      return event.event_type === "ToolResultCommitted" && result !== undefined ? [[event.payload.call_id, result]] : []
    })
  )
  return asked.map(({ lane, payload: { call_id, input }, rev }): AskedCall => {
    const result = isShort(input) ? results.get(call_id) : undefined
    return { rev, lane, input, ...(result === undefined ? {} : { result }) }
  })
})

const runOf = Effect.fnUntraced(function* (session_id: SessionId, calls: ReadonlyArray<AskedCall>) {
  const sql = yield* SqlClient.SqlClient
  const runs = yield* sql<
    RunPlace & { readonly skill: SkillName }
  >`SELECT session_id, lane, started_rev, ended_rev, outcome, skill
    FROM choir_control.skill_runs WHERE session_id = ${session_id} AND outcome IN ('completed', 'failed')
    ORDER BY started_rev DESC`
  return runs.find(({ ended_rev, lane, started_rev }) =>
    calls.some((call) => call.lane === lane && call.rev > started_rev && call.rev < ended_rev)
  )
})

/**
 * The newest sessions that called a tool, read one at a time as they are taken, since the calls of each may be large. `held_out` does not count,
 * since the proposal was written with it in view.
 */
export const findToolSessions = (
  agent_id: AgentId,
  tool: string,
  options: { readonly held_out: SessionId; readonly last: number; readonly bytes_max?: number }
) => {
  const { bytes_max = CALLS_READ_BYTES_MAX, held_out, last } = options
  const sessions = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
      WHERE agent_id = ${agent_id} AND session_id <> ${held_out}
      ORDER BY started_at DESC, session_id DESC LIMIT ${SESSIONS_SEARCHED_MAX}`
  )
  const toolSession = Effect.fnUntraced(function* (session_id: SessionId) {
    const calls = yield* callsIn(session_id, tool, bytes_max)
    const found: ReadonlyArray<ToolSession> =
      calls.length === 0 ? [] : [{ session_id, calls, run: yield* runOf(session_id, calls) }]
    return found
  })
  return Stream.fromIterableEffect(sessions).pipe(
    Stream.rechunk(1),
    Stream.mapEffect(({ session_id }) => toolSession(session_id)),
    Stream.flatMap((found) => Stream.fromIterable(found)),
    Stream.take(last)
  )
}

const problemOf = ({ llm: { input_schema } }: ToolManifest, input: Schema.Json): string | undefined =>
  valueProblem(input_schema as Readonly<Record<string, Schema.Json>>, input)

/** The powers of a proposed manifest that today's has not, and the mark of strangers' text if it drops that. */
const widened = (today: ToolManifest, proposed: ToolManifest): ReadonlyArray<string> => {
  const before = capabilitiesOf(today)
  const more = capabilitiesOf(proposed).filter((each) => !before.includes(each))
  const secrets = proposed.runtime.secret_resources.filter((name) => !today.runtime.secret_resources.includes(name))
  return [
    ...(more.length === 0 ? [] : [`can do ${more.join(", ")}, which today's cannot`]),
    ...(proposed.runtime.network && !today.runtime.network ? ["reaches the network, which today's does not"] : []),
    ...(secrets.length === 0 ? [] : [`is given ${secrets.join(", ")}, which today's is not`]),
    ...(today.runtime.untrusted && !proposed.runtime.untrusted
      ? ["no longer marks its results as text from strangers"]
      : [])
  ]
}

/**
 * The reasons for which a proposed manifest is worse than today's for the calls of a session, as ends of sentences: it refuses some by its input
 * schema, they act outside and nobody would be asked about them any more, or it may do more and says less of it. Pure.
 */
export const worseForCalls = (
  today: ToolManifest | undefined,
  proposed: ToolManifest,
  inputs: ReadonlyArray<Schema.Json>
): ReadonlyArray<string> => {
  const taken = inputs.filter((input) => today === undefined || problemOf(today, input) === undefined)
  const problems = taken.flatMap((input) => problemOf(proposed, input) ?? [])
  const effect = effectOf(proposed)
  const calls = `${taken.length} ${taken.length === 1 ? "call that was" : "calls that were"} made then`
  return [
    ...problems
      .slice(0, 1)
      .map(
        (first) =>
          `refuses ${problems.length} of ${calls}: ${firstPart(first.replaceAll(/\s+/gu, " "), PROBLEM_CHARS_MAX)}`
      ),
    ...(today !== undefined && taken.length > 0 && effectOf(today) === "external" && effect !== "external"
      ? [
          `would no longer ask a person about ${calls}: today's manifest says that they act outside, and this one gives them the effect ${effect}`
        ]
      : []),
    ...(today === undefined ? [] : widened(today, proposed))
  ]
}
