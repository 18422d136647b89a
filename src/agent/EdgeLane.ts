/**
 * Edge: the lane that talks (spec 7.1, 7.2). What it does next follows from the state alone, so a lane that comes back after a
 * crash goes on like one that never stopped.
 */
import { Deferred, Effect } from "effect"
import type { ChoirEvent, ModelError } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import { REPETITIONS_STUCK_MIN } from "#src/shared/limits.ts"
import { mayPark } from "#src/shared/session/parked.ts"
import type { PendingReport, SessionState } from "#src/shared/session/State.ts"
import { AgentSettings } from "./AgentSettings.ts"
import { Arbiter } from "./Arbiter.ts"
import { skillRules } from "./decideSkills.ts"
import { TURN_STOPPED } from "./decideStop.ts"
import { EventLog } from "./EventLog.ts"
import { askedAgain, edgeWords } from "./finalWords.ts"
import { ImageTexts } from "./ImageTexts.ts"
import type { ChatMessage } from "./chatCompletion.ts"
import { Mailbox } from "./Mailbox.ts"
import { ModelCalls } from "./ModelCalls.ts"
import { reported } from "./projection.ts"
import { edgePrompt } from "./Prompt.ts"
import { SkillRegistry } from "./SkillRegistry.ts"
import { ToolRegistry } from "./ToolRegistry.ts"
import { ToolRunner } from "./ToolRunner.ts"
import { TurnStops } from "./TurnStops.ts"

/** What edge does next. */
export type EdgeStep =
  | { readonly type: "wait" }
  | { readonly type: "ask"; readonly purpose: "turn" | "report" }
  | { readonly type: "run" }
  /** Answers with the model's words of this revision. */
  | { readonly type: "answer"; readonly rev: number }
  /** Answers with the runtime's own words. */
  | { readonly type: "say"; readonly text: string }

const stepsSpent = (turn_max_steps: number): string =>
  `after ${turn_max_steps} steps (budgets.turn_max_steps) without an answer`

const edgeStep = ({ edge, reports }: SessionState, turn_max_steps: number): EdgeStep => {
  const purpose = edge.turn?.kind ?? "report"
  switch (edge.state) {
    case "EDGE_TERMINATED":
      return { type: "wait" }
    case "EDGE_IDLE":
      return reports.length > 0 ? { type: "ask", purpose: "report" } : { type: "wait" }
    case "EDGE_WAITING_TOOL":
      return { type: "run" }
    case "EDGE_FINALIZING":
      return { type: "answer", rev: edge.output_rev }
    case "EDGE_CONTEXT_READY":
    case "EDGE_REASONING":
      if (edge.repetition.times >= REPETITIONS_STUCK_MIN && edge.output_rev > 0)
        return { type: "say", text: "I kept repeating the same step without getting further, so I stopped here." }
      if (edge.step >= turn_max_steps)
        return {
          type: "say",
          text: `I stopped ${stepsSpent(turn_max_steps)}.`
        }
      return { type: "ask", purpose }
  }
}

/** Whether the same question may be answered later although nobody changes anything. */
const isPassing = ({ kind, status = 0 }: ModelError): boolean =>
  kind === "rate_limited" || kind === "timeout" || kind === "unreachable" || (kind === "http" && status >= 500)

/** The runtime's report where the model gives none. */
const plainReport = ({ job_name }: PendingReport, event: ChoirEvent | undefined): string => {
  if (event?.event_type === "CoreStopped")
    return `The job ${job_name} ended (${event.payload.outcome}): ${event.payload.summary}`
  return `The job ${job_name} asks: ${reported(event)?.text ?? "it did not say what"}`
}

/** What edge says to the user in the runtime's name: answers, reports where the model gives none, and failures. */
const makeReplies = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const isReporting = () => arbiter.state().edge.turn?.kind === "report"

  const reportText = (): string | undefined => {
    const state = arbiter.state()
    const report = state.edge.turn?.kind === "report" ? state.edge.turn.report : state.reports[0]
    return report === undefined ? undefined : plainReport(report, log.find(report.rev))
  }
  const say = (text: string, failed?: "again" | "final") =>
    Effect.ignore(arbiter.commit({ type: "Answer", text, ...(failed === undefined ? {} : { failed }) }))
  /** The end of a turn without the model's words; a report still tells what it is about. */
  const fail = (text: string, kind: "again" | "final") => say(isReporting() ? (reportText() ?? text) : text, kind)
  const sayFailure = (problem: string, kind: "again" | "final" = "final") =>
    fail(`I could not answer: ${problem}. Nothing is lost; send a message to try again.`, kind)
  return { fail, reportText, say, sayFailure }
})

