/**
 * Edge: the lane that talks. What it does next follows from the state alone, so a lane that comes back after a
 * crash continues like one that never stopped.
 */
import { Deferred, Effect } from "effect"
import type { Budgets } from "#schema/Config.ts"
import type { ChoirEvent, ModelError } from "#schema/Event.ts"
import { EDGE } from "#schema/Ids.ts"
import type { UserMessage } from "#schema/Signal.ts"
import { isPassing } from "#src/shared/model/passing.ts"
import { messageOf, stepsFor } from "#src/shared/session/messageSteps.ts"
import { withoutStop } from "#src/shared/text/sentences.ts"
import { mayPark } from "#src/shared/session/parkTurn.ts"
import { mostRepeated } from "#src/shared/session/repetitions.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitEnd, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { TURN_STOPPED } from "#src/agent/arbiter/decideStop.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { cutCalls, edgeWords } from "#src/agent/arbiter/finalWords.ts"
import { plainReport } from "#src/agent/arbiter/plainReport.ts"
import { Compactor } from "#src/agent/memory/Compactor.ts"
import { Recollection } from "#src/agent/memory/Recollection.ts"
import { makeTurnPatience } from "./turnPatience.ts"
import { AnswerVoice, type Voiced } from "./AnswerVoice.ts"
import { makeLanePrompts } from "./LanePrompts.ts"
import { Mailbox } from "./Mailbox.ts"
import { makeScripts } from "./scripts.ts"
import { ModelCalls } from "#src/agent/model/ModelCalls.ts"
import { ToolRunner } from "#src/agent/calls/ToolRunner.ts"
import { TurnStops } from "./TurnStops.ts"
import { REPETITIONS_STUCK_MIN } from "./CoreJob.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** The part that the user gets of an answer that no event can hold; its characters may take six bytes each. */
const ANSWER_CHARS_MAX = 64_000

/** Edge's next step. */
export type EdgeStep =
  | { readonly type: "wait" }
  | { readonly type: "ask"; readonly purpose: "turn" | "report" }
  | { readonly type: "run" }
  /** Answers with the model's words of this revision. */
  | { readonly type: "answer"; readonly rev: number }
  /** Answers that it goes round in circles, the last time with the output of this revision. */
  | { readonly type: "stuck"; readonly rev: number }
  /** Answers with the runtime's own words. */
  | { readonly type: "say"; readonly text: string }

const spentText = (limit: string): string => `I stopped ${limit}.`

const stepsSpent = (turn_max_steps: number): string =>
  `after ${turn_max_steps} steps (budgets.turn_max_steps) without an answer`

const messageSpent = (message_max_steps: number): string =>
  `after ${message_max_steps} steps for one message (budgets.message_max_steps), its jobs and reports included`

/** Why a lane that repeats itself gets no further. */
const stuckText = (output: ChoirEvent | undefined): string => {
  const cut = output?.event_type === "ModelOutput" ? cutCalls(output.payload) : undefined
  return cut === undefined
    ? "I kept repeating the same step without getting further, so I stopped here."
    : `I stopped here: ${cut}.`
}

const edgeStep = (
  state: SessionState,
  { message_max_steps, turn_max_steps }: Pick<Budgets, "message_max_steps" | "turn_max_steps">
): EdgeStep => {
  const { edge, reports } = state
  const purpose = edge.turn?.kind ?? "report"
  const inbox_id = edge.turn === undefined ? reports[0]?.inbox_id : messageOf(edge.turn)
  const isSpent = stepsFor(state, inbox_id) >= message_max_steps
  switch (edge.state) {
    case "EDGE_TERMINATED":
      return { type: "wait" }
    case "EDGE_IDLE":
      if (reports.length === 0) return { type: "wait" }
      return isSpent ? { type: "say", text: spentText(messageSpent(message_max_steps)) } : { type: "ask", purpose }
    case "EDGE_WAITING_TOOL":
      return { type: "run" }
    case "EDGE_FINALIZING":
      return { type: "answer", rev: edge.output_rev }
    case "EDGE_CONTEXT_READY":
    case "EDGE_REASONING":
      if (mostRepeated(edge.repetitions) >= REPETITIONS_STUCK_MIN && edge.output_rev > 0)
        return { type: "stuck", rev: edge.output_rev }
      if (edge.step >= turn_max_steps) return { type: "say", text: spentText(stepsSpent(turn_max_steps)) }
      if (isSpent) return { type: "say", text: spentText(messageSpent(message_max_steps)) }
      return { type: "ask", purpose }
  }
}

/** A 429 without a limit of a rate behind it: the quota of the account is used up. */
const isSpentAccount = ({ kind, status }: ModelError): boolean => kind === "http" && status === 429

/** Edge's messages to the user in the runtime's name: answers, reports where the model gives none, and failures. */
const makeReplies = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const isReporting = () => arbiter.state().edge.turn?.kind === "report"

  const reportText = (): string | undefined => {
    const state = arbiter.state()
    const report = state.edge.turn?.kind === "report" ? state.edge.turn.report : state.reports[0]
    return report === undefined ? undefined : plainReport(report, log.find(report.rev))
  }
  const toldWith = (text: string): string => {
    const report = reportText()
    return report === undefined ? text : `${report}\n\n(${text})`
  }
  const say = (text: string, failed?: "again" | "final", voice?: Voiced) =>
    Effect.suspend(() => {
      const { edge, reports } = arbiter.state()
      const isOpen = (now: SessionState) =>
        now.edge.state !== "EDGE_TERMINATED" && now.edge.turn === edge.turn && now.reports === reports
      const answer = (words: string) => ({
        type: "Answer" as const,
        text: words,
        ...(failed === undefined ? {} : { failed }),
        ...(voice === undefined ? {} : { voice })
      })
      return commitEnd(arbiter, answer(text), isOpen, () =>
        answer(`${firstPart(text, ANSWER_CHARS_MAX)}\n\n(Cut here: the answer is too long.)`)
      )
    })
  /** The end of a turn at a limit; a report still tells what it is about. */
  const sayLimit = (text: string) => say(arbiter.state().edge.turn?.kind === "turn" ? text : toldWith(text), "final")
  const sayFailure = (problem: string, kind: "again" | "final" = "final", when = "to try again") => {
    const text = `I could not answer: ${withoutStop(problem)}. Nothing is lost; send a message ${when}.`
    return say(isReporting() ? (reportText() ?? text) : text, kind)
  }
  return { reportText, say, sayFailure, sayLimit }
})

