/** One epoch of a session: what choird orders, the lanes until there is a reason to end, and the goodbye. */
import { Cause, Deferred, Effect, Fiber, Stream } from "effect"
import { EDGE, type JobName } from "#schema/Ids.ts"
import type { CoreOutcome } from "#schema/Event.ts"
import type { Signal, SignalOf, UserMessage } from "#schema/Signal.ts"
import { logDeath } from "#src/shared/background.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { mayPark, waitsForPerson } from "#src/shared/session/parkTurn.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { shownLabel } from "#src/shared/session/labels.ts"
import { isRunning, laneOf } from "#src/shared/session/lanes.ts"
import { isUnheard } from "#src/shared/session/fold.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitEnd, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { edgeWrites } from "#src/agent/arbiter/decideCores.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { isCorrecting } from "#src/agent/arbiter/finalWords.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { Confirmations } from "#src/agent/calls/Confirmations.ts"
import { ControlPlane } from "#src/agent/control/ControlPlane.ts"
import { sweepWorktrees } from "./jobWorktree.ts"
import { type Ending, makeLaneFibers } from "./laneFibers.ts"
import { goodbyeOf, type ShutdownNotice, safePointMs, sayGoodbye, summarize } from "./shutdownNotice.ts"
import { Mailbox } from "./Mailbox.ts"
import { Replication, Severed } from "#src/agent/control/Replication.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { describeContext } from "#src/agent/model/describeContext.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { TurnStops } from "./TurnStops.ts"

/** Its attachments with their pictures, of which copies are kept before edge takes it. */
const withPictures = Effect.fnUntraced(function* (message: UserMessage) {
  const pictures = yield* Pictures
  const attachments = yield* Effect.forEach(message.attachments, ({ bytes, mime, name, path, transcribed }) =>
    Effect.map(pictures.keepFile(path), (picture) => ({
      bytes,
      mime,
      name,
      path,
      ...(transcribed === undefined ? {} : { transcribed }),
      ...(picture === undefined ? {} : { picture })
    }))
  )
  return { ...message, attachments }
})

/** Queues a message; a sender who has to wait gets one notice. */
const take = Effect.fnUntraced(function* (sent: UserMessage) {
  const arbiter = yield* Arbiter
  const mailbox = yield* Mailbox
  const { config } = (yield* AgentSettings).current()
  const writer =
    config.writers !== undefined && Object.hasOwn(config.writers, sent.dm) ? config.writers[sent.dm] : undefined
  const named = writer === undefined ? sent : { ...sent, writer }
  const message = named.attachments.length === 0 ? named : yield* withPictures(named)
  const { edge, reports } = arbiter.state()
  const isBusy = (edge.turn !== undefined && !mayPark(edge)) || reports.length > 0
  const place = yield* mailbox.put(message)
  const position = isBusy ? place : place - 1
  if (place > 0 && position > 0) yield* commitIfDue(arbiter, { type: "Queued", inbox_id: message.inbox_id, position })
})

/** The signal comes again at each reconnect, and the heartbeats tell of the same change. */
const refreshed = Effect.fnUntraced(function* (config_version: number) {
  const settings = yield* AgentSettings
  const replication = yield* Replication
  if (config_version !== settings.current().config_version) yield* replication.refresh
})

/** Puts an instruction into edge's context, or a job's; one that no event can hold is refused in an event. */
const inject = Effect.fnUntraced(function* (
  signal_id: string,
  source: "user" | "control_plane",
  content: string,
  job_name?: JobName
) {
  const arbiter = yield* Arbiter
  const order = { type: "SignalInject", signal_id, source, job_name } as const
  yield* commitEnd(arbiter, { ...order, content }, isUnheard(signal_id), (refused) => ({
    ...order,
    content: "",
    refused
  }))
})

/** Answers the question for a lane's prompt. A lost answer is asked for again. */
const describe = Effect.fnUntraced(function* ({ lane, request_id }: SignalOf<"DescribeContext">) {
  const calls = yield* ModelCalls
  const plane = yield* ControlPlane
  const arbiter = yield* Arbiter
  const prompt = calls.newestPrompt(lane)
  const label = shownLabel(laneOf(arbiter.state(), lane))
  const described = prompt === undefined ? undefined : yield* describeContext(lane, prompt)
  const context = described && (label === undefined ? described : { ...described, label })
  yield* Effect.ignore(plane.report({ described: { request_id, ...(context === undefined ? {} : { context }) } }))
})