/** The messages that edge takes: between two turns, and while the open turn waits for a person. */
const makeIntake = Effect.fnUntraced(function* (stopping: Deferred.Deferred<void>) {
  const arbiter = yield* Arbiter
  const mailbox = yield* Mailbox
  const settings = yield* AgentSettings

  const takeIf = (fits: () => boolean) =>
    Effect.suspend(() => {
      const message = fits() && !Deferred.isDoneUnsafe(stopping) ? mailbox.take() : undefined
      return message === undefined ? Effect.void : Effect.ignore(arbiter.commit({ type: "UserMessage", message }))
    }).pipe(Effect.uninterruptible)
  // A report goes first, and a message that is taken is committed in the same turn. One that was taken before is refused.
  const take = takeIf(() => edgeStep(arbiter.state(), settings.current().config.budgets.turn_max_steps).type === "wait")
  // The turn is set aside by the very commit that takes the message, so that a call which is approved at that moment either runs or waits.
  const takeBetween = takeIf(() => mayPark(arbiter.state().edge))

  const interposed: Effect.Effect<void> = Effect.gen(function* () {
    for (;;) {
      yield* arbiter.until(({ edge }) => mayPark(edge))
      yield* Effect.raceFirst(
        mailbox.arrived,
        arbiter.until(({ edge }) => !mayPark(edge))
      )
      const before = arbiter.state().edge.turn?.rev
      yield* takeBetween
      if (arbiter.state().edge.turn?.rev !== before) return
    }
  })
  const next = Effect.raceAllFirst([
    mailbox.arrived,
    arbiter.until((state) => state.edge.state === "EDGE_IDLE" && state.reports.length > 0),
    Deferred.await(stopping)
  ]).pipe(Effect.andThen(take))
  return { interposed, next }
})

/** Edge's questions to its model. */
const makeQuestions = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const calls = yield* ModelCalls
  const log = yield* EventLog
  const registry = yield* ToolRegistry
  const settings = yield* AgentSettings
  const skills = yield* SkillRegistry
  const texts = yield* ImageTexts
  const sources = { find: log.find, identity: texts, isMasked: registry.masked, skills }

  return Effect.fnUntraced(function* (purpose: "turn" | "report", last: ReadonlyArray<ChatMessage> = []) {
    const { llm } = settings.current().config
    if (arbiter.state().edge.skill !== undefined)
      yield* Effect.ignore(arbiter.commit({ type: "FailSkill", lane: EDGE }))
    yield* calls.ask(
      EDGE,
      purpose,
      llm,
      registry.offered(EDGE, { skill: skillRules(arbiter.state().edge, skills) }),
      (room) => edgePrompt(arbiter.state(), sources, room, last) ?? []
    )
  })
})

/** Runs edge until `stopping`, which it obeys between two steps, or until a limit of the session is reached. */
export const runEdge = Effect.fn("EdgeLane.run")(function* (stopping: Deferred.Deferred<void>) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const runner = yield* ToolRunner
  const settings = yield* AgentSettings
  const stops = yield* TurnStops
  const ask = yield* makeQuestions
  const { fail, reportText, say, sayFailure } = yield* makeReplies
  const intake = yield* makeIntake(stopping)

  const answer = (rev: number) => {
    const output = log.get(rev)
    if (output.event_type !== "ModelOutput") return sayFailure("the model said nothing")
    const { error, text } = output.payload
    if (error !== undefined) return sayFailure(error.message, isPassing(error) ? "again" : "final")
    const words = edgeWords(log.find, arbiter.state().edge, output)
    switch (words.type) {
      case "whole":
        return say(words.text)
      case "broken":
        return words.text.trim() === ""
          ? sayFailure(words.problem)
          : say(`${words.text}\n\n(This is not all: ${words.problem}.)`)
      case "correct": {
        const { edge } = arbiter.state()
        const { turn_max_steps } = settings.current().config.budgets
        return edge.step >= turn_max_steps
          ? sayFailure(`I stopped ${stepsSpent(turn_max_steps)}`)
          : ask(edge.turn?.kind ?? "turn", askedAgain(text, words.correction))
      }
    }
  }
  const step = Effect.suspend(() => {
    const next = edgeStep(arbiter.state(), settings.current().config.budgets.turn_max_steps)
    switch (next.type) {
      case "ask":
        return ask(next.purpose)
      case "run":
        return Effect.raceFirst(runner.runOpen(EDGE), intake.interposed)
      case "answer":
        return answer(next.rev)
      case "say":
        return fail(next.text, "final")
      case "wait":
        return intake.next
    }
  })
  // What runs of a turn that is stopped is gone before the turn counts as stopped, so that nothing of it starts afterwards.
  const stopped = Effect.andThen(stops.due, Effect.uninterruptible(runner.closeWaiting(EDGE, TURN_STOPPED)))
  while (!Deferred.isDoneUnsafe(stopping)) {
    yield* Effect.raceFirst(step, stopped)
    yield* stops.settle(reportText)
  }
})
