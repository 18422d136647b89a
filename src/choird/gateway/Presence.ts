/** The messages that still wait for their answer, and the reports on jobs that come, so that a channel can show the person that the agent is at work. */
import { Context, Effect, Layer, Option, PubSub, Stream } from "effect"
import type { Draft } from "#schema/AgentApi.ts"
import type { AgentId, InboxId, JobName, ResourceName, SessionId } from "#schema/Ids.ts"
import { restarted } from "#src/shared/background.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Drafts } from "#src/choird/queues/Drafts.ts"
import { answeredBy } from "#src/choird/sessions/projections.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { makeRunningCalls, type Runs } from "./runningCalls.ts"
import { makeNotifier } from "#src/choird/queues/Notifier.ts"
import { waitsForPerson } from "#src/shared/session/parkTurn.ts"
import type { PendingReport } from "#src/shared/session/State.ts"
import { nextReport } from "#src/shared/session/turns.ts"

/** How long a person is shown that the agent works on one message; one that takes longer is a job's, which reports. */
const PRESENCE_MS_MAX = 600_000
/** Messages that are remembered, open and answered each; the oldest go first. */
const PRESENCE_MESSAGES_MAX = 1000
/** Messages that wait for a slow reader; it loses the oldest. */
const SEEN_BUFFERED_MAX = 256

/** A message that its agent's queue took. */
interface Seen {
  readonly dm: ResourceName
  readonly inbox_id: InboxId
}

/** Something that a person waits for: the answer to a message, or a report on a job of an earlier one. */
interface Open {
  readonly dm: ResourceName
  readonly agent_id: AgentId
  readonly since_ms: number
}

/** A job that asks the person something. */
interface AskingJob {
  readonly session_id: SessionId
  readonly job_name: JobName
}

/** The running session of an agent. A sign of life is not worth a wait for the database: where that is away, there is none. */
const makeSessionOf = Effect.gen(function* () {
  const events = yield* EventStore
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* (agent_id: AgentId) {
    const view = yield* Effect.option(lifecycle.view(agent_id))
    if (Option.isNone(view) || view.value.status !== "running" || view.value.session_id === null) return undefined
    const { session_id } = view.value
    const state = Option.getOrUndefined(yield* Effect.option(events.state(session_id)))
    return state === undefined ? undefined : { session_id, state }
  })
})

export class Presence extends Context.Service<
  Presence,
  {
    /** Notes that a person waits for the answer to a message, once for each piece of it. */
    asked(dm: ResourceName, agent_id: AgentId, inbox_id: InboxId): Effect.Effect<void>
    /** Whether the agent works on a message of this DM now: it runs, and waits for nobody's decision. */
    isAtWork(dm: ResourceName): Effect.Effect<boolean>
    /** The tool that runs in the turn of an open message of this DM. */
    runs(dm: ResourceName): Effect.Effect<Runs | undefined>
    isAnswered(inbox_id: InboxId): boolean
    /** Whether the answer or the report that a draft becomes is still to come. */
    isDue(draft: Draft & { readonly agent_id: AgentId }): Effect.Effect<boolean>
    /** The job whose question a draft is about. */
    questionOf(draft: Draft & { readonly agent_id: AgentId }): Effect.Effect<AskingJob | undefined>
    /** Emits at once, and whenever a message of the DM came or a report to it is about to be made. */
    wakes(dm: ResourceName): Stream.Stream<void>
    /** The messages of a DM that are taken from now on; one of several pieces with each of them. */
    seen(dm: ResourceName): Stream.Stream<InboxId>
  }
