/** The projections of stored events on the tables beside the log: acknowledged messages and signals, and messages to people (D6). */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Config } from "#schema/Config.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { type AgentId, EDGE, type InboxId, type JobName, type ResourceName, type SessionId } from "#schema/Ids.ts"
import { insertOutbox, type OutboxMessage } from "#src/choird/queues/Outbox.ts"
import { type Room, unshownNotice, waitingOf, withRoom } from "#src/choird/queues/outboxRoom.ts"
import { askForChunksUntil } from "#src/choird/queues/memoryJobs.ts"
import { type Place, unaskedPlace } from "#src/choird/queues/unaskedPlace.ts"
import { noteAnswered } from "#src/choird/queues/Reactions.ts"
import { rowId } from "#src/choird/database/rowId.ts"

/** The rows that an event acknowledges by carrying their ids (docs/protocol.md, Push stream). */
const inboxIdOf = (event: ChoirEvent) => (event.event_type === "UserMsg" ? event.payload.inbox_id : undefined)

export const signalIdOf = (event: ChoirEvent) => {
  switch (event.event_type) {
    case "InjectedInstruction":
    case "Cancelled":
    case "CompactionCommitted":
    case "SkillTransitionCommitted":
      return event.payload.signal_id
    default:
      return undefined
  }
}

/** The session that the events belong to. What answers no message goes to one of its DMs, see {@link unaskedPlace}. */
interface Origin {
  readonly session_id: SessionId
  readonly agent_id: AgentId
  readonly dms: ReadonlyArray<ResourceName>
  /** The name of its workspace. */
  readonly workspace: string
  /** Whether a lane has text from outside before or after the events. */
  readonly labelled: boolean
}

/** A row whose id an event carries. */
interface Carried {
  readonly id: bigint
  readonly rev: number
  /** The text of a message, as the agent took it. */
  readonly text: string
}

const takenText = (event: ChoirEvent) => (event.event_type === "UserMsg" ? event.payload.text : "")

const carried = (
  events: ReadonlyArray<ChoirEvent>,
  idOf: (event: ChoirEvent) => string | undefined
): ReadonlyArray<Carried> =>
  events.flatMap((event) => {
    const id = rowId(idOf(event) ?? "")
    return id === undefined ? [] : [{ id, rev: event.rev, text: takenText(event) }]
  })

type Spoken = EventOf<"AgentMessage">
const isSpoken = (event: ChoirEvent): event is Spoken =>
  event.event_type === "AgentMessage" && (event.payload.text !== undefined || event.payload.files !== undefined)

/** The messages that events answer. A notice does not: its turn continues. Pure. */
export const answeredBy = (events: ReadonlyArray<ChoirEvent>): ReadonlyArray<InboxId> =>
  events.flatMap((event) =>
    event.event_type === "AgentMessage" && event.payload.kind !== "notice" && event.payload.in_reply_to !== undefined
      ? [event.payload.in_reply_to]
      : []
  )

/** The words of a message; files need none. */
const textOf = ({ facts, text = "" }: Spoken["payload"]): string => (facts === undefined ? text : `${text}\n\n${facts}`)

const KIND_OF_FAILED = { again: "outage", final: "error", stopped: "stopped" } as const

/** A message in place of an answer is not a reply to a person who waits for one. */
const kindOf = ({ failed, kind }: Spoken["payload"]): OutboxMessage["kind"] =>
  failed === undefined ? kind : KIND_OF_FAILED[failed]

/**
 * An id counts only for rows of this agent and this session, whatever the agent writes into its events. A message that the agent took with
 * the text before its edit keeps that text, for the correction that `Inbox.release` makes of it.
 */
