/** A lane's model calls: room in replication and budget, the prompt, the call, the commit of its output. */
import { Context, Duration, Effect, Layer } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { Model } from "#schema/Config.ts"
import type { ChoirEvent, EventOf, PayloadOf, Prompted, Usage } from "#schema/Event.ts"
import { type CallId, EDGE, type LaneId } from "#schema/Ids.ts"
import type { Message, Tool } from "#src/shared/model/Conversation.ts"
import { isPassing } from "#src/shared/model/passing.ts"
import { newestPictures, pictureTokens } from "#src/shared/model/pictures.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { costMax, estimateTokens } from "#src/shared/model/usage.ts"
import { messageOf } from "#src/shared/session/messageSteps.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { nextReport } from "#src/shared/session/turns.ts"
import { AgentSettings, boundModel } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { lanesMap } from "#src/agent/arbiter/LivingMap.ts"
import { Budget, type Exhausted, type Reservation } from "./Budget.ts"
import { isOverflow, withoutOldResults } from "./contextOverflow.ts"
import { promptChars, toolBytes, toolChars } from "./partSizes.ts"
import { Drafts } from "./Drafts.ts"
import { type Offered, offeredOf } from "./offeredTools.ts"
import type { SentPrompt } from "./describeContext.ts"
import { type Completion, Llm, type Unanswered } from "./Llm.ts"
import { TokenCount } from "./TokenCount.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { Pictures } from "#src/agent/workspace/Pictures.ts"

/** The size of a prompt that was answered. */
export interface PromptTokens {
  /** The name of config.json that answered. */
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  /** As the provider counted it. */
  readonly reported: number
  /** As {@link TokenCount} counted it; absent where it is far below the length at which a window is compacted. */
  readonly counted?: number
}

/** A question to a model; `prompted` and `judges` are in the event of its output. */
export interface Asked {
  readonly messages: ReadonlyArray<Message>
  readonly prompted?: Prompted
  /** Of a question to a judge: the call whose result it is about. */
  readonly judges?: CallId
}

/** Compactions for a prompt that its provider found too long: one that the next call waits for, and one that it does not. */
export interface Shortening {
  readonly now: Effect.Effect<void>
  readonly later: Effect.Effect<void>
}

type Purpose = PayloadOf<"ModelOutput">["purpose"]

/** Asks a model for a lane and commits what it said. */
export class ModelCalls extends Context.Service<
  ModelCalls,
  {
    /**
     * Asks with what `prompt` makes once there is room to commit. Everything from there to the last fallback follows
     * one snapshot of the settings (R58). A model that the agent is not bound to any more gives way to the lane's present one.
     * A prompt that its provider finds too long is asked once more without its old results, and after that from a shorter window (D51).
     * The answer is the committed output, which may be an error; nothing when the lane ended meanwhile, or `prompt` has nothing to ask any more.
     * A lane that asks `again` waits for its provider already: of a further failure that may pass only the cost is committed.
     */
    ask(
      lane: LaneId,
      purpose: Purpose,
      model: string,
      tools: ReadonlyArray<Tool>,
      prompt: () => Asked | undefined,
      shortening?: Shortening,
      again?: boolean
    ): Effect.Effect<EventOf<"ModelOutput"> | undefined, Exhausted>
    /** The newest prompt of the lane's turns and reports, or of its work. */
    newestPrompt(lane: LaneId): SentPrompt | undefined
    /** The lane's newest turn or report call whose provider counted its prompt. */
    lastPrompt(lane: LaneId): PromptTokens | undefined
  }
>()("choir/agent/ModelCalls") {
  static readonly layer = Layer.effect(
    ModelCalls,
    Effect.suspend(() => make())
  )
}

/** The model that a lane's call is made with: the named one, or the lane's present one where that is not bound any more. */
export const presentModel = (config: AgentConfig, lane: LaneId, name: string): string => {
  if (boundModel(config, name) !== undefined) return name
  return lane === EDGE ? config.llm : config.core_llm
}

/** The most that an answer may cost: by the dearest of the models that may give it. What failed attempts add is known only afterwards. */
const reservation = (config: AgentConfig, name: string, prompt_tokens: number): Reservation => {
  const names = [name, ...(boundModel(config, name)?.fallback ?? [])]
  const models = names.flatMap((name) => boundModel(config, name) ?? [])
  const cost = (model: Model) => costMax(model, prompt_tokens, outputTokensMax(model))
  return {
    tokens: prompt_tokens + Math.max(0, ...models.map(outputTokensMax)),
    cost_usd: Math.max(0, ...models.map(cost))
  }
}