/** The messages that edge takes: between two turns, and while the open turn waits for a person. */
const makeIntake = Effect.fnUntraced(function* (stopping: Deferred.Deferred<void>) {
  const arbiter = yield* Arbiter
  const mailbox = yield* Mailbox
  const settings = yield* AgentSettings

  // One that was taken before is refused. One that no event can hold is answered all the same, or it would bar those behind it.
  const receive = (message: UserMessage) => {
    const isUntaken = ({ last_inbox_id }: SessionState) => BigInt(message.inbox_id) > last_inbox_id
    return commitEnd(arbiter, { type: "UserMessage", message }, isUntaken, (reason) => ({
      type: "RefuseMessage",
      message,
      reason
    }))
  }
  const takeIf = (fits: () => boolean) =>
    Effect.suspend(() => {
      const message = fits() && !Deferred.isDoneUnsafe(stopping) ? mailbox.take() : undefined
      return message === undefined ? Effect.void : receive(message)
    }).pipe(Effect.uninterruptible)
  // A report goes first, and a message that is taken is committed in the same turn.
  const take = takeIf(() => edgeStep(arbiter.state(), settings.current().config.budgets).type === "wait")
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
  const compactor = yield* Compactor
  const prompts = yield* makeLanePrompts
  const recollection = yield* Recollection
  const advanceScript = yield* makeScripts

  return Effect.fnUntraced(function* (purpose: "turn" | "report", correction?: string, again = false) {
    yield* recollection.prepare
    if (arbiter.state().edge.skill !== undefined) yield* commitIfDue(arbiter, { type: "FailSkill", lane: EDGE })
    if (yield* advanceScript(EDGE, purpose)) return
    const { model, prompt, tools } = yield* prompts.edge
    const asked = () => {
      const { edge, reports } = arbiter.state()
      return edge.turn === undefined && reports.length === 0 ? undefined : prompt(correction)
    }
    yield* compactor.before(EDGE, { model, tools, messages: asked()?.messages ?? [] })
    yield* calls.ask(EDGE, purpose, model, tools, asked, compactor.shortening(EDGE), again)
  })
})

/** The sound of an answer, where its sender wants to hear it. */
const voiceFor = Effect.fnUntraced(function* (text: string) {
  const log = yield* EventLog
  const voice = yield* AnswerVoice
  const { turn } = (yield* Arbiter).state().edge
  if (turn?.kind !== "turn") return undefined
  const asked = log.find(turn.rev)
  return asked?.event_type === "UserMsg" && asked.payload.speak === true ? yield* voice.of(text, turn.rev) : undefined
})

/** Runs edge until `stopping`, which it obeys between two steps, or until a limit of the session is reached. */
export const runEdge = Effect.fn("EdgeLane.run")(function* (stopping: Deferred.Deferred<void>) {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const runner = yield* ToolRunner
  const settings = yield* AgentSettings
  const stops = yield* TurnStops
  const ask = yield* makeQuestions
  const { reportText, say, sayFailure, sayLimit } = yield* makeReplies
  const intake = yield* makeIntake(stopping)

  const purposeOf = () => arbiter.state().edge.turn?.kind ?? "turn"
  const isOutOfPatience = yield* makeTurnPatience(
    stopping,
    Effect.suspend(() => ask(purposeOf(), undefined, true))
  )

  const answer = (rev: number) => {
    const output = log.get(rev)
    if (output.event_type !== "ModelOutput") return sayFailure("the model said nothing")
    const { error } = output.payload
    const { turn_max_steps } = settings.current().config.budgets
    const isAtLimit = arbiter.state().edge.step >= turn_max_steps
    if (error !== undefined && isPassing(error))
      return Effect.flatMap(isAtLimit ? Effect.succeed(true) : isOutOfPatience(output), (isOver) =>
        isOver ? sayFailure(error.message, "again") : Effect.void
      )
    if (error !== undefined)
      return sayFailure(error.message, "final", isSpentAccount(error) ? "once that is solved" : undefined)
    const words = edgeWords(log.find, arbiter.state().edge, output)
    switch (words.type) {
      case "whole":
        return Effect.flatMap(voiceFor(words.text), (voice) => say(words.text, undefined, voice))
      case "broken":
        return words.text.trim() === ""
          ? sayFailure(words.problem)
          : say(`${words.text}\n\n(The answer is incomplete: ${words.problem}.)`)
      case "correct":
        return isAtLimit ? sayFailure(`I stopped ${stepsSpent(turn_max_steps)}`) : ask(purposeOf(), words.correction)
    }
  }
  const step = Effect.suspend(() => {
    const next = edgeStep(arbiter.state(), settings.current().config.budgets)
    switch (next.type) {
      case "ask":
        return ask(next.purpose)
      case "run":
        return Effect.raceFirst(runner.runOpen(EDGE), intake.interposed)
      case "answer":
        return answer(next.rev)
      case "stuck":
        return sayLimit(stuckText(log.find(next.rev)))
      case "say":
        return sayLimit(next.text)
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
