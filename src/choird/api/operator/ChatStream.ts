/** The stream of a console client: messages until they are acknowledged, and the agent's activity (docs/protocol.md, Console). */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { AgentId, InboxId, ResourceName, SessionId } from "#schema/Ids.ts"
import type { ChoirEvent } from "#schema/Event.ts"
import { type ChatEvent } from "#schema/ChatApi.ts"
import { isPrintedEvent } from "#schema/SessionsApi.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Drafts, type ShownDraft } from "#src/choird/queues/Drafts.ts"
import { chatText } from "#src/choird/queues/chatText.ts"
import { Outbox, type Outgoing } from "#src/choird/queues/Outbox.ts"
import type { Appended } from "#src/choird/sessions/Appends.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { counted } from "#src/shared/text/counts.ts"
import { waitsForPerson } from "#src/shared/session/parkTurn.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { nextReport } from "#src/shared/session/turns.ts"

/** Messages that a console client is shown before it acknowledges one, and the bytes of their texts; one message is always shown. */
export const CHAT_UNACKED_MAX = 1000
export const CHAT_UNACKED_BYTES_MAX = 4 * 1024 * 1024
/** Messages whose end a console stream waits for; it drops the oldest. */
const CHAT_WATCHED_MAX = 1000

/** A reason to check again. */
type Tick =
  | { readonly type: "outbox" }
  | { readonly type: "appended"; readonly appended: Appended }
  | { readonly type: "agent"; readonly view: AgentView }
  | { readonly type: "draft"; readonly draft: ShownDraft }

/** Where the files of a message are, one a line: in the agent's workspace on this host. */
const fileLines = ({ form }: Outgoing, view: AgentView | undefined): ReadonlyArray<string> => {
  const { items = [], workspace = "" } = form?.files ?? {}
  const root = Object.entries(view?.started_with?.workspaces ?? {}).find(([name]) => name === workspace)?.[1].path
  return items.map(({ bytes, path }) => {
    const inside = path.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "_")
    return `File: ${root === undefined ? inside : `${root}/${inside}`} (${counted(bytes)} bytes)`
  })
}

const message = (row: Outgoing, view: AgentView | undefined): ChatEvent => {
  const { in_reply_to, kind, outbox_id, part, question, source, source_id } = row
  return {
    type: "message",
    outbox_id,
    source: `${source}:${source_id}`,
    part,
    kind,
    text: [chatText(row), ...fileLines(row, view)].filter((line) => line !== "").join("\n"),
    in_reply_to,
    question: question ?? null
  }
}

/** The newest messages that a session took, and whether its agent said something. */
interface News {
  readonly taken: ReadonlyArray<InboxId>
  readonly speaks: boolean
}

const NO_NEWS: News = { taken: [], speaks: false }

/** Keeps no event: a client that reads slowly may have missed any number of them. */
const withEvent = ({ speaks, taken }: News, event: ChoirEvent): News => {
  if (event.event_type === "AgentMessage") return { taken, speaks: true }
  return event.event_type === "UserMsg"
    ? { taken: [...taken, event.payload.inbox_id].slice(-CHAT_WATCHED_MAX), speaks }
    : { taken, speaks }
}

type Waiting = Effect.Success<ReturnType<Outbox["Service"]["waiting"]>>

/** The first messages that a client may be shown unacknowledged. Pure. */
const shownOf = (waiting: Waiting): Waiting => {
  let total = 0
  const beyond = waiting.findIndex(({ bytes }, index) => {
    total += bytes
    return index > 0 && (index >= CHAT_UNACKED_MAX || total > CHAT_UNACKED_BYTES_MAX)
  })
  return beyond === -1 ? waiting : waiting.slice(0, beyond)
}

/** The undelivered messages of a DM that one client has not seen; those beyond its limits wait until some are acknowledged. */
const makeUnread = Effect.map(Effect.all([Lifecycle, Outbox]), ([lifecycle, outbox]) => (dm: ResourceName) => {
  // Ids of a DM commit in order, so that all before this one were shown.
  let last: string | undefined
  return Effect.gen(function* () {
    const waiting = yield* outbox.waiting(dm, CHAT_UNACKED_MAX + 1)
    const shown = shownOf(waiting)
    const news = new Set(shown.map(({ outbox_id }) => outbox_id).filter((id) => BigInt(id) > BigInt(last ?? 0)))
    const rows: Array<Outgoing> = []
    while (news.size > 0) {
      const page = yield* outbox.undelivered(dm, last)
      const wanted = page.filter(({ outbox_id }) => news.delete(outbox_id))
      // Whatever is left was delivered to another client meanwhile.
      if (wanted.length === 0) break
      rows.push(...wanted)
      last = wanted.at(-1)?.outbox_id
    }
    const views = yield* lifecycle.list
    const viewOf = ({ agent_id }: Outgoing) => views.find((view) => view.agent_id === agent_id)
    return { messages: rows.map((row) => message(row, viewOf(row))), all: shown.length === waiting.length }
  })
})

