/** A lane's model calls: room in replication and budget, the prompt, the call, the commit of its output. */
import { Context, Duration, Effect, Layer } from "effect"
import type { AgentConfig, Model } from "#schema/Config.ts"
import type { ChoirEvent, EventOf, PayloadOf } from "#schema/Event.ts"
import { EDGE, type LaneId } from "#schema/Ids.ts"
import { outputTokensMax } from "#src/shared/model/requestParameters.ts"
import { costMax, estimateTokens } from "#src/shared/model/usage.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { AgentSettings, boundModel } from "#src/agent/settings/AgentSettings.ts"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { Budget, type Exhausted, type Reservation } from "./Budget.ts"
import { jsonOf, type Message, textsOf, type Tool } from "./Conversation.ts"
import { type Completion, Llm, type Unanswered } from "./Llm.ts"
import { type Room, size, Tokens } from "./Tokens.ts"
import { Replication } from "#src/agent/control/Replication.ts"

/** The size of a prompt that was sent. */
export interface PromptTokens {
  /** The newest revision when it was made. */
  readonly rev: number
  /** The name of config.json that answered. */
  readonly model: string
  /** As the provider counted it. */
  readonly reported: number
  /** As {@link Tokens} counted it; absent where it is far below the length at which a window is compacted. */
  readonly counted?: number
}

type Purpose = PayloadOf<"ModelOutput">["purpose"]

/** Asks a model for a lane and commits what it said. */
export class ModelCalls extends Context.Service<
  ModelCalls,
  {
    /**
     * Asks with the messages that `prompt` makes for the room there is. Everything from the room to the last fallback follows
     * one snapshot of the settings (R58). A model that the agent is not bound to any more gives way to the lane's present one.
     * The answer is the committed output, which may be an error; nothing when the lane ended meanwhile, or `prompt` has nothing to ask any more.
     */
    ask(
      lane: LaneId,
      purpose: Purpose,
      model: string,
      tools: ReadonlyArray<Tool>,
      prompt: (room: Room) => ReadonlyArray<Message>
    ): Effect.Effect<EventOf<"ModelOutput"> | undefined, Exhausted>
    /** The prompt of the lane's newest turn or report call whose provider counted it. */
    lastPromptTokens(lane: LaneId): PromptTokens | undefined
  }
>()("choir/agent/model/ModelCalls") {
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
  completion: Omit<Completion, "prompt_tokens">
) {
  const { continuation: _, ...forgetful } = completion
  const commit = (output: typeof completion) => arbiter.commit({ type: "Output", lane, output: { purpose, ...output } })
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
        const output = { purpose, model, tool_calls: [], finish_reason: "error", usage, latency_ms, error }
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

/** The sizes of the lanes' newest prompts. */
const makePromptSizes = (arbiter: Arbiter["Service"], tokens: Tokens["Service"]) => {
  const sizes = new Map<LaneId, PromptTokens>()
  return {
    last: (lane: LaneId) => sizes.get(lane),
    remember: (lane: LaneId, size: PromptTokens) => {
      for (const known of sizes.keys()) if (laneOf(arbiter.state(), known) === undefined) sizes.delete(known)
      sizes.set(lane, size)
      if (size.counted !== undefined) tokens.observe(size.model, size.counted, size.reported)
    },
    /** Counted only where it is near the length at which windows are compacted, so that small sessions never pay for it. */
    count: (config: AgentConfig, name: string, texts: ReadonlyArray<string>) => {
      const near = config.memory.compact_at * (boundModel(config, name)?.context_window ?? 0)
      return tokens.certainlyBelow(texts, near) ? Effect.undefined : tokens.count(texts)
    }
  }
}

const make = Effect.fnUntraced(function* () {
  const arbiter = yield* Arbiter
  const budget = yield* Budget
  const llm = yield* Llm
  const replication = yield* Replication
  const settings = yield* AgentSettings
  const sizes = makePromptSizes(arbiter, yield* Tokens)

  const announce = (model: string) => (wait: Duration.Duration) => {
    const text = `The provider of the model "${model}" is busy or limits its rate; asking again in ${Duration.format(wait)}.`
    return Effect.andThen(Effect.logWarning(text), commitIfDue(arbiter, { type: "Notice", text }))
  }

  const ask = Effect.fn("ModelCalls.ask")(function* (
    lane: LaneId,
    purpose: Purpose,
    wanted: string,
    tools: ReadonlyArray<Tool>,
    prompt: (room: Room) => ReadonlyArray<Message>
  ) {
    yield* replication.room
    const { config, session_id } = settings.current()
    const name = presentModel(config, lane, wanted)
    if (name !== wanted) yield* Effect.logWarning(`the model "${wanted}" is not bound any more; "${name}" takes over`)
    const model = boundModel(config, name)
    const offered = tools.map(jsonOf).join(",")
    const described = estimateTokens(offered.length)
    const room = model === undefined ? 0 : model.context_window - outputTokensMax(model) - described
    const messages = prompt({ event_window: config.memory.event_window, tokens: Math.max(0, room) })
    if (messages.length === 0) return undefined
    const { rev } = arbiter.state()
    const most = reservation(config, name, estimateTokens(size(messages)) + described)
    const unanswered = commitUnanswered(arbiter, lane)
    // An answer that came and is not committed yet: it has to be paid for even if the call is interrupted now.
    let came: Unanswered | undefined
    const answered = llm
      .complete(name, messages, tools, config, {
        announce: purpose === "summary" ? unannounced : announce(name),
        interrupted: unanswered,
        cache_key: `${session_id}/${lane}`
      })
      .pipe(Effect.tap((completion) => Effect.sync(() => (came = completion))))
    return yield* Effect.gen(function* () {
      yield* budget.reserve(most)
      const [completion, size] = yield* Effect.all(
        [answered, sizes.count(config, name, [offered, ...textsOf(messages)])],
        {
          concurrency: 2
        }
      )
      const { prompt_tokens: reported, ...said } = completion
      if (reported !== undefined && (purpose === "turn" || purpose === "report"))
        sizes.remember(lane, { rev, model: said.model, reported, ...(size === undefined ? {} : { counted: size }) })
      return yield* Effect.uninterruptible(
        Effect.tap(commitAnswer(arbiter, lane, purpose, said), () => Effect.sync(() => (came = undefined)))
      )
    }).pipe(
      Effect.onInterrupt(() => Effect.suspend(() => (came === undefined ? Effect.void : unanswered(came)))),
      Effect.scoped
    )
  })

  return ModelCalls.of({ ask, lastPromptTokens: sizes.last })
})