/** Whether a lane may still say something. */
const isThere = (state: SessionState, lane: LaneId): boolean =>
  laneOf(state, lane) !== undefined && state.edge.state !== "EDGE_TERMINATED"

/** At the end of a session nobody waits for the model. */
const unannounced = () => Effect.void

/** Commits a call without an answer, which counts as well: with its lane, or with edge once the lane is gone. */
const commitUnanswered =
  (arbiter: Arbiter["Service"], lane: LaneId) =>
  ({ latency_ms, model, usage }: Unanswered) =>
    Effect.suspend(() =>
      commitIfDue(arbiter, {
        type: "Output",
        lane: laneOf(arbiter.state(), lane) === undefined ? EDGE : lane,
        output: { purpose: "interrupted", model, tool_calls: [], finish_reason: "interrupted", usage, latency_ms }
      })
    )

/** Commits an answer. One that no event can hold becomes an error of the call, as an oversized one does. */
const commitAnswer = Effect.fnUntraced(function* (
  arbiter: Arbiter["Service"],
  lane: LaneId,
  purpose: Purpose,
  completion: Omit<Completion, "prompt_tokens">,
  { judges, prompted }: Asked
) {
  const prompt = {
    ...(prompted === undefined ? {} : { prompt: prompted }),
    ...(judges === undefined ? {} : { judges })
  }
  const { continuation: _, ...forgetful } = completion
  const commit = (output: typeof completion) =>
    arbiter.commit({ type: "Output", lane, output: { purpose, ...output, ...prompt } })
  const committed = yield* commit(completion).pipe(
    // Reasoning is the first to go.
    Effect.catchIf(
      ({ unfit }) => unfit === true && completion.continuation !== undefined,
      () => commit(forgetful)
    ),
    Effect.catchIf(
      ({ unfit }) => unfit === true,
      ({ reason }) => {
        const { latency_ms, model, usage } = completion
        const error = { kind: "too_large", message: `the model "${model}": ${reason}` } as const
        const failed = { purpose, model, tool_calls: [], finish_reason: "error", usage, latency_ms, error }
        const output = judges === undefined ? failed : { ...failed, judges }
        return arbiter.commit({ type: "Output", lane, output })
      }
    ),
    // The lane would ask again for as long as it is there, and pay each time.
    Effect.catch((refused): Effect.Effect<ReadonlyArray<ChoirEvent>> =>
      isThere(arbiter.state(), lane) ? Effect.die(refused) : Effect.as(commitUnanswered(arbiter, lane)(completion), [])
    )
  )
  return committed.find((event) => event.event_type === "ModelOutput")
})

/** The newest prompt of each lane that is there. */
const makePrompts = (arbiter: Arbiter["Service"]) => {
  const prompts = lanesMap<SentPrompt>(arbiter.state)
  return {
    newest: (lane: LaneId) => prompts.get(lane),
    remember: (
      lane: LaneId,
      config: AgentConfig,
      model: string,
      tools: ReadonlyArray<Tool>,
      messages: ReadonlyArray<Message>
    ) => {
      const context_window = boundModel(config, model)?.context_window ?? 0
      prompts.set(lane, { rev: arbiter.state().rev, model, context_window, tools, messages })
    }
  }
}

/** The sizes of the lanes' newest prompts. */
const makePromptSizes = (arbiter: Arbiter["Service"], tokens: TokenCount["Service"]) => {
  const sizes = lanesMap<PromptTokens>(arbiter.state)
  return {
    last: (lane: LaneId) => sizes.get(lane),
    /** @param counted by the agent itself, where it counted */
    remember: (
      lane: LaneId,
      model: string,
      messages: ReadonlyArray<Message>,
      reported: number,
      counted: number | undefined
    ) => {
      sizes.set(lane, { model, messages, reported, ...(counted === undefined ? {} : { counted }) })
      if (counted !== undefined) tokens.observe(model, counted, reported)
    },
    /** Counted only where it is near the length at which windows are compacted, so that small sessions never pay for it. */
    count: (
      config: AgentConfig,
      name: string,
      messages: ReadonlyArray<Message>,
      tools: ReadonlyArray<Tool>,
      beside: number
    ) => {
      const { compact_at, window_tokens_max } = config.memory
      const near = Math.min(window_tokens_max ?? Infinity, compact_at * (boundModel(config, name)?.context_window ?? 0))
      return tokens.certainlyBelow(messages, near - beside - toolBytes(tools))
        ? Effect.undefined
        : Effect.zipWith(tokens.count(tools), tokens.count(messages), (ours, theirs) => ours + theirs + beside)
    }
  }
}