/** The state of a session, which an append brings along, unless a later one was read before. */
const makeStates = Effect.map(
  EventStore,
  (events) => (session_id: SessionId, after: number, tick: Tick) =>
    tick.type === "appended" && tick.appended.session_id === session_id && tick.appended.state.rev >= after
      ? Effect.succeed(tick.appended.state)
      : Effect.map(Effect.option(databaseDefect(events.state(session_id))), Option.getOrUndefined)
)

/** The news of a session after a revision. */
const makeNews = Effect.map(EventStore, (events) =>
  Effect.fnUntraced(function* (session_id: SessionId, after: number, { rev: head }: SessionState, tick: Tick) {
    if (head <= after) return NO_NEWS
    // A slow reader loses the oldest ticks, so the log decides.
    const pushed = tick.type === "appended" && tick.appended.session_id === session_id ? tick.appended.events : []
    if (pushed[0]?.rev === after + 1 && pushed.at(-1)?.rev === head) return pushed.reduce(withEvent, NO_NEWS)
    return yield* events.events(session_id, { from: after + 1, follow: false }).pipe(
      Stream.filter(isPrintedEvent),
      Stream.runFold(
        () => NO_NEWS,
        (news, { event }) => withEvent(news, event)
      ),
      Effect.orDie
    )
  })
)

/** The state of the lanes, if it changed since the client last heard of it. */
const makeActivity = Effect.map(EventStore, (events) => () => {
  let told = ""
  return Effect.fnUntraced(function* (session_id: SessionId, state: SessionState) {
    const cores = [...state.cores.keys()]
    const reported = [...state.cores.values()].map(({ report_rev }) => report_rev)
    const waits = waitsForPerson(state.edge)
    const reporting = nextReport(state) !== undefined
    const tool = state.edge.calls.find(({ stage }) => stage === "committed")?.name
    const next = [state.edge.state, waits, reporting, tool, ...cores, ...reported].join(" ")
    if (next === told) return []
    told = next
    const words = [...(yield* events.jobWords(session_id, state)).jobs]
    const shown = words.flatMap(([job_name, { report }]) => (report === undefined ? [] : [{ job_name, report }]))
    return [
      {
        type: "activity",
        edge: state.edge.state,
        ...(waits ? { waits } : {}),
        ...(reporting ? { reporting } : {}),
        ...(tool === undefined ? {} : { tool }),
        cores,
        ...(shown.length === 0 ? {} : { reports: shown })
      }
    ] satisfies ReadonlyArray<ChatEvent>
  })
})

/** The status of the agent, if it changed since the client last heard of it. */
const makeStanding = () => {
  let told = ""
  return (view: AgentView): ReadonlyArray<ChatEvent> => {
    const next = `${view.status} ${view.reason ?? ""}`
    if (next === told) return []
    told = next
    return [{ type: "agent", status: view.status, reason: view.reason }]
  }
}

const makeTicks = Effect.gen(function* () {
  const drafts = yield* Drafts
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  const outbox = yield* Outbox
  return (agent_id: AgentId, dm: ResourceName) => {
    const ticks: ReadonlyArray<Stream.Stream<Tick>> = [
      Stream.map(outbox.wakes(dm), (): Tick => ({ type: "outbox" })),
      events.appended.pipe(
        Stream.filter((appended) => appended.agent_id === agent_id),
        Stream.map((appended): Tick => ({ type: "appended", appended }))
      ),
      lifecycle.changes.pipe(
        Stream.filter((view) => view.agent_id === agent_id),
        Stream.map((view): Tick => ({ type: "agent", view }))
      ),
      drafts.changes.pipe(
        Stream.filter((draft) => draft.agent_id === agent_id && draft.dm === dm),
        Stream.map((draft): Tick => ({ type: "draft", draft }))
      )
    ]
    return Stream.mergeAll(ticks, { concurrency: "unbounded" })
  }
})