const acknowledge = Effect.fnUntraced(function* ({ agent_id, session_id }: Origin, events: ReadonlyArray<ChoirEvent>) {
  const messages = carried(events, inboxIdOf)
  const signals = carried(events, signalIdOf)
  if (messages.length + signals.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const rows = [...messages, ...signals]
  yield* sql`WITH carried AS (
      SELECT * FROM unnest(
        ${rows.map(({ id }) => id)}::bigint[],
        ${rows.map(({ rev }) => rev)}::int[],
        ${rows.map((_, index) => index < messages.length)}::boolean[],
        ${rows.map(({ text }) => text)}::text[]
      ) AS row (id, rev, is_message, text)
    ), told AS (
      UPDATE choir_control.signals AS s SET acked_rev = c.rev FROM carried AS c
      WHERE s.session_id = ${session_id} AND s.acked_rev IS NULL AND c.is_message = (s.kind = 'UserMessage')
        AND c.id = CASE s.kind WHEN 'UserMessage' THEN (s.payload ->> 'inbox_id')::bigint ELSE s.signal_id END
    )
    UPDATE choir_control.inbox AS i SET acked_rev = c.rev, session_id = ${session_id},
      edited = i.edited AND i.text <> c.text,
      taken_text = CASE WHEN i.edited AND i.text <> c.text THEN c.text END
    FROM carried AS c
    WHERE c.is_message AND i.inbox_id = c.id AND i.agent_id = ${agent_id} AND i.acked_rev IS NULL`
})

/** The origins of the answered messages, as the inbox knows them: an agent's own word could name anyone's DM. */
const placesOf = Effect.fnUntraced(function* (agent_id: AgentId, spoken: ReadonlyArray<Spoken>) {
  const ids = carried(spoken, (event) =>
    event.event_type === "AgentMessage" ? event.payload.in_reply_to : undefined
  ).map(({ id }) => id)
  if (ids.length === 0) return new Map<string, Place>()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Place & { readonly id: string }>`SELECT inbox_id::text AS id, gateway, dm
    FROM choir_control.inbox WHERE agent_id = ${agent_id} AND inbox_id = ANY(${ids}::bigint[])`
  return new Map<string, Place>(rows.map(({ dm, gateway, id }) => [id, { dm, gateway }]))
})

/** The third part of the source of a line on a job names the job. */
const sourceOf = (session_id: SessionId, { payload: { job, kind }, rev }: Pick<Spoken, "payload" | "rev">) =>
  `${session_id}:${rev}${kind === "notice" && job !== undefined ? `:${job}` : ""}`

/**
 * Drops the lines on a job that nobody has read by the time of the next message on it: to a person who comes back after hours only the newest
 * is of use.
 */
const dropLines = Effect.fnUntraced(function* (session_id: SessionId, dm: ResourceName, job: JobName) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM choir_control.outbox
    WHERE dm = ${dm} AND delivered_at IS NULL AND failed_at IS NULL AND source = 'event' AND session_id = ${session_id}
      AND split_part(source_id, ':', 3) = ${job}`
})

/** The room of a message: what answers nobody's message is news, as a line on a job is, or files, which no log has. Pure. */
const roomOf = ({ files, job, kind }: Spoken["payload"], asked: Place | undefined): Room => {
  if (asked !== undefined && (kind !== "notice" || files !== undefined)) return "answer"
  return files !== undefined || (asked !== undefined && job === undefined) ? "files" : "news"
}

/** A message of an event, and the job that it is on. */
type Told = OutboxMessage & {
  readonly rev: number
  readonly room: Room
  readonly job: JobName | undefined
}

/** The messages of events that have room, and those that one notice counts. */
export type Tellings = NonNullable<ReturnType<typeof withRoom<Told>>>

const NOTHING: Tellings = { taken: [], beyond: [] }

/** The messages that events make, within the room of their agent; undefined where an answer has none, so that nothing of the request is stored. */
export const tellingsOf = Effect.fnUntraced(function* (
  config: Config,
  { agent_id, dms, labelled, session_id, workspace }: Origin,
  events: ReadonlyArray<ChoirEvent>
) {
  const spoken = events.filter(isSpoken)
  if (spoken.length === 0) return NOTHING
  const places = yield* placesOf(agent_id, spoken)
  const isUnasked = spoken.some(({ payload }) => !places.has(payload.in_reply_to ?? ""))
  const elsewhere = isUnasked ? yield* unaskedPlace(config, agent_id, dms) : undefined
  const messages: Array<Told> = []
  for (const { payload, rev } of spoken) {
    const in_reply_to = payload.in_reply_to ?? null
    const asked = places.get(in_reply_to ?? "")
    const place = asked ?? elsewhere
    const source_id = sourceOf(session_id, { payload, rev })
    if (place === undefined)
      yield* Effect.logWarning(`message ${source_id} cannot be delivered: config.json has no DM ${dms.join(" or ")}`)
    else
      messages.push({
        ...place,
        source: "event",
        source_id,
        agent_id,
        session_id,
        kind: kindOf(payload),
        text: textOf(payload),
        in_reply_to,
        labelled,
        rev,
        room: roomOf(payload, asked),
        job: payload.job,
        ...(payload.files === undefined ? {} : { form: { files: { workspace, items: payload.files } } })
      })
  }
  const replaced = messages.flatMap(({ job }) => job ?? [])
  return withRoom(yield* waitingOf({ agent_id, session_id }, replaced), messages)
})

const speak = Effect.fnUntraced(function* (config: Config, origin: Origin, { beyond, taken }: Tellings) {
  for (const { dm, job } of taken) if (job !== undefined) yield* dropLines(origin.session_id, dm, job)
  const messages: Array<OutboxMessage> = [...taken]
  for (const [dm, [first, ...more]] of Map.groupBy(beyond, (message) => message.dm))
    if (first !== undefined)
      messages.push(
        yield* unshownNotice(origin, { gateway: first.gateway, dm }, { count: 1 + more.length, rev: first.rev })
      )
  yield* insertOutbox(config, messages)
  return [...new Set(messages.map((message) => message.dm))]
})

/** The revision up to which the talk has left its window by these events; 0 where none of them is a compaction of it. */
const leftWindow = (events: ReadonlyArray<ChoirEvent>): number =>
  Math.max(
    0,
    ...events.map((event) =>
      event.event_type === "CompactionCommitted" && event.lane === EDGE ? event.payload.boundary_rev : 0
    )
  )

/** Writes the projections of events, within their transaction. Returns the DMs that have something new. */
export const applyProjections = Effect.fnUntraced(function* (
  config: Config,
  origin: Origin,
  events: ReadonlyArray<ChoirEvent>,
  tellings: Tellings
) {
  yield* acknowledge(origin, events)
  const spoken = yield* speak(config, origin, tellings)
  const left = leftWindow(events)
  if (left > 0) yield* askForChunksUntil(origin.session_id, left)
  const ids = answeredBy(events).flatMap((id) => rowId(id) ?? [])
  return [...new Set([...spoken, ...(yield* noteAnswered(origin.agent_id, ids))])]
})