/** The cost of two attempts together. */
const together = (before: Usage, { cost_usd, input_tokens, output_tokens, ...more }: Usage): Usage => ({
  ...more,
  input_tokens: before.input_tokens + input_tokens,
  output_tokens: before.output_tokens + output_tokens,
  ...(before.cost_usd === undefined && cost_usd === undefined
    ? {}
    : { cost_usd: (before.cost_usd ?? 0) + (cost_usd ?? 0) })
})

/**
 * Asks, and again with a shorter prompt where the provider finds it too long: without old results, and then from a window that was compacted.
 * The answer comes with what was asked in the end.
 */
const askShorter = Effect.fnUntraced(function* (
  first: Asked,
  again: () => Asked | undefined,
  complete: (messages: ReadonlyArray<Message>) => Effect.Effect<Completion>,
  offered: Offered,
  { later, now }: Shortening
) {
  const completion = yield* complete(first.messages)
  if (!isOverflow(completion.error)) return { completion, asked: first }
  yield* Effect.logWarning(`the prompt is too long for the model "${completion.model}"`, completion.error?.message)
  const stubbed = withoutOldResults(first.messages, offered)
  const second = stubbed === undefined ? completion : yield* complete(stubbed)
  const usage = stubbed === undefined ? completion.usage : together(completion.usage, second.usage)
  if (!isOverflow(second.error)) {
    yield* later
    return { completion: { ...second, usage }, asked: { ...first, messages: stubbed ?? first.messages } }
  }
  yield* now
  const asked = again()
  if (asked === undefined) return { completion: { ...withHint(second), usage }, asked: first }
  const third = yield* complete(asked.messages)
  return { completion: { ...withHint(third), usage: together(usage, third.usage) }, asked }
})

/** A prompt that stays too long is one of a model whose context is smaller than config.json says. */
const withHint = (completion: Completion): Completion =>
  completion.error === undefined || !isOverflow(completion.error)
    ? completion
    : {
        ...completion,
        error: {
          ...completion.error,
          message: `${completion.error.message} (is the model's context_window in config.json right?)`
        }
      }

/** Whether a lane that waits for its provider has to wait longer after this. */
const isInVain = ({ error }: Pick<Completion, "error">): boolean => error !== undefined && isPassing(error)

const isBilled = ({ usage: { input_tokens, output_tokens } }: Pick<Completion, "usage">): boolean =>
  input_tokens + output_tokens > 0

/** Tells the user that a provider is waited for. */
const announcing = (arbiter: Arbiter["Service"]) => (lane: LaneId, model: string) => (wait: Duration.Duration) => {
  const seconds = Math.ceil(Duration.toSeconds(wait))
  const when = seconds === 0 ? "at once" : `in ${seconds} s`
  const text = `The provider of the model "${model}" is busy or limits its rate; asking again ${when}.`
  return Effect.andThen(Effect.logWarning(text), commitIfDue(arbiter, { type: "Notice", lane, text }))
}

const NO_SHORTENING: Shortening = { now: Effect.void, later: Effect.void }

const estimatedTokens = (messages: ReadonlyArray<Message>, tools: ReadonlyArray<Tool>): number =>
  estimateTokens(promptChars(messages)) + estimateTokens(toolChars(tools)) + pictureTokens(messages)

/** Whether people see what comes of a call. */
const isShown = (purpose: Purpose): boolean => purpose === "turn" || purpose === "report"

/** The bytes of the pictures that a prompt may show. */
const makePictured = Effect.map(Pictures, ({ load }) => (messages: ReadonlyArray<Message>) => {
  const newest = newestPictures(messages)
  return newest.length === 0 ? Effect.succeed({}) : Effect.map(load(newest), (pictures) => ({ pictures }))
})