/** One client's view. Ticks are handled one by one, so that the client's cells have one owner. */
const makeFollow = Effect.gen(function* () {
  const lifecycle = yield* Lifecycle
  const activityFor = yield* makeActivity
  const newsOf = yield* makeNews
  const stateOf = yield* makeStates
  const ticksOf = yield* makeTicks
  const unreadOf = yield* makeUnread

  return (agent_id: AgentId, dm: ResourceName) => {
    const activity = activityFor()
    const standing = makeStanding()
    const unread = unreadOf(dm)
    let session_id: SessionId | null = null
    // The newest revision of the session that was read.
    let rev = 0
    let watched: ReadonlySet<InboxId> = new Set()
    let carried: InboxId | undefined

    const look = Effect.fnUntraced(function* (tick: Tick) {
      if (tick.type === "draft") {
        const { inbox_id, report_rev } = tick.draft
        const text = chatText({ ...tick.draft, source: "event" })
        const reporting = report_rev === undefined ? {} : { reporting: true }
        return [{ type: "draft", in_reply_to: inbox_id, text, ...reporting }] satisfies ReadonlyArray<ChatEvent>
      }
      const view = tick.type === "agent" ? tick.view : yield* lifecycle.view(agent_id)
      const current = view.session_id
      const arrived = session_id !== current
      const state = current === null ? undefined : yield* stateOf(current, arrived ? 0 : rev, tick)
      session_id = current
      if (arrived) rev = state?.rev ?? 0
      const news =
        state === undefined || current === null || arrived ? NO_NEWS : yield* newsOf(current, rev, state, tick)
      if (state !== undefined) {
        rev = Math.max(rev, state.rev)
        const ids = [...watched, ...(arrived ? watchedAtFirst(state) : []), ...news.taken]
        watched = new Set(ids.slice(-CHAT_WATCHED_MAX))
        carried = carriedTo(state, carried)
      }
      const settled = state === undefined ? [] : settledIn(state, watched, carried)
      // An event's rows are stored with it, so what is read now comes before what it settles.
      const wanted = tick.type === "outbox" || settled.length > 0 || arrived || news.speaks
      const { all, messages } = wanted ? yield* unread : { all: true, messages: [] }
      const out: Array<ChatEvent> = [...messages, ...standing(view)]
      if (state !== undefined && current !== null) out.push(...(yield* activity(current, state)))
      if (all && settled.length > 0) {
        out.push(...settled.map((inbox_id): ChatEvent => ({ type: "settled", inbox_id })))
        watched = new Set([...watched].filter((id) => !settled.includes(id)))
      }
      return out
    })

    return ticksOf(agent_id, dm).pipe(
      Stream.mapEffect(look),
      Stream.flattenIterable,
      // The agent existed when the stream was requested, and choird never forgets one while it runs.
      Stream.orDie
    )
  }
})

export class ChatStream extends Context.Service<
  ChatStream,
  {
    /** Undelivered messages of the DM first, then all that comes. Never ends by itself. */
    follow(agent_id: AgentId, dm: ResourceName): Stream.Stream<ChatEvent>
  }
>()("choir/choird/ChatStream") {
  static readonly layer = Layer.effect(
    ChatStream,
    Effect.map(makeFollow, (follow) =>
      ChatStream.of({ follow: (agent_id, dm) => Stream.suspend(() => follow(agent_id, dm)) })
    )
  )
}

/** The messages with work left: the open turn, running jobs, and reports to make. */
const openMessages = ({ cores, edge, reports }: SessionState): ReadonlySet<InboxId> => {
  const turns = [edge.turn, edge.parked?.turn].map((turn) =>
    turn?.kind === "report" ? turn.report.inbox_id : turn?.inbox_id
  )
  const ids = [...turns, ...[...cores.values(), ...reports].map(({ inbox_id }) => inbox_id)]
  return new Set(ids.filter((id) => id !== undefined))
}

/** The messages to watch in a session that is found in this state: the open ones and the newest. */
export const watchedAtFirst = (state: SessionState): ReadonlySet<InboxId> =>
  state.last_inbox_id === 0n
    ? openMessages(state)
    : new Set([...openMessages(state), state.last_inbox_id.toString() as InboxId])

/**
 * The watched messages, all committed before, that will get no further answer. `carried` is one that a session left to the next, which has not
 * taken it yet.
 */
export const settledIn = (
  state: SessionState,
  watched: ReadonlySet<InboxId>,
  carried?: InboxId
): ReadonlyArray<InboxId> => {
  // A turn that waits for a person keeps nobody else's message open.
  const isBusy = state.edge.state !== "EDGE_IDLE" && state.edge.state !== "EDGE_TERMINATED"
  if (isBusy && !waitsForPerson(state.edge)) return []
  const open = openMessages(state)
  return [...watched].filter((id) => !open.has(id) && id !== carried)
}

/** The message that the agent's session leaves to its next one, until that has taken it. */
export const carriedTo = (state: SessionState, before: InboxId | undefined): InboxId | undefined =>
  state.carried ?? (before !== undefined && BigInt(before) > state.last_inbox_id ? before : undefined)
