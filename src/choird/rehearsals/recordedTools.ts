/** The sessions of an agent in which a tool was called: the inputs that it got then, and the run of a skill that called it. */
import { Effect, Result, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { AgentId, SessionId } from "#schema/Ids.ts"
import type { SkillName } from "#schema/Skill.ts"
import { effectOf, type ToolManifest } from "#schema/Tool.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import { EVENT_COLUMNS } from "#src/choird/sessions/storedEvents.ts"
import { eventOf, type EventRow, readRow } from "#src/shared/events/eventRow.ts"
import type { RunPlace } from "./recordedRuns.ts"

/** The newest sessions that are searched for calls of a tool. */
const SESSIONS_SEARCHED_MAX = 20
/** Calls of all tools in one session that are read, the newest. */
const CALLS_READ_MAX = 1000
/** Characters of a problem that a person is shown. */
const PROBLEM_CHARS_MAX = 200

/** A call as it was asked for. */
interface AskedCall {
  readonly rev: number
  readonly lane: string
  readonly input: Schema.Json
}

/** A session that called a tool: the newest calls come first, and the run is the newest one of a skill that made some of them. */
export interface ToolSession {
  readonly session_id: SessionId
  readonly calls: ReadonlyArray<AskedCall>
  readonly run: (RunPlace & { readonly skill: SkillName }) | undefined
}

/** The calls of a tool in a session. One whose words were forgotten is missing. */
const callsIn = Effect.fnUntraced(function* (session_id: SessionId, tool: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<EventRow>`SELECT ${sql.literal(EVENT_COLUMNS)} FROM choir_control.session_events
    WHERE session_id = ${session_id} AND event_type = 'ToolCallRequested' AND payload_digest IS NULL
    ORDER BY rev DESC LIMIT ${CALLS_READ_MAX}`
  return rows.flatMap((row): ReadonlyArray<AskedCall> => {
    const text = readRow(row)
    const event = Result.isFailure(text) ? undefined : Result.getOrUndefined(eventOf(text.success))
    if (event?.event_type !== "ToolCallRequested" || event.payload.tool !== tool) return []
    return [{ rev: event.rev, lane: event.lane, input: event.payload.input }]
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

/** The newest sessions that called a tool. `held_out` does not count, since the proposal was written with it in view. */
export const findToolSessions = Effect.fnUntraced(function* (
  agent_id: AgentId,
  tool: string,
  options: { readonly held_out: SessionId; readonly last: number }
) {
  const sql = yield* SqlClient.SqlClient
  const sessions = yield* sql<{ readonly session_id: SessionId }>`SELECT session_id FROM choir_control.sessions
    WHERE agent_id = ${agent_id} AND session_id <> ${options.held_out}
    ORDER BY started_at DESC, session_id DESC LIMIT ${SESSIONS_SEARCHED_MAX}`
  const found: Array<ToolSession> = []
  for (const { session_id } of sessions) {
    if (found.length === options.last) break
    const calls = yield* callsIn(session_id, tool)
    if (calls.length > 0) found.push({ session_id, calls, run: yield* runOf(session_id, calls) })
  }
  return found
})

const problemOf = ({ llm: { input_schema } }: ToolManifest, input: Schema.Json): string | undefined =>
  valueProblem(input_schema as Readonly<Record<string, Schema.Json>>, input)

/**
 * The reasons for which a proposed manifest is worse than today's for the calls of a session, as ends of sentences: it refuses some by its input
 * schema, or they act outside and nobody would be asked about them any more. Pure.
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
          `refuses ${problems.length} of ${calls}: ${first.replaceAll(/\s+/gu, " ").slice(0, PROBLEM_CHARS_MAX).toWellFormed()}`
      ),
    ...(today !== undefined && taken.length > 0 && effectOf(today) === "external" && effect !== "external"
      ? [`asks nobody about ${calls}: they act outside by today's manifest, and have the effect ${effect} by this one`]
      : [])
  ]
}