/** The notices and words of a call that people see while it is made: of edge, the words as they are written. */
const makeHeard = Effect.map(
  Effect.all([Arbiter, Drafts]),
  ([arbiter, drafts]) =>
    (lane: LaneId, purpose: Purpose, model: string, again: boolean) => {
      const announce = purpose === "summary" || again ? unannounced : announcing(arbiter)(lane, model)
      if (lane !== EDGE || !isShown(purpose)) return { announce }
      const state = arbiter.state()
      const report = purpose === "report" ? nextReport(state) : undefined
      const inbox_id = report === undefined ? messageOf(state.edge.turn) : report.inbox_id
      if (inbox_id === undefined) return { announce }
      const about = { inbox_id, ...(report === undefined ? {} : { report_rev: report.rev }) }
      return { announce, heard: drafts.follow(about) }
    }
)

/** An answer that came and is not committed yet: it has to be paid for even if the call is interrupted now. */
const makeUnpaid = (pay: (completion: Unanswered) => Effect.Effect<void>) => {
  let came: Unanswered | undefined
  return {
    came: (completion: Unanswered) => Effect.sync(() => void (came = completion)),
    settled: Effect.sync(() => void (came = undefined)),
    pay: Effect.suspend(() => (came === undefined ? Effect.void : pay(came)))
  }
}

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const budget = yield* Budget
  const drafts = yield* Drafts
  const llm = yield* Llm
  const pictured = yield* makePictured
  const heard = yield* makeHeard
  const replication = yield* Replication
  const settings = yield* AgentSettings
  const sizes = makePromptSizes(arbiter, yield* TokenCount)
  const prompts = makePrompts(arbiter)

  const ask = Effect.fnUntraced(function* (
    lane: LaneId,
    purpose: Purpose,
    wanted: string,
    tools: ReadonlyArray<Tool>,
    prompt: () => Asked | undefined,
    shortening: Shortening = NO_SHORTENING,
    again = false
  ) {
    yield* replication.room
    const { config, session_id } = settings.current()
    const name = presentModel(config, lane, wanted)
    if (name !== wanted) yield* Effect.logWarning(`the model "${wanted}" is no longer bound; "${name}" takes over`)
    const first = prompt()
    if (first === undefined) return undefined
    if (isShown(purpose)) prompts.remember(lane, config, name, tools, first.messages)
    const unanswered = commitUnanswered(arbiter, lane)
    const unpaid = makeUnpaid(unanswered)
    const complete = (messages: ReadonlyArray<Message>) =>
      Effect.flatMap(pictured(messages), (pictures) =>
        llm.complete(name, messages, tools, config, {
          ...heard(lane, purpose, name, again),
          interrupted: unanswered,
          cache_key: `${session_id}/${lane}`,
          ...pictures
        })
      ).pipe(Effect.tap(unpaid.came))
    return yield* Effect.gen(function* () {
      // The summary of a session that reached its limit is what the next one continues from.
      if (purpose !== "summary")
        yield* budget.reserve(reservation(config, name, estimatedTokens(first.messages, tools)))
      const [{ asked, completion }, counted] = yield* Effect.all(
        [
          askShorter(first, prompt, complete, offeredOf(tools), shortening),
          sizes.count(config, name, first.messages, tools, pictureTokens(first.messages))
        ],
        { concurrency: 2 }
      )
      const { prompt_tokens: reported, ...said } = completion
      if (again && isInVain(said)) {
        const paid = isBilled(said) ? unanswered(said) : Effect.void
        return yield* Effect.uninterruptible(Effect.as(Effect.andThen(paid, unpaid.settled), undefined))
      }
      // The answer follows at once; words beside calls are seen first.
      if (lane === EDGE && said.tool_calls.length === 0) yield* drafts.clear
      if (reported !== undefined && asked === first && isShown(purpose))
        sizes.remember(lane, said.model, asked.messages, reported, counted)
      return yield* Effect.uninterruptible(
        Effect.tap(commitAnswer(arbiter, lane, purpose, said, asked), unpaid.settled)
      )
    }).pipe(
      Effect.onInterrupt(() => unpaid.pay),
      Effect.scoped
    )
  })

  return ModelCalls.of({ ask, lastPrompt: sizes.last, newestPrompt: prompts.newest })
})