>()("choir/choird/Presence") {
  static readonly layer = Layer.effect(
    Presence,
    Effect.gen(function* () {
      const events = yield* EventStore
      const drafts = yield* Drafts
      const { wake, wakes } = yield* makeNotifier
      const open = new BoundedMap<InboxId, Open>(PRESENCE_MESSAGES_MAX)
      const answered = new BoundedMap<InboxId, true>(PRESENCE_MESSAGES_MAX)
      /** The reports that agents make now. Each is followed for as long as its agent owes it. */
      const reporting = new Map<AgentId, Open & { readonly rev: number }>()
      const calls = makeRunningCalls()
      const seen = yield* PubSub.sliding<Seen>(SEEN_BUFFERED_MAX)

      const close = (agent_id: AgentId, inbox_id: InboxId) => {
        const known = open.get(inbox_id)
        if (known !== undefined && known.agent_id !== agent_id) return
        open.delete(inbox_id)
        answered.setInPlace(inbox_id, true)
      }

      /** Without the database nobody is known to wait for the report. */
      const follow = Effect.fnUntraced(function* (agent_id: AgentId, report: PendingReport | undefined) {
        const known = reporting.get(agent_id)
        if (known !== undefined && known.rev === report?.rev) return
        reporting.delete(agent_id)
        if (report?.inbox_id === undefined) return
        const dm = yield* Effect.orElseSucceed(drafts.dmOf(agent_id, report.inbox_id), () => undefined)
        if (dm === undefined) return
        reporting.set(agent_id, { dm, agent_id, since_ms: yield* monotonicMs, rev: report.rev })
        yield* wake(dm)
      })

      yield* events.appended.pipe(
        Stream.runForEach(({ agent_id, events: news, state }) =>
          Effect.suspend(() => {
            for (const inbox_id of answeredBy(news)) close(agent_id, inbox_id)
            return Effect.andThen(calls.note(agent_id, state), follow(agent_id, nextReport(state)))
          })
        ),
        restarted("the watch of what is answered"),
        Effect.forkScoped
      )

      const sessionOf = yield* makeSessionOf
      const stateOf = (agent_id: AgentId) => Effect.map(sessionOf(agent_id), (session) => session?.state)
      const newestAt = (dm: ResourceName) => [...open.values()].findLast((message) => message.dm === dm)
      const works = Effect.fnUntraced(function* ({ agent_id, since_ms }: Open) {
        if ((yield* monotonicMs) - since_ms > PRESENCE_MS_MAX) return false
        const state = yield* stateOf(agent_id)
        return state !== undefined && !waitsForPerson(state.edge)
      })

      return Presence.of({
        asked: Effect.fnUntraced(function* (dm, agent_id, inbox_id) {
          if (answered.has(inbox_id)) return
          open.setInPlace(inbox_id, { dm, agent_id, since_ms: yield* monotonicMs })
          yield* wake(dm)
          yield* PubSub.publish(seen, { dm, inbox_id })
        }),
        isAtWork: Effect.fnUntraced(function* (dm) {
          const newest = newestAt(dm)
          if (newest !== undefined && (yield* works(newest))) return true
          for (const report of reporting.values()) if (report.dm === dm && (yield* works(report))) return true
          return false
        }),
        runs: Effect.fnUntraced(function* (dm) {
          const newest = newestAt(dm)
          if (newest === undefined || !(yield* works(newest))) return undefined
          const turn = (yield* stateOf(newest.agent_id))?.edge.turn
          const isTheirs = turn?.kind === "turn" && open.get(turn.inbox_id)?.dm === dm
          return isTheirs ? yield* calls.of(newest.agent_id, turn.inbox_id) : undefined
        }),
        isAnswered: (inbox_id) => answered.has(inbox_id),
        isDue: Effect.fnUntraced(function* ({ agent_id, inbox_id, report_rev }) {
          if (report_rev === undefined) return !answered.has(inbox_id)
          const state = yield* stateOf(agent_id)
          // The event that the report is about may come after its first words.
          return state !== undefined && (state.rev < report_rev || state.reports.some(({ rev }) => rev === report_rev))
        }),
        questionOf: Effect.fnUntraced(function* ({ agent_id, report_rev }) {
          if (report_rev === undefined) return undefined
          const session = yield* sessionOf(agent_id)
          const report = session?.state.reports.find(({ kind, rev }) => kind === "question" && rev === report_rev)
          return session === undefined || report === undefined
            ? undefined
            : { session_id: session.session_id, job_name: report.job_name }
        }),
        wakes,
        seen: (dm) =>
          Stream.fromPubSub(seen).pipe(
            Stream.filter((one) => one.dm === dm),
            Stream.map(({ inbox_id }) => inbox_id)
          )
      })
    })
  )
}