/** Starts the job that a person or a schedule ordered once nothing that edge writes runs. It waits apart, so that a stop behind it is heard. */
const startSkill = Effect.fnUntraced(function* (signal: SignalOf<"StartSkill">) {
  const { input, job_name, signal_id, skill, trigger } = signal
  const arbiter = yield* Arbiter
  const settings = yield* AgentSettings
  yield* arbiter.until((state) => edgeWrites(state).length === 0)
  const model = settings.current().config.core_llm
  const command = { type: "SignalSkill", signal_id, job_name, skill, input, trigger, model } as const
  yield* commitEnd(arbiter, command, isUnheard(signal_id))
})

/** Gives edge the summary of the session that this one continues, before it takes a message. */
const continueFrom = Effect.fnUntraced(function* (signal: SignalOf<"Continue">) {
  const arbiter = yield* Arbiter
  yield* commitEnd(arbiter, signal, isUnheard(signal.signal_id))
})

/** Orders about the whole session. */
interface Orders {
  /** The order for a new conversation that is not carried out yet. */
  renewal: string | undefined
}

/** Whether nothing is at work for a person: no turn but one that waits for a decision, and no report that is owed. */
const isAtRest = ({ edge, ended, reports }: SessionState): boolean =>
  ended !== undefined ||
  waitsForPerson(edge) ||
  (edge.turn === undefined && edge.state === "EDGE_IDLE" && reports.length === 0)

/**
 * Ends the session for a new conversation once the open turn has its answer; messages that come meanwhile are for the new one. Jobs that
 * began since the order was given were not meant by it.
 */
const renew = Effect.fnUntraced(function* (
  ending: Deferred.Deferred<Ending>,
  orders: Orders,
  { end_jobs, signal_id }: SignalOf<"NewSession">
) {
  const arbiter = yield* Arbiter
  const mailbox = yield* Mailbox
  yield* Effect.sync(() => {
    orders.renewal = signal_id
    mailbox.hold(true)
  })
  const { cores } = yield* arbiter.until(isAtRest)
  if (cores.size === 0 || end_jobs === true) {
    yield* Deferred.succeed(ending, { type: "renewed" })
    return
  }
  yield* commitEnd(arbiter, { type: "NewSession", signal_id }, isUnheard(signal_id))
  yield* Effect.sync(() => {
    orders.renewal = undefined
    mailbox.hold(false)
  })
})

/** Passes signals on. Each ends in an event; one that came before is refused by the fold and dropped. */
const obey = Effect.fnUntraced(function* (ending: Deferred.Deferred<Ending>, orders: Orders, signal: Signal) {
  const arbiter = yield* Arbiter
  const compactor = yield* Compactor
  const confirmations = yield* Confirmations
  const turnStops = yield* TurnStops
  switch (signal.type) {
    case "UserMessage":
      return yield* take(signal)
    case "Inject":
      return yield* inject(signal.signal_id, "user", signal.content, signal.job_name)
    case "StartSkill":
      return yield* Effect.forkChild(logDeath("the start of an ordered skill")(startSkill(signal)))
    case "CancelCore": {
      const { job_name, signal_id } = signal
      return yield* commitEnd(arbiter, { type: "SignalCancel", signal_id, job_name }, isUnheard(signal_id))
    }
    case "StopTurn":
      return yield* turnStops.order(signal)
    case "Compact":
      return yield* compactor.request(signal.lane ?? EDGE, signal.signal_id)
    case "Trust":
      return yield* commitEnd(arbiter, signal, isUnheard(signal.signal_id))
    case "Continue":
      return yield* continueFrom(signal)
    case "NewSession":
      return yield* Effect.forkChild(logDeath("the order for a new conversation")(renew(ending, orders, signal)))
    case "Stop":
      return yield* Effect.flatMap(monotonicMs, (now) =>
        Deferred.succeed(ending, { type: "stopped", deadline_at_ms: now + signal.deadline_ms })
      )
    case "DescribeContext":
      return yield* Effect.forkChild(logDeath("the answer about a prompt")(describe(signal)))
    case "ConfigChanged":
      return yield* refreshed(signal.config_version)
    case "ApprovalResolved":
      return yield* signal.note === undefined || signal.signal_id === undefined
        ? confirmations.resolved(signal.approval_id)
        : inject(signal.signal_id, "control_plane", signal.note)
  }
})

/** Ends every job after its fiber is gone: no core outlives edge. */
const endJobs = Effect.fnUntraced(function* (outcome: CoreOutcome, summary: string) {
  const arbiter = yield* Arbiter
  const runner = yield* ToolRunner
  for (const core of arbiter.state().cores.values()) {
    const { job_name, lane } = core
    yield* runner.closeOpen(lane, summary)
    yield* commitEnd(arbiter, { type: "StopCore", job_name, outcome, summary }, isRunning(core))
  }
})

/** Lets edge and the jobs run until there is a reason to end, and then ends them in order: tools, jobs, edge. */
const lanes = Effect.fnUntraced(function* (ending: Deferred.Deferred<Ending>, orders: Orders) {
  const arbiter = yield* Arbiter
  const runner = yield* ToolRunner
  const confirmations = yield* Confirmations
  const settings = yield* AgentSettings
  const stopping = yield* Deferred.make<void>()
  yield* sweepWorktrees
  const { edge, endWork, ended } = yield* makeLaneFibers(ending, stopping)
  const how = yield* ended
  yield* endWork
  if (how.type === "stopped") {
    // First, so that edge does not begin to report on what ends here; it does so when the session is resumed.
    yield* Deferred.succeed(stopping, undefined)
    yield* confirmations.stop
    yield* endJobs("cancelled", "the agent was stopped")
    const { deadline_at_ms } = how
    const left = deadline_at_ms - (yield* monotonicMs)
    const { summary_timeout_ms } = settings.current().config.memory
    yield* Effect.timeoutOption(Fiber.await(edge), safePointMs(left, summary_timeout_ms))
    yield* Fiber.interrupt(edge)
    // Edge may have started one more before it saw that it stops.
    yield* endJobs("cancelled", "the agent was stopped")
    yield* sweepWorktrees
    yield* runner.closeOpen(EDGE, "the agent was stopped")
    return { reason: "stopped", deadline_at_ms } satisfies ShutdownNotice
  }
  // An answer that the model gave already goes out as it is. One that is to be corrected is not waited for: the model that is asked again may
  // be silent for minutes. Edge stands still first, so that it starts no job behind those that end.
  const { find } = yield* EventLog
  const answered = arbiter.until((state) => state.edge.state !== "EDGE_FINALIZING" || isCorrecting(state, find))
  yield* Effect.raceFirst(answered, Fiber.await(edge))
  yield* Fiber.interrupt(edge)
  const [outcome, reason] =
    how.type === "renewed" ? (["cancelled", RENEWED] as const) : (["budget", how.limit] as const)
  yield* endJobs(outcome, reason)
  yield* sweepWorktrees
  yield* runner.closeOpen(EDGE, reason)
  const by = how.type === "renewed" ? "user" : "budget"
  // Before the end is committed, so that the log has it even if the goodbye is never said.
  yield* summarize({ reason: by })
  const end = { type: "End", by, reason, signal_id: orders.renewal } as const
  yield* commitEnd(arbiter, end, ({ ended }) => ended === undefined)
  return { reason: by } satisfies ShutdownNotice
})

/** Why jobs and calls end with the session. */
const RENEWED = "a new conversation was started"

/** Runs the session until it is stopped, exhausted or severed, and says goodbye once choird has everything. */
export const runSession = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const plane = yield* ControlPlane
  const replication = yield* Replication
  const runner = yield* ToolRunner
  const ending = yield* Deferred.make<Ending>()
  const parted = yield* Deferred.make<void>()
  const orders: Orders = { renewal: undefined }

  yield* runner.closeInDoubt
  const listening = plane.signals.pipe(
    // What comes once the lanes have ended waits for the next epoch, or the goodbye would never have everything.
    Stream.interruptWhen(Deferred.await(parted)),
    Stream.runForEach(({ signal }) => obey(ending, orders, signal)),
    Effect.mapError(({ reason }) => new Severed({ reason })),
    Effect.andThen(Effect.never)
  )
  const living = Effect.gen(function* () {
    yield* runner.settleInDoubt
    const { ended } = arbiter.state()
    // A session that ended before a crash kept it from saying goodbye only does that.
    const notice: ShutdownNotice = ended === undefined ? yield* Effect.scoped(lanes(ending, orders)) : { reason: ended }
    yield* Deferred.succeed(parted, undefined)
    yield* sayGoodbye(goodbyeOf(notice.reason), yield* summarize(notice))
    return notice.reason
  })
  return yield* Effect.raceAllFirst([living, listening, replication.run]).pipe(
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("the session ended", cause)
    )
  )
})
